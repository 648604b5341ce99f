"""Tests of stagedad.numpy: every name of NumPy, and none that lets a traced value through."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import TraceError
from stagedad.front import Tracer, jit
from stagedad.front.protocol import is_recordable
from stagedad.numpy import fft, linalg, random
from stagedad.numpy.linalg import inv

NAMES = [name for name in np.__all__ if not name.startswith("_")]


def test_has_every_public_name_of_numpy():
    # f2py and core are no part of what programs compute with.
    assert {name for name in NAMES if not hasattr(snp, name)} <= {"core", "f2py"}
    for ours, theirs in ((linalg, np.linalg), (fft, np.fft), (random, np.random)):
        assert set(theirs.__all__) - {"test"} <= set(dir(ours))


def test_types_and_constants_are_numpys_own():
    for name in ("float64", "ndarray", "pi", "newaxis", "inf", "dtype", "generic", "errstate"):
        assert getattr(snp, name) is getattr(np, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = snp.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = linalg.nonsense


def test_plain_arguments_give_plain_results():
    x = np.arange(4.0)
    assert type(snp.sin(x)) is np.ndarray
    np.testing.assert_array_equal(snp.cumsum(x), np.cumsum(x))
    np.testing.assert_array_equal(snp.add.reduce(x), 6)
    np.testing.assert_array_equal(inv(np.eye(2)), np.eye(2))
    assert snp.random.default_rng(0).random() == np.random.default_rng(0).random()
    assert snp.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert snp.array([[1, 2]]).shape == (1, 2)


def test_functions_keep_name_and_documentation_and_pickle():
    assert snp.sum.__name__ == "sum"
    assert snp.sum.__doc__ == np.sum.__doc__
    assert pickle.loads(pickle.dumps(snp.sum)) is snp.sum
    assert pickle.loads(pickle.dumps(snp.abs)) is snp.abs
    assert pickle.loads(pickle.dumps(linalg.norm)) is linalg.norm


def _functions():
    for module in (snp, linalg, fft, random):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                yield module, name


@pytest.mark.parametrize(
    ("module", "name"), list(_functions()), ids=lambda part: getattr(part, "__name__", part)
)
def test_every_function_records_or_refuses(module, name):
    """No function makes a plain result of a traced argument, bare or in a list."""
    function = getattr(module, name)
    theirs = getattr(sys.modules[module.__name__.replace("stagedad.", "")], name)
    about = {"shape", "ndim", "size", "result_type", "iscomplexobj", "isrealobj", "imag"}
    like = {"zeros_like", "ones_like", "empty_like", "full_like"}

    def call(*args):
        try:
            result = function(*args)
        except Exception as error:
            return error
        return result

    def probe(x):
        found.extend([call(x), call([x, 1.0]), call(x, x), call(x, 1)])
        return x

    found = []
    jit(probe)(np.array([1.0, 2.0]))
    if is_recordable(theirs) or (module is random and name in random.DRAWN):
        for result in found if name not in about | like else ():
            parts = result if isinstance(result, (tuple, list)) else [result]
            assert isinstance(result, Exception) or any(isinstance(p, Tracer) for p in parts)
        return
    # A ufunc counts its arguments before it asks anybody.
    refused = [result for result in found if "positional argument" not in str(result)]
    assert refused
    for result in refused:
        assert isinstance(result, TraceError), f"{name}: {result!r}"
        assert f"{__file__}:" in str(result)


def test_import_is_cheap_and_loads_no_module_of_numpy_in_vain():
    code = (
        "import sys, stagedad.numpy as np; "
        "assert not {'numpy.testing', 'numpy.f2py', 'numpy.ctypeslib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
