"""Every op that PyTorch has too, beside PyTorch's own: values, cotangents, the second order.

Runs where torch is installed.  Singular points and ties are in test_torch_points.py.
"""

from math import prod

import numpy as np
import pytest

from stagedad.ir import Graph
from stagedad.ops import OPS
from stagedad.ops.samples import samples
from stagedad.run import compile
from stagedad.transform import differentiate, joint
from stagedad.types import CODES, TensorType

torch = pytest.importorskip("torch", reason="is held against torch where that is installed")

INEXACT = ("f32", "f64", "c64", "c128")

# Where PyTorch keeps what: linalg before its older namesakes in torch itself.
MODULES = (torch.linalg, torch, torch.special, torch.fft, torch.nn.functional)

# Ops whose function has another name.
NAMES = {
    "concatenate": "cat", "copy": "clone", "expand_dims": "unsqueeze", "fabs": "absolute",
    "equal": "eq", "invert": "bitwise_not", "left_shift": "bitwise_left_shift", "max": "amax",
    "min": "amin", "right_shift": "bitwise_right_shift", "rint": "round",
    "take_along_axis": "take_along_dim",
}  # fmt: skip

ATTRIBUTES = {"axes": "dim", "axis": "dim", "k": "diagonal", "keepdims": "keepdim"}

# Ops that PyTorch lacks.  An op that is neither here nor found makes a test fail.
ABSENT = {
    **dict.fromkeys(
        "basis_inverse over_gaps over_columns gauge_pivot cofactor".split(),
        "a part of the derivatives of decompositions, which are compared",
    ),
    **dict.fromkeys(
        "random_key random_uniform random_normal random_exponential random_integers "
        "random_permutation".split(),
        "draws other numbers",
    ),
    "hermitian": "its derivative is that among Hermitian matrices",
    "interior": "a part of the derivatives of real transforms, which are compared",
    "argpartition": "topk and kthvalue leave another order",
    "bitwise_count": "no such function",
    "cbrt": "no such function",
    "constant": "has no operands",
    "mul0": "no product whose zeros win",
    "recurrence": "no such function",
    "spacing": "no such function",
    "take_last": "no such function",
}

# Ops that PyTorch lacks for complex numbers, and those that it has no derivative of.
REAL = set(
    "argmax argmin argsort fmax fmin greater greater_equal less less_equal max maximum min "
    "minimum rint searchsorted sign sort".split()
)
UNDERIVED = {"floor_divide", "heaviside"}

# Ops of which PyTorch has a derivative at complex numbers, and stagedad refuses one.
REFUSED: set[str] = set()

# Their vectors are right up to a phase: compared are the squares of the magnitudes.
GAUGED = {"eig", "eigh", "qr", "svd"}

# They read a triangle.  Which cotangents of Hermitian matrices stand for the same is a matter
# of taste: both sides get the Hermitian part of a matrix, whose cotangents leave no choice.
HERMITIAN = {"cholesky", "eigh", "eigvalsh"}

# What the function asks of its operands, and the samples do not give.
PREPARED = {"searchsorted": lambda self, other: (np.sort(self), other)}


def named(op):
    """The function of the op's name, or None."""
    for module in MODULES:
        for name in (NAMES.get(op.kind, op.kind), *op.aliases):
            function = getattr(module, name, None)
            if callable(function):
                return function
    return None


def counterpart(op):
    """PyTorch's function of tensors and the op's attributes, or None."""
    if op.kind in OWN:
        return OWN[op.kind]
    function = None if op.kind in ABSENT else named(op)
    if function is None:
        return None
    if "keepdims" in op.attributes:
        return reduced(function)

    def call(*tensors, **attributes):
        given = {ATTRIBUTES.get(name, name): value for name, value in attributes.items()}
        return function(*tensors, **given)

    return call


def reduced(function):
    """A reduction over one axis as one over any."""

    def call(x, *, axis, keepdims):
        axes = range(x.ndim) if axis is None else np.atleast_1d(axis).astype(int) % x.ndim
        axes = [int(number) for number in axes]
        kept = [number for number in range(x.ndim) if number not in axes]
        last = prod(x.shape[number] for number in axes)
        flat = x.permute((*kept, *axes)).reshape((*(x.shape[number] for number in kept), last))
        found = function(flat, -1)
        if keepdims:
            dims = [1 if number in axes else dim for number, dim in enumerate(x.shape)]
            found = found.reshape(dims)
        return found

    return call


def astype(x, *, dtype):
    target = getattr(torch, np.dtype(dtype).name)
    if x.is_complex() and not target.is_complex:
        x = x != 0 if target is torch.bool else x.real
    return x.to(target)


def cumsum(x, *, axis, reverse):
    if reverse:
        return torch.cumsum(x.flip(axis), axis).flip(axis)
    return torch.cumsum(x, axis)


def unsqueeze(x, *, axis):
    axes = np.atleast_1d(axis)
    for number in sorted(axes % (x.ndim + len(axes))):
        x = x.unsqueeze(int(number))
    return x


def grid(shape, start, stop, step):
    """The indices of a slice; an axis in front, since nothing can be put into 0-d."""
    slices = map(slice, start, stop, step)
    places = [np.arange(dim)[each] for dim, each in zip(shape, slices, strict=True)]
    return tuple(torch.from_numpy(each.copy()) for each in np.ix_([0], *places))


def slice_put(x, value, start, stop, step, accumulate):
    at = grid(x.shape, start, stop, step)
    shape = torch.broadcast_shapes(*(places.shape for places in at))
    return x[None].index_put(at, value.expand(shape), accumulate=accumulate)[0]


def flat_places(x, indices, axis):
    """The axis from the front, and the indices as a list that counts from the front."""
    at = axis % x.ndim
    return at, indices.flatten() % max(x.shape[at], 1)


def taken(x, indices, axis):
    at = axis % x.ndim
    return (*x.shape[:at], *indices.shape, *x.shape[at + 1 :])


def take(x, indices, *, axis):
    at, places = flat_places(x, indices, axis)
    return torch.index_select(x, at, places).reshape(taken(x, indices, axis))


def rows(x, indices, value, axis):
    """`value` as what is written along one axis of `x`, the places in a list."""
    at = axis % x.ndim
    value = value.expand(taken(x, indices, axis))
    return value.reshape(*x.shape[:at], indices.numel(), *x.shape[at + 1 :])


def index_set(x, indices, value, *, axis):
    """One write after the other: index_put says nothing of equal indices."""
    at, places = flat_places(x, indices, axis)
    value = rows(x, indices, value, axis)
    for number in range(len(places)):
        x = torch.index_copy(x, at, places[number, None], value.narrow(at, number, 1))
    return x


def index_add(x, indices, value, *, axis):
    return torch.index_add(x, *flat_places(x, indices, axis), rows(x, indices, value, axis))


def convolved(x, y, padding):
    return torch.nn.functional.conv1d(x[None, None], y.flip(0)[None, None], padding=padding)[
        0, 0
    ]


# What neither a name nor the names of attributes find.
OWN = {
    "add_along_axis": lambda x, indices, *, shape, axis: x.new_zeros(shape).scatter_add(
        axis, indices % max(shape[axis], 1), x
    ),
    "argsort": lambda x, *, axis, stable: torch.argsort(x, dim=axis, stable=stable),
    "astype": astype,
    "broadcast_like": lambda x, like: x.expand_as(like),
    "broadcast_to": lambda x, *, shape: x.expand(shape),
    "concatenate": lambda *arrays, axis: torch.cat(arrays, axis),
    "conj": lambda x: torch.conj(x).resolve_conj(),
    "constant_like": lambda x, *, value: x.new_tensor(value),
    "convolve": lambda x, y: convolved(x, y, len(y) - 1),
    "convolve_valid": lambda x, y: convolved(x, y, 0),
    "cumsum": cumsum,
    "expand_dims": unsqueeze,
    "frexp_exponent": lambda x: torch.frexp(x)[1],
    "imag": lambda x: torch.imag(x) if x.is_complex() else torch.zeros_like(x),
    "index_add": index_add,
    "index_set": index_set,
    # Not its own ldexp, whose derivative is wrong: see test_torch_points.py.
    "ldexp": lambda x, exponent: x * torch.exp2(exponent.to(x.dtype)),
    "pinv": lambda x, *, rcond: torch.linalg.pinv(x, rtol=rcond),
    "reshape": lambda x, *, shape: x.reshape(shape),
    "reshape_like": lambda x, like: x.reshape(like.shape),
    "searchsorted": lambda x, values, *, right: torch.searchsorted(x, values, right=right),
    "sinc": lambda x, **_: torch.sinc(x),
    "slice": lambda x, **where: x[None][grid(x.shape, **where)][0],
    "slice_add": lambda x, value, **where: slice_put(x, value, **where, accumulate=True),
    "slice_set": lambda x, value, **where: slice_put(x, value, **where, accumulate=False),
    "sort": lambda x, *, axis: torch.sort(x, dim=axis, stable=True)[0],
    "split": lambda x, *, indices_or_sections, axis: torch.tensor_split(
        x, indices_or_sections, axis
    ),
    "squeeze": lambda x, *, axis: x.squeeze() if axis is None else x.squeeze(axis),
    "stop_gradient": lambda x: x.detach(),
    "sum_to": lambda x, *, shape: x.sum_to_size(shape),
    "sum_to_like": lambda x, like: x.sum_to_size(like.shape),
    "svd": lambda x: torch.linalg.svd(x, full_matrices=False),
    "take": take,
    "take_add": lambda x, indices, *, shape, axis: index_add(
        x.new_zeros(shape), indices, x, axis=axis
    ),
    "transpose": lambda x, *, axes: x.permute(axes or tuple(range(x.ndim))[::-1]),
    "unslice": lambda x, *, shape, **where: slice_put(
        x.new_zeros(shape), x, **where, accumulate=False
    ),
}


class Both:
    """One call on both sides: a graph of arrays here, a function of tensors there."""

    def __init__(self, laws, call):
        self.laws, self.call = laws, call
        prepare = PREPARED.get(call.op.kind, lambda *arrays: arrays)
        self.arrays = prepare(*call.arrays)
        self.tensors = [torch.from_numpy(np.array(array, order="C")) for array in self.arrays]
        self.leaves = [x.requires_grad_() for x in self.tensors if takes_gradient(x)]
        self.graph = self.build()

    def build(self):
        """The op as a graph."""
        graph, op = Graph(), self.call.op
        inputs = [graph.add_input(TensorType.of(array)) for array in self.arrays]
        given = list(inputs)
        if op.kind in HERMITIAN:
            turned = graph.insert("conj", swapped(graph, inputs[0]))
            total = graph.insert("add", inputs[0], turned)
            given = [
                graph.insert("mul", total, graph.insert("constant_like", total, value=0.5))
            ]
        found = graph.insert(op.kind, *given, **self.call.attributes)
        for result in self.laws.results_of(found):
            if op.kind in GAUGED and len(result.type.shape) == len(inputs[0].type.shape):
                square = graph.insert("mul", result, graph.insert("conj", result))
                result = graph.insert("real", square)
            graph.register_output(result)
        return graph

    def results(self):
        """What PyTorch gives for the tensors, as a list."""
        op, given = self.call.op, self.tensors
        if op.kind in HERMITIAN:
            given = [(given[0] + given[0].mH) * 0.5]
        attributes = {**op.attributes, **self.call.attributes}
        found = counterpart(op)(*given, **attributes)
        found = list(found) if isinstance(found, tuple | list) else [found]
        if op.kind in GAUGED:
            dims = given[0].ndim
            found = [torch.real(x * x.conj()) if x.ndim == dims else x for x in found]
        return found

    def pull(self, gradient, arrays, cotangents):
        """The cotangents of `arrays` by stagedad."""
        pair = compile(gradient)
        outputs = pair.f(*arrays)
        given = [cotangents.get(j, np.zeros_like(outputs[j])) for j in gradient.df_input_vjps]
        return pair.df(*self.laws.captured(gradient, arrays, outputs), *given)

    def compare(self, found, wanted):
        """Compare arrays with tensors, in types too; return how many there were."""
        for ours, theirs in zip(found, wanted, strict=True):
            theirs = theirs.detach().resolve_conj().numpy()
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            if ours.dtype.kind not in "fc":
                np.testing.assert_array_equal(ours, theirs)
                continue
            largest = float(np.max(np.abs(theirs), initial=1, where=np.isfinite(theirs)))
            epsilon = self.laws.epsilon(*(x for x in self.arrays if x.dtype.kind in "fc"))
            epsilon = max(epsilon, self.laws.epsilon(ours))
            # What decompositions lose grows with their condition.
            ulps = 8192 if self.call.op.family == "linalg" else 64
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=ulps * epsilon * largest)
        return len(found)


def swapped(graph, matrix):
    """The transposes of a stack of matrices."""
    axes = list(range(len(matrix.type.shape)))
    return graph.insert("transpose", matrix, axes=(*axes[:-2], axes[-1], axes[-2]))


def takes_gradient(x):
    return x.is_floating_point() or x.is_complex()


def pulled(results, leaves, cotangents):
    """The cotangents of `leaves` by PyTorch, zeros for none; they have a gradient too."""
    active = [number for number, x in enumerate(results) if x.requires_grad]
    found = [None] * len(leaves)
    if active:
        found = torch.autograd.grad(
            [results[number] for number in active],
            leaves,
            [cotangents[number] for number in active],
            create_graph=True,
            allow_unused=True,
        )
    return [
        torch.zeros_like(x) if each is None else each
        for each, x in zip(found, leaves, strict=True)
    ]


def is_refused(op, dtype):
    """Whether PyTorch does not take the dtype."""
    return op.kind in REAL and CODES[dtype].kind == "c"


def is_beyond(call):
    """Whether PyTorch has not this call of the op."""
    if call.op.kind == "sinc":
        return call.attributes.get("order", 0) > 0
    # Its transforms fail on arrays without elements.
    return call.op.family == "fft" and call.layout == "empty"


FOUND = [op for op in OPS.values() if counterpart(op) is not None]
TAKEN = [(op, dtype) for op in FOUND for dtype in INEXACT if samples(op.kind, CODES[dtype])]
WHOLE = [(op, "i64") for op in FOUND if op not in {other for other, _ in TAKEN}]
COMPARED = [case for case in TAKEN if not is_refused(*case)]
PULLED = [
    (op, dtype)
    for op, dtype in COMPARED
    if op.kind not in UNDERIVED and (op.is_complex or CODES[dtype].kind == "f")
]


def over(cases):
    ids = [f"{op.kind}-{dtype}" for op, dtype in cases]
    return pytest.mark.parametrize(("op", "dtype"), cases, ids=ids)


@pytest.fixture
def calls(op, dtype, laws):
    """The calls of an op on both sides."""
    return [Both(laws, call) for call in laws.make_calls(op, dtype) if not is_beyond(call)]


def test_every_op_has_a_counterpart_or_is_listed():
    assert {op.kind for op in OPS.values() if op not in FOUND} == set(ABSENT)


def test_no_list_names_what_there_is_not():
    assert {op.kind for op, dtype in TAKEN if is_refused(op, dtype)} == REAL & set(OPS)
    linalg = GAUGED | set(OWN) | set(NAMES)
    assert all(kind in OPS or hasattr(torch.linalg, kind) for kind in linalg)


@over(COMPARED + WHOLE)
def test_values_agree(calls):
    assert sum(
        each.compare(compile(each.graph)(*each.arrays), each.results()) for each in calls
    )


@over(PULLED)
def test_cotangents_agree(calls, laws):
    for each in calls:
        gradient = differentiate(each.graph, each.call.flags)
        seeds = laws.seeds(each.call, each.graph.outputs)
        found = each.pull(gradient, each.arrays, seeds)
        results = each.results()
        cotangents = [
            torch.from_numpy(seeds[j]) if j in seeds else None for j in range(len(results))
        ]
        each.compare(found, pulled(results, each.leaves, cotangents))


@over([(op, dtype) for op, dtype in PULLED if dtype in ("f64", "c128")])
def test_second_order_agrees(calls, laws):
    for each in calls:
        gradient = differentiate(each.graph, each.call.flags)
        seeds = laws.seeds(each.call, each.graph.outputs)
        results = each.results()
        used = [j for j in gradient.df_input_vjps if j < len(results)]
        both = joint(gradient)
        outer = laws.seeds(each.call, both.outputs)
        second = differentiate(both, [value.type.is_inexact for value in both.inputs])
        found = each.pull(second, [*each.arrays, *(seeds[j] for j in used)], outer)

        moved = {j: torch.from_numpy(u).requires_grad_() for j, u in seeds.items()}
        results += pulled(results, each.leaves, [moved.get(j) for j in range(len(results))])
        leaves = [*each.leaves, *(moved[j] for j in used)]
        cotangents = [
            torch.from_numpy(outer[j]) if j in outer else None for j in range(len(results))
        ]
        each.compare(found, pulled(results, leaves, cotangents))


@over([case for case in TAKEN if is_refused(*case)])
def test_what_torch_refuses_is_listed(calls):
    def raises(each):
        try:
            each.results()
        except RuntimeError:
            return True
        return False

    assert any(map(raises, calls))


@over([case for case in COMPARED if case[0].kind in UNDERIVED])
def test_what_torch_does_not_derive_is_listed(calls):
    for each in calls:
        (result,) = each.results()
        with pytest.raises(RuntimeError, match="not implemented"):
            pulled([result], each.leaves, [torch.ones_like(result)])


def test_complex_derivatives_that_only_torch_has_are_listed(laws):
    found = set()
    for op, dtype in COMPARED:
        if dtype == "c128" and not op.is_complex and op.kind not in UNDERIVED:
            for call in laws.make_calls(op, dtype):
                if any(result.requires_grad for result in Both(laws, call).results()):
                    found.add(op.kind)
    assert found == REFUSED


def test_of_what_is_overwritten_only_torch_has_a_cotangent(laws):
    """It says that writes to equal places are undefined; the last one stays, on both sides."""
    x, places, value = np.zeros(3), np.array([1, 1]), np.array([5.0, 7.0])
    call = laws.Call(OPS["index_set"], (x, places, value), {"axis": 0}, "plain")
    found = call.pull(call.gradient, {0: np.ones(3)})
    np.testing.assert_array_equal(found[2], [0, 1])

    leaf = torch.tensor(value, requires_grad=True)
    result = torch.zeros(3, dtype=leaf.dtype).index_put((torch.from_numpy(places),), leaf)
    np.testing.assert_array_equal(result.detach(), [0, 7, 0])
    np.testing.assert_array_equal(
        pulled([result], [leaf], [torch.ones_like(result)])[0], [1, 1]
    )
