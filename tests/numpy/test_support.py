"""Tests of numpy/_support.py."""

import numpy as np
import pytest

from stagedad.errors import TraceError
from stagedad.front import jit
from stagedad.numpy._support import support
from stagedad.ops import OPS


def test_every_name_is_something():
    found = support()
    assert found.keys() == set(np.__all__)
    assert {sort for sort, _ in found.values()} == {"op", "composite", "constant", "refused"}
    for name, (sort, how) in found.items():
        assert how
        if sort == "op":
            op = OPS[how]
            own = getattr(np, op.numpy)
            assert own is getattr(np, name) or name in op.aliases


def test_examples_of_each_sort():
    found = support()
    assert found["multiply"] == ("op", "mul")
    assert found["sort"] == ("op", "sort")
    assert found["radians"] == ("op", "deg2rad")
    assert found["median"] == ("composite", "median")
    assert found["pi"] == ("constant", "float")
    assert found["unique"][0] == "refused"
    assert "depends on the values" in found["unique"][1]


def test_what_is_refused_says_the_same_when_called():
    with pytest.raises(TraceError) as caught:
        jit(np.unique)(np.ones(3))
    assert support()["unique"][1] in str(caught.value)
