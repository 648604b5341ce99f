"""The type of a value: dtype, shape and device; promotion and broadcasting.

A shape may be unknown in whole (`None`) or in part (a dim is `None`).  What
NumPy decides, NumPy is asked: promotion is `np.result_type` on the dtypes that
stagedad carries.
"""

from __future__ import annotations

import re
from operator import index
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final
from weakref import WeakValueDictionary

import numpy as np

from stagedad.errors import DeviceError, DTypeError, ParseError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

DType: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = "tuple[int | None, ...] | None"

CODES: Final[dict[str, DType]] = {
    code: np.dtype(name)
    for code, name in {
        "b1": "bool",
        "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
        "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
        "f16": "float16", "f32": "float32", "f64": "float64",
        "c64": "complex64", "c128": "complex128",
    }.items()
}  # fmt: skip
"""Code in type texts -> dtype: everything that stagedad carries."""

_CODE_OF: Final[dict[DType, str]] = {dtype: code for code, dtype in CODES.items()}
_TEXT = re.compile(r"\s*([a-z]\w*)\s*\[([^\[\]]*)\]\s*(?:@\s*([\w:]+)\s*)?")
_DEVICE = re.compile(r"cpu|cuda:\d+")
_WAY_OUT = "stagedad carries " + ", ".join(CODES) + "; convert with x.astype(...)"


@final
class TensorType:
    """What is known of an array before it exists.

    Equal arguments give the same object, so types compare by `is`.  `dtype` is
    native and one of `CODES`; `shape` is None where even the rank is unknown.

    >>> str(TensorType("float64", (2, None)))
    'f64[2, ?]'
    """

    __slots__ = ("__weakref__", "_known", "device", "dtype", "is_inexact", "shape")

    dtype: DType
    shape: tuple[int | None, ...] | None
    device: str
    is_inexact: bool
    """Whether the dtype is float or complex: whether values carry cotangents."""
    _known: int | None

    def __new__(
        cls,
        dtype: DTypeLike,
        shape: tuple[int | None, ...] | None = None,
        device: str = "cpu",
    ) -> TensorType:
        """Return the one type of `dtype`, `shape` and `device`.

        Raises: DTypeError if stagedad does not carry the dtype; ShapeError if a
                dim is negative; DeviceError if the device is not `cpu` or `cuda:N`.
        """
        try:
            return _recent[dtype, shape, device]
        except (KeyError, TypeError):
            return _intern(cls, dtype, shape, device)

    @classmethod
    def of(cls, array: np.ndarray[Any, Any] | np.generic) -> TensorType:
        """Return the type of an array or NumPy scalar.

        Raises: DTypeError if its dtype is not one of `CODES`.
        """
        return cls(array.dtype, array.shape)

    @property
    def ndim(self) -> int | None:
        """Number of axes; None where unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def size(self) -> int | None:
        """Number of elements; None where a dim is unknown."""
        return self._known

    @property
    def nbytes(self) -> int | None:
        """Bytes of the elements; None where a dim is unknown."""
        return None if self._known is None else self._known * self.dtype.itemsize

    @property
    def is_static(self) -> bool:
        """Whether every dim is known."""
        return self._known is not None

    def with_dtype(self, dtype: DTypeLike) -> TensorType:
        """Return the same type with another dtype."""
        return TensorType(dtype, self.shape, self.device)

    def with_shape(self, shape: tuple[int | None, ...] | None) -> TensorType:
        """Return the same type with another shape."""
        return TensorType(self.dtype, shape, self.device)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"TensorType: immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"TensorType: immutable: {name}")

    def __str__(self) -> str:
        if self.shape is None:
            dims = "*"
        else:
            dims = ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        where = "" if self.device == "cpu" else f"@{self.device}"
        return f"{_CODE_OF[self.dtype]}[{dims}]{where}"

    def __repr__(self) -> str:
        return f"TensorType({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.dtype, self.shape, self.device)

    def __copy__(self) -> TensorType:
        return self

    def __deepcopy__(self, memo: object) -> TensorType:
        return self


# Types live as long as someone holds them; the recent ones are also held here,
# because a plain dict answers in a third of the time.
_types: WeakValueDictionary[tuple[Any, ...], TensorType] = WeakValueDictionary()
_recent: dict[Any, TensorType] = {}
_RECENT_LIMIT = 4096
_lock = Lock()


def _intern(cls: type[TensorType], dtype: DTypeLike, shape: Shape, device: str) -> TensorType:
    """Check and normalise the arguments, and return their one type."""
    known = canonical_dtype(dtype)
    dims = None if shape is None else _dims(shape)
    if not isinstance(device, str) or (device != "cpu" and not _DEVICE.fullmatch(device)):
        raise DeviceError(f"TensorType: unknown device: {device!r}", hint="'cpu' or 'cuda:0'")
    key = (known, dims, device)
    with _lock:
        found = _types.get(key)
        if found is None:
            found = object.__new__(cls)
            count: int | None = None if dims is None else 1
            for dim in dims or ():
                count = None if dim is None or count is None else count * dim
            for name, value in (
                ("dtype", known),
                ("shape", dims),
                ("device", device),
                ("is_inexact", known.kind in "fc"),
                ("_known", count),
            ):
                object.__setattr__(found, name, value)
            _types[key] = found
        if len(_recent) >= _RECENT_LIMIT:
            _recent.clear()
        _recent[key] = found
    return found


def _dims(shape: Any) -> tuple[int | None, ...]:
    try:
        dims = tuple(shape)
    except TypeError:
        hint = f"({shape},) has one axis, () none"
        problem = "a shape is a tuple of dims, or None"
        raise ShapeError("TensorType", problem, shape, hint=hint) from None
    return tuple(_dim(dim, shape) for dim in dims)


def _dim(dim: object, shape: object) -> int | None:
    if dim is None:
        return None
    try:
        size = index(dim)  # type: ignore[arg-type]
    except TypeError:
        raise ShapeError("TensorType", "dims are integers or None", shape) from None
    if size < 0:
        raise ShapeError("TensorType", "negative dim", shape)
    return size


def canonical_dtype(dtype: DTypeLike, op: str = "TensorType") -> DType:
    """Return the native dtype of `CODES` that equals `dtype`.

    A text means what it means to NumPy: `"i8"` has eight bytes here, and eight
    bits in the text of a type.

    Raises: DTypeError if stagedad does not carry it.
    """
    try:
        given = np.dtype(_no_default(dtype))
    except (TypeError, ValueError, SyntaxError) as error:
        raise DTypeError(f"{op}: not a dtype: {dtype!r}", op=op, hint=_WAY_OUT) from error
    native = given if given.isnative else given.newbyteorder("=")
    code = _CODE_OF.get(native)
    if code is None:
        raise DTypeError(f"{op}: unsupported dtype: {given}", op=op, hint=_WAY_OUT)
    return CODES[code]


def _no_default(dtype: DTypeLike) -> DTypeLike:
    if dtype is None:  # which NumPy takes for float64
        raise TypeError("None is not a dtype")
    return dtype


def dtype_code(dtype: DTypeLike) -> str:
    """Return the code of `dtype` in type texts: `float64` -> `f64`.

    Raises: DTypeError if stagedad does not carry it.
    """
    return _CODE_OF[canonical_dtype(dtype)]


def parse_type(text: str) -> TensorType:
    """Return the type that `text` writes: the inverse of `str`.

    Raises: ParseError if it is none.

    >>> parse_type("f32[2, ?]@cuda:0").shape
    (2, None)
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ParseError(
            f"type: not a type: {text!r}", hint="as 'f64[2, 3]', 'f64[]', 'f64[*]'"
        )
    code, inside, device = match.groups()
    if code not in CODES:
        raise ParseError(
            f"type: unknown dtype {code!r}: {text!r}", hint="one of " + " ".join(CODES)
        )
    if device is not None and not _DEVICE.fullmatch(device):
        raise ParseError(f"type: unknown device {device!r}: {text!r}", hint="cpu or cuda:0")
    return TensorType(CODES[code], _parse_shape(inside.strip(), text), device or "cpu")


def _parse_shape(inside: str, text: str) -> Shape:
    if inside == "*":
        return None
    dims: list[int | None] = []
    for part in inside.split(",") if inside else ():
        word = part.strip()
        if word != "?" and not (word.isascii() and word.isdigit()):
            raise ParseError(f"type: not a dim: {word!r}: {text!r}", hint="a number or ?")
        dims.append(None if word == "?" else int(word))
    return tuple(dims)


def as_type(given: TensorType | str | None) -> TensorType | None:
    """Return `given` as a type: a text is parsed, None (unknown) stays.

    Raises: ParseError if a text is no type; TypeError if it is anything else.
    """
    if given is None or isinstance(given, TensorType):
        return given
    if isinstance(given, str):
        return parse_type(given)
    raise TypeError(f"type: expected a TensorType, a text or None: {type(given).__name__}")


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """Return the shape that `shapes` broadcast to; unknown where it is not decided.

    A dim of None gives way to a known dim other than 1, as it must be that or 1.

    Raises: ShapeError naming `op` if they do not broadcast.
    """
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    result: list[int | None] = []
    for axis in range(-max(map(len, known), default=0), 0):
        dim: int | None = 1
        for shape in known:
            here = shape[axis] if -axis <= len(shape) else 1
            if here == 1 or here == dim:
                continue
            if dim in (1, None):
                dim = here
            elif here is not None:
                raise ShapeError(op, "do not broadcast", *known)
        result.append(dim)
    return tuple(result)


def promote(op: str, *dtypes: DTypeLike) -> DType:
    """Return the dtype that `dtypes` promote to, as `np.result_type` of arrays.

    Raises: DTypeError naming `op` if stagedad does not carry one of them.
    """
    known = [canonical_dtype(dtype, op) for dtype in dtypes]
    return known[0] if len(known) == 1 else canonical_dtype(np.result_type(*known), op)
