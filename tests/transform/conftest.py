"""What the tests of transforms share: random programs, and ways to run a graph.

A program is made at random together with its values and their derivatives along one random
direction of its inputs, by the dual numbers of `DUALS`, which know nothing of the library.
"""

import random

import numpy as np
import pytest

import stagedad as sd
from stagedad.ops import evaluate
from stagedad.types import TensorType

LIMIT, STEEP = 20, 200  # of values and derivatives, so that double precision is enough
KINK = 1e-4  # how near to a jump or a tie no computed value may come


@pytest.fixture(scope="session")
def run():
    """`run(graph, arrays)`: the outputs, node by node with NumPy, no planner involved."""
    return lambda graph, arrays: Walk(graph)(*arrays)


@pytest.fixture(scope="session")
def walk():
    """`walk(graph)`: as `run` of that graph, but read once for many runs."""
    return Walk


@pytest.fixture(scope="session")
def random_program():
    """`random_program(seed, ...)`: a Program of ops of every sort."""
    return Program


@pytest.fixture(scope="session")
def complex_program():
    """`complex_program(seed)`: one of real and complex values."""
    return lambda seed: Program(seed, COMPLEX)


@pytest.fixture(scope="session")
def smooth_program():
    """`smooth_program(seed)`: one that has all derivatives, and complex values too."""
    return lambda seed: Program(seed, SMOOTH, integers=0.1, length=8)


class Walk:
    """A graph as lists, to be run node by node with NumPy again and again."""

    def __init__(self, graph):
        at = {value: i for i, value in enumerate(graph.inputs)}
        self.steps = []
        for node in graph.nodes():
            reads = [at[value] for value in node.inputs]
            self.steps.append((node.kind, reads, dict(node.attributes)))
            for value in node.outputs:
                at[value] = len(at)
        self.number = at
        self.returned = [at[value] for value in graph.outputs]

    def __call__(self, *arrays):
        values = list(arrays)
        for kind, reads, attributes in self.steps:
            values += evaluate(kind, [values[i] for i in reads], attributes)
        return [np.asarray(values[i]) for i in self.returned]


# The oracle: each kind's results and their derivatives


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def larger(x, y, u, v):
    return np.where(x > y, u, np.where(x < y, v, (u + v) / 2))


def parts(x, indices_or_sections, axis=0):
    return np.split(x, indices_or_sections, axis)


def cut(x, start, stop, step):
    return x[tuple(map(slice, start, stop, step))]


def scaled(y, alpha):
    return y if alpha == 1 else alpha * y


def linear(function):
    """The derivative of a linear function is its value at the derivatives."""
    return lambda x, u, **attributes: (function(x, **attributes), function(u, **attributes))


def stepwise(function):
    return lambda x, _, **attributes: (function(x, **attributes), None)


def comparison(function):
    return lambda x, y, *_: (function(x, y), None)


# Kind -> function of the operands, then their derivatives, then the attributes.
DUALS = {
    "add": lambda x, y, u, v, alpha=1: (np.add(x, scaled(y, alpha)), u + alpha * v),
    "sub": lambda x, y, u, v, alpha=1: (np.subtract(x, scaled(y, alpha)), u - alpha * v),
    "mul": lambda x, y, u, v: (np.multiply(x, y), u * y + x * v),
    "div": lambda x, y, u, v: (np.divide(x, y), u / y - v * x / (y * y)),
    "neg": lambda x, u: (np.negative(x), -u),
    "exp": lambda x, u: (np.exp(x), u * np.exp(x)),
    "sin": lambda x, u: (np.sin(x), u * np.cos(x)),
    "cos": lambda x, u: (np.cos(x), -u * np.sin(x)),
    "tanh": lambda x, u: (np.tanh(x), u / np.cosh(x) ** 2),
    "sigmoid": lambda x, u: (sigmoid(x), u * sigmoid(x) * sigmoid(-x)),
    "square": lambda x, u: (np.square(x), 2 * x * u),
    "abs": lambda x, u: (np.abs(x), np.sign(x) * u),
    "maximum": lambda x, y, u, v: (np.maximum(x, y), larger(x, y, u, v)),
    "minimum": lambda x, y, u, v: (np.minimum(x, y), larger(y, x, u, v)),
    "where": lambda c, x, y, _, u, v: (np.where(c, x, y), np.where(c, u, v)),
    "copysign": lambda x, y, u, _: (np.copysign(x, y), np.sign(x) * np.copysign(1, y) * u),
    "less": comparison(np.less),
    "greater_equal": comparison(np.greater_equal),
    "logical_and": comparison(np.logical_and),
    "floor": stepwise(np.floor),
    "sign": stepwise(np.sign),
    "stop_gradient": stepwise(lambda x: x),
    "astype": lambda x, u, dtype: (x.astype(dtype), None if dtype == "i8" else u),
    "sum": linear(np.sum),
    "mean": linear(np.mean),
    "real": linear(np.real),
    "imag": linear(np.imag),
    "conj": linear(np.conj),
    "transpose": linear(np.transpose),
    "reshape": linear(np.reshape),
    "broadcast_to": linear(np.broadcast_to),
    "expand_dims": linear(np.expand_dims),
    "slice": linear(cut),
    "split": linear(parts),
    "take": lambda x, i, u, _, axis=0: (np.take(x, i, axis), np.take(u, i, axis)),
    "matmul": lambda x, y, u, v: (np.matmul(x, y), np.matmul(u, y) + np.matmul(x, v)),
    "constant": lambda value, **_: (np.asarray(value), None),
}


def concatenate(*operands, axis=0):
    half = len(operands) // 2
    return np.concatenate(operands[:half], axis), np.concatenate(operands[half:], axis)


DUALS["concatenate"] = concatenate

# Operands through which no derivative passes, where that is not a matter of types.
DEAF = {
    **dict.fromkeys(("floor", "sign", "stop_gradient"), (0,)),
    "where": (0,), "copysign": (1,), "take": (1,),
}  # fmt: skip
MOVING = "transpose reshape broadcast_to expand_dims slice split take concatenate".split()
UNARY = "neg exp sin cos tanh tanh sigmoid square".split()
BINARY = "add sub mul mul mul div".split()
SMOOTH = [*UNARY, *BINARY, *BINARY, "sum", "matmul", "matmul", *MOVING]
KINDS = [*SMOOTH, *UNARY, *BINARY, "constant", "copysign", "where", "abs", "maximum", "minimum"]
KINDS += "less greater_equal logical_and floor sign stop_gradient astype astype mean".split()
COMPLEX = [kind for kind in SMOOTH if kind != "sigmoid"]  # what NumPy has complex loops for
COMPLEX += "real imag conj real imag conj where stop_gradient constant mean".split()
SHAPES = [(), (1,), (3,), (2, 3), (2, 1)]


def duals(kind, values, tangents, attributes):
    """The results and their derivatives, as lists."""
    results, slopes = DUALS[kind](*values, *tangents, **attributes)
    if kind != "split":
        results, slopes = [results], [slopes]
    return list(map(np.asarray, results)), [
        np.zeros(np.shape(x)) if u is None or x.dtype.kind not in "fc" else u
        for x, u in zip(results, slopes, strict=True)
    ]


# Programs


class Program:
    """A random program at a random point, as numbers of values, and as a graph."""

    def __init__(self, seed, kinds=KINDS, typed=True, integers=0.25, length=16):
        self.choose, self.numbers = random.Random(seed), np.random.default_rng(seed)
        # Where no type is known, a float64 cotangent of a float32 value remains one.
        single = kinds is KINDS and typed and self.choose.random() < 0.08
        self.float = "f4" if single else "f8"
        self.typed = typed
        self.arrays, self.flags, self.steps = [], [], []
        self.inexact = [self.float, "c16"] if kinds is COMPLEX else [self.float]
        for _ in range(self.choose.randint(1, 4)):
            is_whole = self.choose.random() < integers
            dtype = self.choose.choice(["i8", "i4", "?"] if is_whole else self.inexact)
            self.arrays.append(self.draw(self.choose.choice(SHAPES), dtype))
            self.flags.append(not is_whole and self.choose.random() < 0.8)
        self.values = list(self.arrays)
        self.tangents = [
            self.draw(x.shape, "c16" if x.dtype.kind == "c" else "f8") * flag
            for x, flag in zip(self.arrays, self.flags, strict=True)
        ]
        # Which values are free of rounding; which depend on an input that is differentiated
        # to, by any way; and which have a derivative that is not known to be 0.
        self.exact = [True] * len(self.arrays)
        self.depends, self.carries = list(self.flags), list(self.flags)
        self.parts = set()  # of arrays that were split
        for _ in range(self.choose.randint(0, length)):
            self.add_step(kinds)
        count = self.choose.randint(1, 4)
        self.returned = [self.recent(0.3) for _ in range(count)]
        if self.choose.random() < 0.3:
            self.returned.append(self.choose.choice(self.returned))

    def draw(self, shape, dtype):
        if dtype == "?":
            return np.asarray(self.numbers.integers(0, 2, shape) > 0)
        if dtype[0] == "i":
            return np.asarray(self.numbers.integers(-2, 3, shape)).astype(dtype)
        array = np.asarray(self.numbers.standard_normal(shape))
        if dtype[0] == "c":
            array = array + 1j * self.numbers.standard_normal(shape)
        return array.astype(dtype)

    def recent(self, power=0.5):
        """The number of a value; late ones more often, so that graphs grow deep."""
        return int(len(self.values) * self.choose.random() ** power)

    def add_step(self, kinds):
        for _ in range(20):
            kind = self.choose.choice(kinds)
            count = 2 if kind in BINARY else 1
            found = getattr(self, f"for_{kind}", lambda c=count: ([self.recent()] * c, {}))()
            if found is None:
                continue
            reads, attributes = found
            if kind in BINARY:
                reads[1] = self.recent()
            if self.attempt(kind, reads, attributes):
                return

    def attempt(self, kind, reads, attributes):
        """Add the step, unless it does not fit or its numbers are bad ones."""
        operands = [self.values[i] for i in reads]
        if all(x.dtype == bool for x in operands) and kind in (*UNARY, *BINARY, "abs", "sign"):
            return False  # NumPy gives logic, int8, float16 or an error
        if kind == "mean" and not operands[0].size:
            return False
        if kind == "copysign" and any(x.dtype == bool for x in operands):
            return False
        if kind == "floor" and operands[0].dtype.kind != "f":
            return False  # float64 or integers, depending on NumPy's version
        if self.is_near_kink(kind, reads, operands):
            return False
        if kind == "div" and np.abs(operands[1]).min(initial=1) < 0.3:
            return False
        if kind == "exp" and np.real(operands[0]).max(initial=0) > 3:
            return False
        try:
            results, slopes = duals(
                kind, operands, [self.tangents[i] for i in reads], attributes
            )
        except ValueError:  # shapes that do not fit
            return False
        for x, u in zip(results, slopes, strict=True):
            if x.size > 24 or np.abs(x).max(initial=0) > LIMIT:
                return False
            if np.abs(u).max(initial=0) > STEEP:
                return False
        deaf = DEAF.get(kind, ())
        depends = kind != "stop_gradient" and any(self.depends[i] for i in reads)
        carries = any(self.carries[i] for at, i in enumerate(reads) if at not in deaf)
        exact = kind in ("constant", "less", "greater_equal", "floor", "sign", "astype")
        exact |= kind in MOVING and all(self.exact[i] for i in reads)
        for x in results:
            self.depends.append(depends)
            self.carries.append(carries and x.dtype.kind in "fc")
            self.exact.append(exact)
        if kind == "split":
            self.parts.update(range(len(self.values), len(self.values) + len(results)))
        self.values += results
        self.tangents += slopes
        self.steps.append((kind, reads, attributes, len(results)))
        return True

    def is_near_kink(self, kind, reads, operands):
        """Whether rounding could decide; exact values may well be at a jump or a tie."""
        if kind == "copysign":
            return any(np.abs(x).min(initial=1) < KINK for x in operands)
        if all(self.exact[i] for i in reads):
            return False
        x = operands[0]
        if kind == "floor" or (kind == "astype" and x.dtype.kind == "f"):
            return np.abs(x - np.rint(x)).min(initial=1) < KINK
        if kind in ("sign", "abs"):
            return np.abs(x).min(initial=1) < KINK
        if kind in ("maximum", "minimum", "less", "greater_equal") and reads[0] != reads[1]:
            try:
                return np.abs(x * 1.0 - operands[1]).min(initial=1) < KINK
            except ValueError:
                return True
        return False

    # What a step of a kind reads and its attributes, where it is not one value and none.

    def for_add(self):
        alpha = self.choose.choice([2, -1, 0.5]) if self.choose.random() < 0.2 else 1
        return [self.recent()] * 2, {} if alpha == 1 else {"alpha": alpha}

    for_sub = for_add

    def pair(self):
        return [self.recent(), self.recent()], {}

    for_maximum = for_minimum = for_copysign = pair
    for_less = for_greater_equal = for_logical_and = for_matmul = pair

    def for_where(self):
        masks = [i for i, x in enumerate(self.values) if x.dtype == bool]
        if not masks:
            return None
        return [self.choose.choice(masks), self.recent(), self.recent()], {}

    def for_astype(self):
        read = self.recent()
        back = self.values[read].dtype.kind != "f" or self.choose.random() < 0.2
        return [read], {"dtype": self.float if back else "i8"}

    def for_sum(self):
        read = self.recent()
        axes = [None, *range(self.values[read].ndim), *range(-self.values[read].ndim, 0)]
        axis = self.choose.choice(axes)
        return [read], {"axis": axis, "keepdims": self.choose.random() < 0.5}

    for_mean = for_sum

    def for_transpose(self):
        return [self.recent()], {}

    def for_reshape(self):
        read = self.recent()
        shape = self.values[read].shape
        news = [(-1,), shape[::-1], (*shape, 1), (1, *shape), (3, -1), (-1, 2)]
        return [read], {"shape": self.choose.choice(news)}

    def for_broadcast_to(self):
        read = self.recent()
        shape = self.values[read].shape
        news = [(2, *shape), (2, 3), tuple(3 if d == 1 else d for d in shape)]
        return [read], {"shape": self.choose.choice(news)}

    def for_expand_dims(self):
        read = self.recent()
        ndim = self.values[read].ndim
        return [read], {"axis": self.choose.randint(-ndim - 1, ndim)}

    def for_slice(self):
        read = self.recent()
        ways = [(0, None, 1), (1, None, 1), (0, -1, 1), (0, None, 2), (None, None, -1)]
        chosen = [self.choose.choice(ways) for _ in self.values[read].shape]
        start, stop, step = ([way[k] for way in chosen] for k in range(3))
        return [read], {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}

    def for_split(self):
        read = self.recent()
        shape = self.values[read].shape
        if not shape:
            return None
        axis = self.choose.randrange(len(shape))
        cuts = [(1,), (-1,), (2,), *([2] if shape[axis] % 2 == 0 else [])]
        return [read], {"indices_or_sections": self.choose.choice(cuts), "axis": axis}

    def for_take(self):
        read = self.recent()
        count = len(self.values[read]) if self.values[read].ndim else 0
        whole = [i for i, x in enumerate(self.values) if x.dtype.kind == "i" and x.size]
        fit = [i for i in whole if np.all(np.isin(self.values[i], range(-count, count)))]
        return ([read, self.choose.choice(fit)], {}) if fit else None

    def for_concatenate(self):
        read = self.recent()
        ndim = self.values[read].ndim
        if not ndim:
            return None
        others = [i for i, x in enumerate(self.values) if x.ndim == ndim]
        axis = self.choose.randrange(-ndim, ndim)
        return [read, *self.choose.choices(others, k=self.choose.randint(1, 2))], {"axis": axis}

    def for_constant(self):
        dtype = self.choose.choice([*self.inexact, *self.inexact, "i8", "?"])
        return [], {"value": self.draw(self.choose.choice(SHAPES), dtype)}

    def graph(self):
        graph = sd.Graph()
        values = [
            graph.add_input(TensorType.of(x) if self.typed else None) for x in self.arrays
        ]
        for kind, reads, attributes, count in self.steps:
            if kind == "constant":
                made = graph.constant(attributes["value"])
            else:
                made = graph.insert(kind, *(values[i] for i in reads), **attributes)
            values += made if kind == "split" else [made]
            assert kind != "split" or len(made) == count
        for i in self.returned:
            graph.register_output(values[i])
        return graph

    def replay(self, arrays, tangents):
        """The returned values and their derivatives at another point."""
        values, slopes = list(arrays), list(tangents)
        for kind, reads, attributes, _ in self.steps:
            x, u = duals(kind, *([v[i] for i in reads] for v in (values, slopes)), attributes)
            values, slopes = values + x, slopes + u
        return [values[i] for i in self.returned], [slopes[i] for i in self.returned]
