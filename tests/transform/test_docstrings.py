"""The Before/After examples in the docstrings of the passes, executed."""

import re

import pytest

from stagedad.ir import parse_graph
from stagedad.transform import cse, dce, fold, simplify

EXAMPLE = re.compile(
    r"Before: *(graph\(.*?^ *\}).*?After: *(graph\(.*?^ *\})", re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("run", [cse, dce, fold, simplify], ids=lambda run: run.__name__)
def test_the_example_is_what_the_pass_does(run):
    before, after = EXAMPLE.search(run.__doc__).groups()
    graph = parse_graph(before)
    assert run(graph)
    assert graph == parse_graph(after)
    assert not run(graph)
