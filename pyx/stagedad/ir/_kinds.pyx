"""The process-wide table of kinds, and the types that their rules give."""

import keyword
import re

from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF, PyObject
from libc.stdint cimport int32_t
from libc.string cimport memset

import numpy as np

from stagedad.errors import DTypeError
from stagedad.ops import OPS, REQUIRED, find, infer
from stagedad.ops.registry import LISTENERS
from stagedad.types import TensorType, canonical_dtype

# What attributes hold as it is; `plain` brings other values into one of these forms.
PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes])
# The plain value of an instance of a subclass, whatever that class has made of its methods.
_PLAIN_VALUE = {
    int: int.__int__, float: float.__float__, complex: complex.__complex__, str: str.__str__,
    bytes: lambda given: bytes(memoryview(given)),
}
# What has a text form: Python neither writes numbers nor reads nests without a bound.
cdef enum:
    MOST_BITS = 14_000
    MOST_NESTED = 50
KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")

# ORDER KINDS: PARAM and RETURN of _slabs.pxd come first.
cdef dict kind_ids = {"param": 0, "return": 1}     # name or alias -> index
cdef list kind_names = ["param", "return"]
cdef list kind_defaults = [None, None]                  # attribute defaults; None: no such op
cdef int32_t CONSTANT = kind_index("constant")
INFERRED_LIMIT = 16384
cdef dict inferred = {}                                     # (kind, types, attributes) -> types


cdef int32_t kind_index(str kind) except -1:
    """Intern `kind`; aliases give the index of the canonical name."""
    cdef PyObject *known = PyDict_GetItem(kind_ids, kind)
    cdef str canonical
    if known != NULL:
        return <int32_t><object>known
    if not KIND.match(kind):
        raise ValueError(f"create: not the name of an op: {kind!r}")
    canonical = find(kind) or kind
    if canonical not in kind_ids:
        kind_names.append(canonical)
        kind_defaults.append(dict(OPS[canonical].attributes) if canonical in OPS else None)
        kind_ids[canonical] = len(kind_names) - 1
    kind_ids[kind] = kind_ids[canonical]
    return <int32_t>kind_ids[kind]


def note_op(str kind not None):
    """Take note of a new op: graphs may have named its kind when there was none."""
    cdef PyObject *known = PyDict_GetItem(kind_ids, kind)
    if known != NULL:
        kind_defaults[<int32_t><object>known] = dict(OPS[kind].attributes)
        clear_inferred()


LISTENERS.append(note_op)


cdef str kind_name(int32_t kind):
    return <str>kind_names[kind]


cdef dict own_attributes(int32_t kind, dict attributes):
    """Return the attributes that differ from their declared default, or None for none.

    Raises: TypeError for a name that the op does not have or a value that has no text form.
    """
    cdef dict defaults = kind_defaults[kind]
    cdef dict own
    if not attributes:
        return None
    own = {}
    for name, given in attributes.items():
        if type(given) not in PLAIN or type(given) is int:
            given = plain(kind, name, given, own, 0)
        if defaults is None:
            if not (isinstance(name, str) and name.isascii() and name.isidentifier()
                    and not keyword.iskeyword(name)):
                raise TypeError(f"{kind_names[kind]}: not the name of an attribute: {name!r}")
        elif name not in defaults:
            raise TypeError(
                f"{kind_names[kind]}: no attribute {name!r}\n"
                f"hint: {', '.join(defaults) or 'it has none'}"
            )
        elif is_default(defaults[name], given):
            continue
        own.setdefault(name, given)
    return own or None


cdef object plain(int32_t kind, object name, object given, dict own, int depth):
    """The value in the form that nodes keep: lists as tuples, NumPy's scalars as Python's."""
    cdef bint is_constant = name == "value" and kind_names[kind] == "constant"
    if type(given) is int:
        if given.bit_length() > MOST_BITS:
            raise ValueError(
                f"{kind_names[kind]}: attribute {name!r}: {given.bit_length()} bits of number")
        return given
    if type(given) in PLAIN:
        return given
    if is_constant and depth == 0 and isinstance(given, (list, tuple)):
        return np.array(given)
    if isinstance(given, (list, tuple)):
        if depth >= MOST_NESTED:
            raise ValueError(
                f"{kind_names[kind]}: attribute {name!r}: tuples nest more than "
                f"{MOST_NESTED} deep")
        return tuple([plain(kind, name, item, own, depth + 1) for item in given])
    if is_constant:
        if isinstance(given, np.ndarray):
            return given
        if isinstance(given, np.generic):        # 2.5 of float32 is no float
            if type(np.asarray(given.item())[()]) is not type(given):
                own["dtype"] = given.dtype
            return given.item()
    if isinstance(given, np.generic) and type(given.item()) in PLAIN:
        return given.item()
    if isinstance(given, type) and issubclass(given, (np.generic, bool, int, float, complex)):
        return np.dtype(given)
    if isinstance(given, np.dtype):
        return given
    for base, value in _PLAIN_VALUE.items():      # enumerations and other subclasses
        if isinstance(given, base):
            return plain(kind, name, value(given), own, depth)
    if kind_defaults[kind] is not None and not (
        name == "state" and kind_names[kind] == "random_key" and type(given) is np.ndarray
    ):
        raise TypeError(
            f"{kind_names[kind]}: attribute {name!r} cannot hold a {type(given).__name__}\n"
            "hint: numbers, strings, dtypes, None, and tuples of them; arrays are constants"
        )
    if isinstance(given, TensorType):
        return given
    if type(given) is np.ndarray:
        try:
            canonical_dtype(given.dtype)
        except DTypeError as error:
            raise DTypeError(f"{kind_names[kind]}: attribute {name!r}: {error}") from None
        return given
    from stagedad.ir._graph import Graph, frozen_copy
    if isinstance(given, Graph):
        return frozen_copy(given)
    raise TypeError(
        f"{kind_names[kind]}: attribute {name!r} cannot hold a {type(given).__name__}\n"
        "hint: numbers, strings, dtypes, types, arrays, graphs, None, and tuples of them"
    )


cdef bint is_default(object default, object given) except -1:
    return default is given or (
        default is not REQUIRED and type(default) is type(given) and bool(default == given)
    )


cdef tuple attribute_key(dict attributes):
    """What tells attributes apart: 1, 1.0 and True hash alike but mean different things."""
    cdef list parts = []
    for name, value in attributes.items():
        parts.append(name)
        parts.append(value)
        parts.append(tuple([type(item) for item in value]) if type(value) is tuple
                     else type(value))
    return tuple(parts)


cdef tuple infer_types(int32_t kind, tuple types, dict attributes):
    """Types of the outputs by the op's rule; remembered, since types are interned."""
    cdef tuple key, found
    if kind_defaults[kind] is None:      # no op, but it may become one
        return infer(kind_name(kind), types, attributes or {})
    if not attributes:
        key = (kind, types)
    elif (kind == CONSTANT and type(attributes.get("value")) is float
            and len(attributes) == 1 + ("dtype" in attributes)):
        # One entry for all floats, which a function may have thousands of.
        key = (kind, float, attributes.get("dtype"))
    else:
        key = (kind, types, attribute_key(attributes))
    try:
        found = inferred.get(key)
    except TypeError:                    # an array among the attributes
        return infer(kind_name(kind), types, attributes or {})
    if found is None:
        found = infer(kind_name(kind), types, attributes or {})
        if len(inferred) >= INFERRED_LIMIT:
            inferred.clear()
        inferred[key] = found
    return found


cdef enum:
    QUICK = 256          # places for the types of small nodes without attributes


# References are owned: a type that died could give its address to another.
cdef struct Quick:
    PyObject *operands[2]
    PyObject *types
    int32_t kind
    int32_t count

cdef Quick quick[QUICK]


cdef Quick *quick_place(int32_t kind, int32_t count, PyObject **operands) noexcept:
    cdef size_t mixed = <size_t>kind * 31 + <size_t>count
    cdef int32_t i
    for i in range(count):
        mixed = mixed * 31 + (<size_t>operands[i] >> 4)
    return &quick[(mixed ^ mixed >> 8) % QUICK]


cdef tuple quick_types(int32_t kind, int32_t count, PyObject **operands):
    """As `infer_types`, for up to two operands and no attributes; NULL is an unknown type."""
    cdef Quick *place = quick_place(kind, count, operands)
    cdef tuple found
    cdef list types
    cdef int32_t i
    if place.types != NULL and place.kind == kind and place.count == count and (
            count == 0 or place.operands[0] == operands[0]) and (
            count < 2 or place.operands[1] == operands[1]):
        return <tuple>place.types
    types = []
    for i in range(count):
        types.append(None if operands[i] == NULL else <object>operands[i])
    if kind_defaults[kind] is None:
        return infer_types(kind, tuple(types), None)
    found = infer_types(kind, tuple(types), None)
    place = quick_place(kind, count, operands)
    Py_XDECREF(place.types)
    place.types = NULL
    for i in range(2):
        Py_XDECREF(place.operands[i])
        place.operands[i] = operands[i] if i < count else NULL
        Py_XINCREF(place.operands[i])
    Py_INCREF(found)
    place.types = <PyObject *>found
    place.kind = kind
    place.count = count
    return found


def inferred_count():
    """How many answers of type rules are remembered."""
    return len(inferred)


def clear_inferred():
    """Forget the answers of type rules."""
    cdef int32_t i, k
    cdef Quick old
    inferred.clear()
    for i in range(QUICK):
        old = quick[i]
        memset(&quick[i], 0, sizeof(Quick))
        Py_XDECREF(old.types)
        for k in range(2):
            Py_XDECREF(old.operands[k])


cdef dict attribute_defaults(int32_t kind):
    """Declared attributes and their defaults; None for a kind that is not in the table."""
    return kind_defaults[kind]
