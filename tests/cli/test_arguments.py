"""Tests of cli/arguments.py."""

import numpy as np
import pytest

from stagedad.cli.arguments import parse_argument
from stagedad.errors import ParseError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", 2.5),
        ("-3", -3),
        ("1e-3", 1e-3),
        ("[1.0, 2.0]", [1.0, 2.0]),
        ("(1, {'a': 2.0})", (1, {"a": 2.0})),
        ("None", None),
        ("'text'", "text"),
        (" 1.0 ", 1.0),
    ],
)
def test_a_literal_stands_for_itself(text, value):
    assert parse_argument(text) == value


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("f64[3,2]", "float64", (3, 2)),
        ("f64[3, 2]", "float64", (3, 2)),
        ("f32[]", "float32", ()),
        ("f16[0]", "float16", (0,)),
        ("c64[4]", "complex64", (4,)),
        ("i32[5]", "int32", (5,)),
        ("b1[2]", "bool", (2,)),
    ],
)
def test_a_type_stands_for_an_array(text, dtype, shape):
    array = parse_argument(text)
    assert isinstance(array, np.ndarray)
    assert array.dtype == dtype
    assert array.shape == shape


def test_random_numbers_are_the_same_in_every_run():
    np.testing.assert_array_equal(parse_argument("f64[3]", 1), parse_argument("f64[3]", 1))


def test_arguments_of_one_type_differ():
    assert not np.array_equal(parse_argument("f64[3]", 0), parse_argument("f64[3]", 1))


def test_random_numbers_have_logarithms():
    assert np.isfinite(np.log(parse_argument("f64[1000]"))).all()


@pytest.mark.parametrize(
    "text", ["", "f64", "f64[3", "f65[3]", "x + 1", "__import__('os')", "f64[-1]", "(" * 500]
)
def test_refuses_what_is_neither(text):
    with pytest.raises(ParseError, match=r"argument 3: neither a Python literal nor a type"):
        parse_argument(text, 2)


@pytest.mark.parametrize("text", ["f64[?]", "f64[*]", "f64[2, ?]"])
def test_refuses_unknown_dims(text):
    with pytest.raises(ParseError, match="dims must be numbers"):
        parse_argument(text)


@pytest.mark.parametrize("text", ["f64[100000000000000]", "f64[9999999999999999999999]"])
def test_refuses_what_does_not_fit_in_memory(text):
    with pytest.raises(ParseError, match="too large"):
        parse_argument(text)
