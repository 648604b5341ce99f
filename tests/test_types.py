"""Tests of types.py."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagedad.errors import DeviceError, DTypeError, ParseError, ShapeError
from stagedad.types import (
    CODES,
    TensorType,
    as_type,
    broadcast_shapes,
    dtype_code,
    parse_type,
    promote,
)

DIMS = st.one_of(st.none(), st.integers(0, 5))
TYPES = st.builds(
    TensorType,
    st.sampled_from(list(CODES.values())),
    st.one_of(st.none(), st.lists(DIMS, max_size=4).map(tuple)),
    st.sampled_from(["cpu", "cuda:0", "cuda:12"]),
)


@given(TYPES)
def test_text_parses_back_to_the_same_object(type):
    assert parse_type(str(type)) is type
    assert eval(repr(type), {"TensorType": parse_type}) is type


@given(TYPES)
def test_copies_are_the_object(type):
    assert pickle.loads(pickle.dumps(type)) is type
    assert copy.copy(type) is type
    assert copy.deepcopy(type) is type


@pytest.mark.parametrize(
    ("text", "shape", "size", "nbytes"),
    [
        ("f64[2, 3]", (2, 3), 6, 48),
        ("f32[]", (), 1, 4),
        ("i8[0, 3]", (0, 3), 0, 0),
        ("c128[2, ?]", (2, None), None, None),
        ("b1[*]", None, None, None),
    ],
)
def test_knows_its_size(text, shape, size, nbytes):
    type = parse_type(text)
    assert (type.shape, type.size, type.nbytes) == (shape, size, nbytes)
    assert type.is_static == (size is not None)
    assert type.ndim == (None if shape is None else len(shape))
    assert str(type) == text


def test_equal_arguments_give_one_object():
    first = TensorType("float64", (2, 3))
    assert first is TensorType(np.float64, [2, 3])
    assert first is TensorType(np.dtype(">f8"), (np.int64(2), 3), "cpu")
    assert first is TensorType.of(np.zeros((2, 3)))
    assert first is not TensorType("float64", (2, 3), "cuda:0")
    assert TensorType.of(np.float32(1)) is TensorType("float32", ())
    assert TensorType("longlong", ()) is TensorType("int64", ())


def test_carries_cotangents_if_inexact():
    assert all(
        TensorType(dtype).is_inexact == (code[0] in "fc") for code, dtype in CODES.items()
    )


def test_changes_one_part():
    type = parse_type("f64[2]@cuda:0")
    assert str(type.with_dtype("float32")) == "f32[2]@cuda:0"
    assert str(type.with_shape(None)) == "f64[*]@cuda:0"


def test_is_immutable():
    type = parse_type("f64[2]")
    with pytest.raises(AttributeError, match="immutable"):
        type.shape = (3,)
    with pytest.raises(AttributeError, match="immutable"):
        del type.dtype


def test_types_that_nobody_holds_go():
    from stagedad import types

    reference = weakref.ref(TensorType("float64", (12345, 7)))
    types._recent.clear()
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble", "O", "U3", "M8[s]", "f4,i4"])
def test_refuses_other_dtypes_with_a_way_out(dtype):
    with pytest.raises(DTypeError, match="hint: stagedad carries b1"):
        TensorType(dtype)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("f8", 3), ShapeError, r"TensorType: a shape is a tuple of dims, or None: 3"),
        (("f8", (2,), None), DeviceError, "TensorType: unknown device: None"),
        (("f8", (2,), 3), DeviceError, "TensorType: unknown device: 3"),
        ((None, (2,)), DTypeError, "TensorType: not a dtype: None"),
        (("f8, (3", ()), DTypeError, "TensorType: not a dtype"),
    ],
)
def test_refuses_arguments_of_another_kind(arguments, error, message):
    with pytest.raises(error, match=f"^{message}"):
        TensorType(*arguments)


def test_refuses_what_is_no_dtype_shape_or_device():
    with pytest.raises(DTypeError, match="not a dtype: 'spam'"):
        TensorType("spam")
    with pytest.raises(ShapeError, match=r"negative dim: \(2, -1\)"):
        TensorType("float64", (2, -1))
    with pytest.raises(ShapeError, match="dims are integers"):
        TensorType("float64", (2.5,))
    with pytest.raises(DeviceError, match="unknown device: 'tpu'"):
        TensorType("float64", (), "tpu")


@pytest.mark.parametrize(
    "text",
    ["", "f64", "f64[", "f64[2 3]", "f64[-1]", "f65[]", "f64[]@tpu", "f64[*, 2]", "f64[²]"],
)
def test_refuses_other_texts(text):
    with pytest.raises(ParseError, match=r"^type: "):
        parse_type(text)


def test_as_type_takes_types_texts_and_none():
    type = parse_type("f64[2]")
    assert as_type(type) is type
    assert as_type(" f64 [ 2 ] ") is type
    assert as_type(None) is None
    with pytest.raises(TypeError, match="expected a TensorType"):
        as_type(3)


@given(st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), max_size=3))
def test_broadcasts_as_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^mul: do not broadcast"):
            broadcast_shapes("mul", *shapes)
    else:
        assert broadcast_shapes("mul", *shapes) == expected


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=3),
    st.data(),
)
def test_forgetting_a_dim_never_contradicts(shapes, data):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        return
    blurred = [
        tuple(data.draw(st.sampled_from([dim, None])) for dim in shape) for shape in shapes
    ]
    found = broadcast_shapes("mul", *blurred)
    assert len(found) == len(expected)
    assert all(a in (None, b) for a, b in zip(found, expected, strict=True))


def test_unknown_dims_broadcast():
    assert broadcast_shapes("mul", (3, None), (4,)) == (3, 4)
    assert broadcast_shapes("mul", (None,), (1,)) == (None,)
    assert broadcast_shapes("mul", (2,), None) is None


@given(st.lists(st.sampled_from(list(CODES.values())), min_size=1, max_size=3))
def test_promotes_as_numpy(dtypes):
    assert promote("mul", *dtypes) == np.result_type(*dtypes)
    assert dtype_code(dtypes[0]) in CODES


def test_promotion_names_the_op():
    with pytest.raises(DTypeError, match=r"^mul: unsupported dtype: object") as caught:
        promote("mul", "float64", object)
    assert caught.value.op == "mul"
