"""Tests of ops/type_rules.py: types are those of what NumPy computes."""

import numpy as np
import pytest

from stagedad.errors import DeviceError, DTypeError, ShapeError
from stagedad.ops import OPS, evaluate, infer
from stagedad.ops.samples import samples
from stagedad.types import CODES, TensorType, as_type


def result_of(kind, *texts, **attributes):
    (found,) = infer(kind, [as_type(text) for text in texts], attributes)
    return None if found is None else str(found)


@pytest.mark.parametrize("kind", OPS)
def test_infers_what_numpy_gives(kind):
    for dtype in CODES.values():
        for sample in samples(kind, dtype):
            results = evaluate(kind, sample.arrays, sample.attributes)
            types = infer(kind, list(map(TensorType.of, sample.arrays)), sample.attributes)
            assert types == tuple(map(TensorType.of, results)), (sample, dtype)


def is_part_of(found, full):
    """Whether what is known of a type is true of another."""
    return found.dtype == full.dtype and (
        found.shape is None
        or (
            len(found.shape) == len(full.shape)
            and all(a in (None, b) for a, b in zip(found.shape, full.shape, strict=True))
        )
    )


@pytest.mark.parametrize("kind", OPS)
def test_what_is_unknown_is_never_contradicted(kind):
    for sample in samples(kind, "float64"):
        types = list(map(TensorType.of, sample.arrays))
        wanted = infer(kind, types, sample.attributes)
        for blur in (
            lambda _: None,
            lambda type: type.with_shape(None),
            lambda type: type.with_shape((None,) * type.ndim),
        ):
            for number in range(len(types)):
                some = [blur(type) if at == number else type for at, type in enumerate(types)]
                results = infer(kind, some, sample.attributes)
                for found, full in zip(results, wanted, strict=True):
                    assert found is None or is_part_of(found, full)


@pytest.mark.parametrize("left", CODES.values(), ids=str)
@pytest.mark.parametrize("right", CODES.values(), ids=str)
def test_mixed_dtypes_promote_as_numpy(left, right):
    arrays = [np.ones(2, left), np.ones(2, right)]
    types = list(map(TensorType.of, arrays))
    for kind in ("add", "mul", "div", "pow", "maximum", "less", "mul0"):
        try:
            expected = evaluate(kind, arrays, {})[0].dtype
        except TypeError:
            with pytest.raises(DTypeError):
                infer(kind, types, {})
        else:
            assert infer(kind, types, {})[0].dtype == expected


@pytest.mark.parametrize(
    ("kind", "types", "attributes", "expected"),
    [
        ("sum", ["i32[2, 3]"], {"axis": -1}, "i64[2]"),
        ("mean", ["i32[2, 3]"], {"keepdims": True}, "f64[1, 1]"),
        ("sum", ["f64[*]"], {}, "f64[]"),
        ("sum", ["f64[?, 3]"], {"axis": 1}, "f64[?]"),
        ("less", ["f64[*]", None], {}, "b1[*]"),
        ("astype", [None], {"dtype": "float32"}, "f32[*]"),
        ("add", ["i64[2]", "i64[2]"], {"alpha": 0.5}, "f64[2]"),
        ("add", ["f32[2]", "f32[2]"], {"alpha": 0.5}, "f32[2]"),
        ("add", ["f32[2]", None], {"alpha": 2}, None),
        ("slice", ["f64[5]"], {"start": (4,), "stop": (None,), "step": (-2,)}, "f64[3]"),
        ("reshape", ["f64[?, 2]"], {"shape": (-1, 4)}, "f64[?, 4]"),
        ("concatenate", ["f32[2]", "f64[3]"], {}, "f64[5]"),
        ("matmul", ["f64[?, 3]", "f64[3]"], {}, "f64[?]"),
        ("constant", [], {"value": 2, "dtype": "float32"}, "f32[]"),
        ("constant", [], {"value": 1j}, "c128[]"),
        ("exp", ["f32[2]@cuda:0"], {}, "f32[2]@cuda:0"),
        ("subtract", ["f64[2]", "f64[]"], {}, "f64[2]"),
        ("sigmoid", ["i32[2]"], {}, "f64[2]"),
        ("sigmoid", ["f16[2]"], {}, "f16[2]"),
        ("copysign", ["f32[2]", "f64[]"], {}, "f64[2]"),
        ("unheard_of", ["f64[2]"], {"spin": 3}, None),
    ],
)
def test_gives(kind, types, attributes, expected):
    assert result_of(kind, *types, **attributes) == expected


@pytest.mark.parametrize(
    ("type", "sections", "axis", "expected"),
    [
        ("f64[6, 2]", 3, 0, ["f64[2, 2]"] * 3),
        ("f32[2, 5]", (1, 3), -1, ["f32[2, 1]", "f32[2, 2]", "f32[2, 2]"]),
        ("f64[5]", (3, 1), 0, ["f64[3]", "f64[0]", "f64[4]"]),
        ("f64[5]", (-2, 9), 0, ["f64[3]", "f64[2]", "f64[0]"]),
        ("f64[5]", (), 0, ["f64[5]"]),
        ("f64[?, 2]", 2, 0, ["f64[?, 2]"] * 2),
        ("f64[?, 2]", 2, 1, ["f64[?, 1]"] * 2),
        ("f64[*]", (1,), 0, ["f64[*]"] * 2),
        (None, 3, 0, ["None"] * 3),
    ],
)
def test_splits(type, sections, axis, expected):
    """The number of parts is known whatever the type."""
    attributes = {"indices_or_sections": sections, "axis": axis}
    assert [str(part) for part in infer("split", [as_type(type)], attributes)] == expected


@pytest.mark.parametrize(
    ("kind", "types", "attributes", "message"),
    [
        ("mul", ["f64[2, 3]", "f64[4]"], {}, r"mul: do not broadcast: \(2, 3\), \(4,\)"),
        ("sum", ["f64[2]"], {"axis": 1}, "sum: axis out of range for 1 dims: 1"),
        ("sum", ["f64[2, 3]"], {"axis": (0, -2)}, "sum: axis twice"),
        ("max", ["f64[0, 3]"], {"axis": 0}, "max: no elements to compare"),
        ("matmul", ["f64[2, 3]", "f64[2]"], {}, "matmul: inner dims differ"),
        ("matmul", ["f64[]", "f64[2]"], {}, "matmul: 0-d operand"),
        ("matmul", ["f64[2, 1, 3]", "f64[3, 3, 1]"], {}, "matmul: leading dims"),
        ("reshape", ["f64[2, 3]"], {"shape": (4,)}, "reshape: sizes differ"),
        ("reshape", ["f64[2, 3]"], {"shape": (-1, 4)}, "reshape: sizes differ"),
        ("reshape", ["f64[2, 3]"], {"shape": (-1, -1)}, "reshape: not a shape"),
        ("reshape_like", ["f64[2, 3]", "f64[5]"], {}, "reshape_like: sizes differ"),
        ("broadcast_to", ["f64[2]"], {"shape": (3,)}, "broadcast_to: do not broadcast"),
        ("broadcast_like", ["f64[2]", "f64[3]"], {}, "broadcast_like: do not broadcast"),
        ("sum_to", ["f64[2]"], {"shape": (3,)}, "sum_to: do not broadcast"),
        ("sum_to_like", ["f64[2]", "f64[2, 2]"], {}, "sum_to_like: do not broadcast"),
        ("transpose", ["f64[2, 3]"], {"axes": (0,)}, "transpose: axes"),
        ("squeeze", ["f64[2, 3]"], {"axis": 0}, "squeeze: axis 0 is not of size 1"),
        ("concatenate", ["f64[2]", "f64[2, 2]"], {}, "concatenate: ranks differ"),
        ("concatenate", ["f64[]"], {}, "concatenate: 0-d operands"),
        ("concatenate", ["f64[2, 2]", "f64[2, 3]"], {}, "concatenate: differ off axis 0"),
        ("slice", ["f64[2]"], {"start": (), "stop": (), "step": ()}, "slice: 0 slices for"),
        (
            "unslice",
            ["f64[3]"],
            {"shape": (4,), "start": (0,), "stop": (2,), "step": (1,)},
            "unslice: does not fill",
        ),
        ("take_add", ["f64[3]", "i64[2]"], {"shape": (4,)}, "take_add: does not fit"),
        (
            "slice_set",
            ["f64[4]", "f64[3]"],
            {"start": (0,), "stop": (2,), "step": (1,)},
            "slice_set: do not broadcast",
        ),
        (
            "slice_add",
            ["f64[4]", "f64[1, 2]"],
            {"start": (0,), "stop": (2,), "step": (1,)},
            "slice_add: do not broadcast",
        ),
        (
            "slice_set",
            ["f64[4, 4]", "f64[]"],
            {"start": (0,), "stop": (2,), "step": (1,)},
            "slice_set: 1 slices for",
        ),
        ("index_set", ["f64[4]", "i64[2]", "f64[3]"], {}, "index_set: do not broadcast"),
        ("index_add", ["f64[]", "i64[2]", "f64[]"], {}, "index_add: axis out of range"),
        (
            "split",
            ["f64[2, 5]"],
            {"indices_or_sections": 3, "axis": 1},
            r"split: 3 parts do not divide axis 1: \(2, 5\)",
        ),
        ("split", ["f64[]"], {"indices_or_sections": 1}, "split: axis out of range"),
    ],
)
def test_refuses_shapes(kind, types, attributes, message):
    with pytest.raises(ShapeError, match=f"^{message}"):
        result_of(kind, *types, **attributes)


def test_refuses_dtypes():
    with pytest.raises(DTypeError, match=r"^sub: not defined for: bool, bool"):
        result_of("sub", "b1[2]", "b1[2]")
    with pytest.raises(DTypeError, match=r"^floor: not defined for: complex128"):
        result_of("floor", "c128[2]")
    with pytest.raises(DTypeError, match=r"^sigmoid: not defined for: complex64"):
        result_of("sigmoid", "c64[2]")
    with pytest.raises(
        DTypeError, match=r"^take: indices are bool\nhint: indices are integers"
    ):
        result_of("take", "f64[2]", "b1[2]")
    with pytest.raises(DTypeError, match=r"^index_set: indices are float64"):
        result_of("index_set", "f64[2]", "f64[2]", "f64[2]")


def test_writing_widens_the_dtype():
    slices = {"start": (0,), "stop": (1,), "step": (1,)}
    assert str(result_of("slice_set", "f32[2]", "f64[1]", **slices)) == "f64[2]"
    assert str(result_of("index_add", "i64[2]", "i64[3]", "c64[]")) == "c128[2]"
    assert str(result_of("slice_add", "f64[?]", "f64[?]", **slices)) == "f64[?]"
    assert str(result_of("index_set", "f64[*]", "i64[3]", "f64[3]")) == "f64[*]"


def test_refuses_two_devices():
    with pytest.raises(DeviceError, match=r"^mul: on two devices: cuda:0, cpu"):
        result_of("mul", "f64[2]@cuda:0", "f64[2]")


def test_refuses_attributes_that_make_no_sense():
    with pytest.raises(TypeError, match=r"^add: alpha is not a number: str"):
        result_of("add", "f64[2]", "f64[2]", alpha="2")
    with pytest.raises(ValueError, match=r"^slice: step is zero"):
        result_of("slice", "f64[2]", start=(0,), stop=(2,), step=(0,))


WRONG = [
    ("sum", {"keepdims": "x"}, TypeError, "sum: keepdims is not True or False: 'x'"),
    ("sum", {"axis": "f8"}, TypeError, "sum: axis is not of integers: 'f8'"),
    ("sum", {"axis": (None, 3)}, TypeError, "sum: axis is not of integers"),
    ("sum", {"axis": (1, 1)}, ShapeError, "sum: axis twice"),
    ("expand_dims", {"axis": None}, TypeError, "expand_dims: axis is not of integers: None"),
    ("concatenate", {"axis": (0,)}, TypeError, "concatenate: axis is not of integers"),
    ("transpose", {"axes": "clip"}, TypeError, "transpose: axes is not a tuple: 'clip'"),
    ("transpose", {"axes": 1}, TypeError, "transpose: axes is not a tuple"),
    ("transpose", {"axes": (0, -2)}, ShapeError, "transpose: axes are no permutation"),
    ("transpose", {"axes": (0, 5)}, ShapeError, "transpose: axes are no permutation"),
    ("reshape", {"shape": "x"}, TypeError, "reshape: shape is not of integers: 'x'"),
    ("reshape", {"shape": None}, TypeError, "reshape: shape is not of integers: None"),
    ("reshape", {"shape": (2, -2)}, ShapeError, "reshape: negative dim in shape"),
    ("reshape", {"shape": (-1, -1)}, ShapeError, "reshape: not a shape"),
    ("broadcast_to", {"shape": (2, -1)}, ShapeError, "broadcast_to: negative dim in shape"),
    ("sum_to", {"shape": (2.0,)}, TypeError, "sum_to: shape is not of integers"),
    (
        "slice", {"start": (0,), "stop": (2,), "step": (0,)}, ShapeError,
        "slice: step is zero",
    ),
    (
        "slice", {"start": 0, "stop": (2,), "step": (1,)}, TypeError,
        "slice: start is not a tuple: 0",
    ),
    (
        "slice", {"start": (0,), "stop": ("x",), "step": (1,)}, TypeError,
        "slice: stop is not of integers",
    ),
    (
        "slice", {"start": (0,), "stop": (2, 3), "step": (1,)}, ShapeError,
        "slice: start, stop and step differ",
    ),
    ("astype", {"dtype": "nonsense"}, DTypeError, "astype: dtype: not a dtype: 'nonsense'"),
    ("astype", {"dtype": None}, DTypeError, "astype: dtype: not a dtype: None"),
    ("astype", {"dtype": "U3"}, DTypeError, "astype: dtype: unsupported dtype"),
    ("constant_like", {"value": "i8"}, TypeError, "constant_like: value is not a number"),
    ("constant_like", {"value": np.ones(2)}, TypeError, "constant_like: value is not a number"),
    ("constant", {"value": "x"}, TypeError, "constant: value is not a number: str"),
    ("constant", {"value": np.array(["x"])}, DTypeError, "constant: value: unsupported dtype"),
    ("constant", {"value": 1, "is_zero": "x"}, TypeError, "constant: is_zero is not True"),
    ("split", {"indices_or_sections": 0}, ShapeError, "split: not 1 to 65535 parts: 0"),
    ("split", {"indices_or_sections": 1 << 16}, ShapeError, "split: not 1 to 65535 parts"),
    (
        "split", {"indices_or_sections": 2.0}, TypeError,
        "split: indices_or_sections is not of integers: 2.0",
    ),
    (
        "split", {"indices_or_sections": (1, None)}, TypeError,
        "split: indices_or_sections is not of integers",
    ),
    ("add", {"alpha": "2"}, TypeError, "add: alpha is not a number: str"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attributes", "error", "message"), WRONG)
def test_refuses_attributes_of_another_kind_without_types(kind, attributes, error, message):
    count = len(OPS[kind].arguments)
    for types in ([None] * count, [TensorType("float64", (2, 2))] * count):
        with pytest.raises(error, match=f"^{message}"):
            infer(kind, types, attributes)


def test_takes_attributes_that_numpy_takes():
    some = {"keepdims": np.True_, "axis": np.int64(0)}
    assert result_of("sum", "f64[2, 3]", **some) == "f64[1, 3]"
    assert result_of("sum", "f64[2, 3]", axis=[0, 1]) == "f64[]"
    assert result_of("transpose", "f64[2, 3]", axes=(-1, 0)) == "f64[3, 2]"
    assert result_of("constant_like", "f32[2]", value=np.float32(2)) == "f32[]"
