"""Tests of errors.py."""

import pickle

import pytest

from stagedad import errors

BUILTINS = {
    "ShapeError": ValueError,
    "NotScalar": TypeError,
    "DTypeError": TypeError,
    "DeviceError": RuntimeError,
    "VersionError": RuntimeError,
    "FreedError": RuntimeError,
    "InplaceError": RuntimeError,
    "NotDifferentiable": NotImplementedError,
    "ForwardModeUnsupported": NotImplementedError,
    "DeclarationError": ValueError,
    "ParseError": SyntaxError,
    "ForeignValue": ValueError,
    "StaleHandle": ReferenceError,
    "VerifyError": AssertionError,
    "TraceError": TypeError,
    "LeakedTracer": RuntimeError,
    "FormatError": ValueError,
    "ExportError": NotImplementedError,
    "KernelError": RuntimeError,
    "BusyError": RuntimeError,
}


@pytest.mark.parametrize("name", BUILTINS)
def test_is_also_the_built_in_that_a_stranger_catches(name):
    error = getattr(errors, name)
    assert issubclass(error, errors.StagedadError)
    assert issubclass(error, BUILTINS[name])
    assert error.__doc__


def test_every_class_is_listed():
    found = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.StagedadError)
    }
    assert found == {*BUILTINS, "StagedadError"}


@pytest.mark.parametrize("name", BUILTINS)
def test_carries_op_hint_and_data(name):
    error = getattr(errors, name)("mul: is wrong: 3", op="mul", hint="do right", node=7)
    assert str(error) == "mul: is wrong: 3\nhint: do right"
    assert (error.op, error.hint, error.node) == ("mul", "do right", 7)


@pytest.mark.parametrize("name", BUILTINS)
def test_survives_pickling(name):
    error = getattr(errors, name)("mul: is wrong: 3", op="mul", hint="do right", line=7)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_shape_error_names_the_shapes():
    error = errors.ShapeError("mul", "do not broadcast", (2, 3), (4,))
    assert str(error) == "mul: do not broadcast: (2, 3), (4,)"
    assert error.shapes == ((2, 3), (4,))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.shapes) == (str(error), error.shapes)


def test_parse_error_keeps_its_place():
    error = errors.ParseError("graph: not a type", lineno=3, offset=5)
    again = pickle.loads(pickle.dumps(error))
    assert (again.lineno, again.offset) == (3, 5)
    assert str(again) == str(error)


def test_suggests_near_names_only():
    assert errors.suggestion("axs", ["axis", "keepdims"]) == "did you mean 'axis'?"
    assert errors.suggestion("zzz", ["axis", "keepdims"]) is None
