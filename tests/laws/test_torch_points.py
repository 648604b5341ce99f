"""Singular points, ties, infinities and NaN beside PyTorch: who is right where they differ.

Runs where torch is installed; the differences are those from PyTorch 2.13.  Points where
nothing is singular are in test_torch.py.
"""

import numpy as np
import pytest

import stagedad as sd
from stagedad import special

torch = pytest.importorskip("torch", reason="is held against torch where that is installed")

inf, nan = np.inf, np.nan

EDGES = (0.0, inf, -inf, nan)
PAIRS = [(0.0, 0.0), (1.0, 1.0), (inf, inf), (inf, 1.0), (1.0, -inf), (nan, 1.0), (nan, nan)]
POWERS = [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (0.0, 2.0), (0.0, -1.0), (2.0, 0.0)]


def same(kind, *points):
    """A function of the same name on both sides."""
    return getattr(np, kind), getattr(torch, kind), points


def along(function, **given):
    """PyTorch's function along the only axis."""
    return lambda x: function(x, dim=0, **given)


# Name -> our function, PyTorch's, and points: a tuple holds several arguments.
CASES = {
    "abs": same("abs", *EDGES),
    "angle": same("angle", -0.0, 0.0, -1.0, nan),
    "arccos": same("arccos", 1.0, -1.0, nan),
    "arccosh": same("arccosh", 1.0, -1.0, inf),
    "arcsin": same("arcsin", 1.0, -1.0, nan),
    "arctan": same("arctan", *EDGES),
    "arctan2": same("arctan2", *PAIRS, (0.0, -1.0), (0.0, 2.0)),
    "arctanh": same("arctanh", 1.0, -1.0),
    "argmax": (
        lambda x: np.take(x, np.argmax(x)),
        lambda x: x[torch.argmax(x)],
        ([1.0, 1.0, 0.0], [nan, 1.0]),
    ),
    "ceil": same("ceil", 1.0, inf, nan),
    "clip": (
        lambda x: np.clip(x, -1, 1),
        lambda x: torch.clamp(x, -1, 1),
        (-1.0, 1.0, 0.5, 2.0, inf, nan),
    ),
    "clip_crossed": (
        lambda x: np.clip(x, 2, 1),
        lambda x: torch.clamp(x, 2, 1),
        (0.0, 1.0, 1.5, 2.0, 3.0),
    ),
    "copysign": same("copysign", (0.0, 1.0), (0.0, -1.0), (2.0, 0.0), (inf, -1.0), (nan, 1.0)),
    "cosh": same("cosh", 1000.0, *EDGES),
    "cumprod": (
        np.cumprod,
        along(torch.cumprod),
        ([2.0, 0.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0, 5.0], [inf, 0.0, 2.0], [2.0, nan, 3.0]),
    ),
    "divide": same("divide", (0.0, 0.0), (1.0, 0.0), (inf, inf), (1.0, inf), (nan, 1.0)),
    "exp": same("exp", 1000.0, *EDGES),
    "exp2": same("exp2", 2000.0, *EDGES),
    "expm1": same("expm1", 1000.0, *EDGES),
    "floor": same("floor", 1.0, inf, nan),
    "fmax": same("fmax", *PAIRS, (1.0, nan)),
    "fmin": same("fmin", *PAIRS, (1.0, nan)),
    "fmod": same("fmod", (4.0, 2.0), (1.0, 0.0), (inf, 1.0), (1.0, inf), (nan, 1.0)),
    "norm": (np.linalg.norm, torch.linalg.norm, ([0.0, 0.0],)),
    "hypot": same("hypot", *PAIRS, (0.0, -2.0)),
    "ldexp": (
        lambda x: np.ldexp(x, -1),
        lambda x: torch.ldexp(x, torch.tensor(-1)),
        (3.0, 0.0, inf),
    ),
    "log": same("log", -0.0, -1.0, *EDGES),
    "log1p": same("log1p", -1.0, inf, nan),
    "log2": same("log2", *EDGES),
    "log10": same("log10", *EDGES),
    "log_expit": (special.log_expit, torch.nn.functional.logsigmoid, (1000.0, -1000.0, *EDGES)),
    "log_softmax": (
        special.log_softmax,
        along(torch.log_softmax),
        ([-inf, 0.0, 1.0], [inf, 0.0], [1e4, -1e4]),
    ),
    "logaddexp": same("logaddexp", *PAIRS, (-inf, -inf), (-inf, 1.0), (1000.0, 0.0)),
    "logaddexp2": same("logaddexp2", *PAIRS, (-inf, -inf), (-inf, 1.0), (1000.0, 0.0)),
    "logit": (special.logit, torch.logit, (0.0, 1.0, 2.0)),
    "logsumexp": (
        special.logsumexp,
        along(torch.logsumexp),
        ([-inf, -inf], [-inf, 0.0], [inf, 0.0], [1e3, 1e3], [nan, 1.0]),
    ),
    "max": (
        np.max,
        torch.amax,
        ([1.0, 1.0, 0.0], [inf, inf, 0.0], [-inf, -inf], [0.0, -0.0], [nan, 1.0], [nan]),
    ),
    "max_of_axis": (
        lambda x: np.max(x, 0),
        lambda x: torch.max(x, 0)[0],
        ([1.0, 1.0, 0.0], [nan, 1.0]),
    ),
    "maximum": same("maximum", *PAIRS),
    "maximum_of_itself": (
        lambda x: np.maximum(x, x),
        lambda x: torch.maximum(x, x),
        (0.0, inf),
    ),
    "mean": same("mean", [inf, -inf], [nan, 1.0]),
    "median": same("median", [1.0, 2.0, 2.0], [3.0, 1.0, 2.0], [nan, 1.0, 2.0]),
    "min": (np.min, torch.amin, ([1.0, 0.0, 0.0], [-inf, -inf], [nan, 1.0])),
    "minimum": same("minimum", *PAIRS),
    "modf": (lambda x: np.modf(x)[0], torch.frac, (1.0, -1.0, inf, nan)),
    "multiply": same("multiply", (0.0, inf), (inf, inf), (nan, 0.0)),
    "nan_to_num": same("nan_to_num", *EDGES),
    "nanmean": same("nanmean", [nan, 1.0]),
    "nansum": same("nansum", [nan, 1.0]),
    "partition": (
        lambda x: np.partition(x, 1)[1],
        lambda x: torch.kthvalue(x, 2)[0],
        ([1.0, 1.0, 1.0], [3.0, 1.0, 2.0]),
    ),
    "power": (np.power, torch.pow, POWERS),
    "power_of_zero": (lambda y: 0.0**y, lambda y: 0.0**y, (0.0, 0.5, 1.0, -1.0, inf)),
    "power_half": (lambda x: x**0.5, lambda x: x**0.5, (0.0, inf, nan)),
    "power_minus_one": (lambda x: x**-1, lambda x: x**-1, EDGES),
    "power_one": (lambda x: x**1, lambda x: x**1, EDGES),
    "power_two": (lambda x: x**2, lambda x: x**2, EDGES),
    "power_zero": (lambda x: x**0, lambda x: x**0, EDGES),
    "prod": same("prod", [0.0, 2, 3], [0.0, 0, 3], [0.0, inf, 2], [inf, 2, 3], [nan, 2, 3]),
    "ptp": (np.ptp, lambda x: torch.amax(x) - torch.amin(x), ([1.0, 1.0], [1.0, 1.0, 0.0])),
    "quantile": (
        lambda x: np.quantile(x, 0.5),
        lambda x: torch.quantile(x, 0.5),
        ([1.0, 2.0, 2.0, 3.0], [1.0, 1.0, 1.0], [1.0, inf, 3.0], [nan, 1.0, 2.0]),
    ),
    "reciprocal": same("reciprocal", -0.0, *EDGES),
    "relu": (special.relu, torch.relu, EDGES),
    "remainder": same("remainder", (4.0, 2.0), (1.0, 0.0), (inf, 1.0), (1.0, inf), (-1.0, inf)),
    "rint": (np.rint, torch.round, (0.5, 1.5, inf, nan)),
    "sigmoid": (special.expit, torch.sigmoid, (1000.0, -1000.0, *EDGES)),
    "sign": same("sign", *EDGES),
    "sinc": same("sinc", 1e-200, 1.0, *EDGES),
    "softmax": (
        special.softmax,
        along(torch.softmax),
        ([-inf, 0.0, 1.0], [-inf, -inf], [inf, 0.0], [0.0, 0.0]),
    ),
    "softplus": (
        special.softplus,
        torch.nn.functional.softplus,
        (20.5, 1000.0, -1000.0, *EDGES),
    ),
    "sort": (
        np.sort,
        lambda x: torch.sort(x, stable=True)[0],
        ([1.0, 1.0, 0.0], [nan, 1.0, 0.0]),
    ),
    "sqrt": same("sqrt", -1.0, *EDGES),
    "sqrt_of_square": (lambda x: np.sqrt(x * x), lambda x: torch.sqrt(x * x), (0.0, 1.0)),
    "square_of_hypot": (
        lambda x, y: np.hypot(x, y) ** 2,
        lambda x, y: torch.hypot(x, y) ** 2,
        ((0.0, 0.0),),
    ),
    "square_of_length": (
        lambda x: np.sqrt(np.sum(x * x)) ** 2,
        lambda x: torch.sqrt(torch.sum(x * x)) ** 2,
        ([0.0, 0.0],),
    ),
    "square_of_sqrt": (lambda x: np.sqrt(x) ** 2, lambda x: torch.sqrt(x) ** 2, (0.0,)),
    "std": (np.std, lambda x: torch.std(x, correction=0), ([1.0, 1.0, 1.0], [2.0], [1.0, 2.0])),
    "tan": same("tan", *EDGES),
    "tanh": same("tanh", 1000.0, *EDGES),
    "var": (np.var, lambda x: torch.var(x, correction=0), ([1.0, 1.0, 1.0], [2.0])),
    "where_division": (
        lambda x: np.where(x != 0, 1 / x, 0),
        lambda x: torch.where(x != 0, 1 / x, 0.0),
        (0.0, 2.0),
    ),
    "where_exp": (
        lambda x: np.where(x < 9, np.exp(x), x),
        lambda x: torch.where(x < 9, torch.exp(x), x),
        (1000.0,),
    ),
    "where_log": (
        lambda x: np.where(x > 0, np.log(x), x),
        lambda x: torch.where(x > 0, torch.log(x), x),
        (-1.0, *EDGES),
    ),
    "where_sqrt": (
        lambda x: np.where(x > 0, np.sqrt(x), 0),
        lambda x: torch.where(x > 0, torch.sqrt(x), 0.0),
        (-1.0, *EDGES),
    ),
    "where_x_log_x": (
        lambda x: np.where(x > 0, x * np.log(x), 0),
        lambda x: torch.where(x > 0, x * torch.log(x), 0.0),
        (0.0, -1.0),
    ),
    "x_log_x": (lambda x: x * np.log(x), lambda x: x * torch.log(x), (0.0,)),
    "x_over_x": (lambda x: x / x, lambda x: x / x, (0.0, inf)),
    "x_sqrt_x": (lambda x: x * np.sqrt(x), lambda x: x * torch.sqrt(x), (0.0,)),
    "x_log_y": (
        lambda x, y: np.where(x == 0, 0, x * np.log(y)),
        lambda x, y: torch.where(x == 0, 0.0, x * torch.log(y)),
        ((0.0, 0.0), (0.0, 2.0), (1.0, 0.0)),
    ),
    "zero_times_log": (lambda x: 0 * np.log(x), lambda x: 0 * torch.log(x), (0.0,)),
    "zero_times_sqrt": (lambda x: 0 * np.sqrt(x), lambda x: 0 * torch.sqrt(x), (0.0,)),
}

# Sides of branch cuts, and poles.
REAL_CUT = (2 + 0j, complex(2, -0.0), -2 + 0j, complex(-2, -0.0))
IMAGINARY_CUT = (2j, complex(-0.0, 2), -2j, complex(-0.0, -2))
COMPLEX = {
    **{kind: same(kind, *REAL_CUT) for kind in ("arccos", "arcsin", "arctanh")},
    "arccosh": same("arccosh", *REAL_CUT, complex(0, -0.0)),
    **{kind: same(kind, *REAL_CUT, 0j) for kind in ("log", "log2", "log10", "log1p", "sqrt")},
    **{kind: same(kind, *IMAGINARY_CUT) for kind in ("arcsinh", "arctan")},
    "power": (np.power, torch.pow, [(0j, 0j), (0j, 1 + 0j), (0j, 2 + 0j), (-1 + 0j, 0.5 + 0j)]),
    "reciprocal": same("reciprocal", 0j, 1j),
    "sinc": same("sinc", 0j, 1 + 0j),
    "square": same("square", 0j, 1j),
}

# Who is right -> `name(point)`, a dash an order -> ours and torch's.
DIFFERENCES = {
    "Ours: at NaN there is no slope; torch takes it for a number.": {
        "abs(nan)'": ("nan", "0"),
        "angle(nan)'": ("nan", "0"),
        "angle(nan)''": ("nan", "0"),
        "clip(nan)'": ("nan", "0"),
        "max_of_axis([nan 1])'": ("nan nan", "1 0"),
        "maximum(nan, 1)'": ("nan nan", "1 1"),
        "maximum(nan, nan)'": ("nan nan", "1 1"),
        "minimum(nan, 1)'": ("nan nan", "1 1"),
        "minimum(nan, nan)'": ("nan nan", "1 1"),
        "relu(nan)'": ("nan", "1"),
    },
    "Both are subgradients. Ours shares ties equally; torch gives all to the first.": {
        "fmax(0, 0)'": ("0.5 0.5", "1 0"),
        "fmax(1, 1)'": ("0.5 0.5", "1 0"),
        "fmax(inf, inf)'": ("0.5 0.5", "1 0"),
        "fmin(0, 0)'": ("0.5 0.5", "1 0"),
        "fmin(1, 1)'": ("0.5 0.5", "1 0"),
        "fmin(inf, inf)'": ("0.5 0.5", "1 0"),
        "max_of_axis([1 1 0])'": ("0.5 0.5 0", "1 0 0"),
    },
    "Both are subgradients. Ours is half at a bound, as minimum's is; torch's all.": {
        "clip(-1)'": ("0.5", "1"),
        "clip(1)'": ("0.5", "1"),
    },
    "Both are subgradients. Ours is of the element that a sort puts there.": {
        "median([1 2 2])'": ("0 1 0", "0 0.5 0.5"),
        "partition([1 1 1])'": ("0 1 0", "1 0 0"),
    },
    "Neither: the value is NaN and has no slope.": {
        "arccosh(-1)'": ("nan", "inf"),
        "arccosh(-1)''": ("nan", "inf"),
        "copysign(nan, 1)'": ("1 0", "nan 0"),
        "copysign(nan, 1)''": ("0 0 0 0", "nan 0 0 0"),
        "fmax(nan, nan)'": ("0 0", "1 0"),
        "fmin(nan, nan)'": ("0 0", "1 0"),
        "fmod(1, 0)'": ("1 nan", "1 -inf"),
        "fmod(inf, 1)'": ("1 nan", "1 -inf"),
        "logit(2)'": ("-0.5", "nan"),
        "logit(2)''": ("0.75", "0"),
        "median([nan 1 2])'": ("0 0 0", "1 0 0"),
        "quantile([nan 1 2])'": ("0 0 0", "1 0 0"),
    },
    "Ours: the values are NumPy's.": {
        "angle(-0)": ("3.14159", "0"),
        "modf(inf)": ("0", "nan"),
        "modf(inf)'": ("0", "1"),
        "quantile([1 inf 3])": ("nan", "3"),
        "sign(nan)": ("nan", "0"),
        "power(0+0j, 0+0j)": ("1+0j", "nan+nanj"),
    },
    "Ours: an infinity or a NaN counts only where it is a factor or a term.": {
        "copysign(inf, -1)'": ("-1 0", "nan 0"),
        "copysign(inf, -1)''": ("0 0 0 0", "nan 0 0 0"),
        "cumprod([2 nan 3])'": ("nan 8 nan", "nan nan nan"),
        "cumprod([2 nan 3])''": ("nan 6 nan", "nan nan nan"),
        "log_softmax([inf 0])": ("nan -inf", "nan nan"),
        "log_softmax([inf 0])'": ("nan 1", "nan nan"),
        "prod([inf 2 3])'": ("6 inf inf", "nan inf inf"),
        "prod([inf 2 3])''": ("5 nan nan", "nan nan nan"),
        "prod([nan 2 3])'": ("6 nan nan", "nan nan nan"),
        "prod([nan 2 3])''": ("5 nan nan", "nan nan nan"),
        "softmax([inf 0])": ("nan 0", "nan nan"),
    },
    "Ours: the extremum of one element is that; torch compares, and NaN equals nothing.": {
        "max([nan])'": ("1", "nan"),
    },
    "Torch's: the derivative is infinite. Ours is NaN, by inf * 0 in the chain rule.": {
        "arccos(1)''": ("nan", "-inf"),
        "arccos(-1)''": ("nan", "inf"),
        "arccosh(1)''": ("nan", "-inf"),
        "arcsin(1)''": ("nan", "inf"),
        "arcsin(-1)''": ("nan", "-inf"),
        "arctanh(1)''": ("nan", "inf"),
        "arctanh(-1)''": ("nan", "-inf"),
        "cumprod([inf 0 2])''": ("3 inf nan", "nan inf inf"),
        "prod([0 inf 2])''": ("nan 2 nan", "inf nan inf"),
    },
    "Neither: 0 ** y is infinite for every y < 0, with no slope there; -inf is a limit.": {
        "power(0, -1)'": ("-inf nan", "-inf -inf"),
        "power(0, -1)''": ("inf nan 0 0", "inf inf inf inf"),
        "power_of_zero(-1)'": ("nan", "-inf"),
        "power_of_zero(-1)''": ("0", "inf"),
    },
    "Ours: a cotangent of exactly 0 stays 0 at a pole (`nan_policy`); in IEEE it is NaN.": {
        "square_of_hypot(0, 0)'": ("0 0", "nan nan"),
        "square_of_hypot(0, 0)''": ("0 0 0 0", "nan nan nan nan"),
        "square_of_length([0 0])'": ("0 0", "nan nan"),
        "square_of_length([0 0])''": ("0 0", "nan nan"),
        "where_division(0)'": ("0", "nan"),
        "where_division(0)''": ("0", "nan"),
        "where_exp(1000)'": ("1", "nan"),
        "where_exp(1000)''": ("0", "nan"),
        "where_log(0)'": ("1", "nan"),
        "where_log(0)''": ("0", "nan"),
        "where_log(nan)'": ("1", "nan"),
        "where_log(nan)''": ("0", "nan"),
        "where_sqrt(-1)'": ("0", "nan"),
        "where_sqrt(-1)''": ("0", "nan"),
        "where_sqrt(0)'": ("0", "nan"),
        "where_sqrt(0)''": ("0", "nan"),
        "where_sqrt(-inf)'": ("0", "nan"),
        "where_sqrt(-inf)''": ("0", "nan"),
        "where_sqrt(nan)'": ("0", "nan"),
        "where_sqrt(nan)''": ("0", "nan"),
        "x_log_x(0)'": ("-inf", "nan"),
        "x_log_x(0)''": ("inf", "nan"),
        "x_sqrt_x(0)'": ("0", "nan"),
        "x_sqrt_x(0)''": ("inf", "nan"),
        "x_log_y(0, 0)'": ("nan 0", "nan nan"),
        "x_log_y(0, 0)''": ("0 0 nan 0", "0 nan nan nan"),
        "zero_times_log(0)'": ("0", "nan"),
        "zero_times_log(0)''": ("0", "nan"),
        "zero_times_sqrt(0)'": ("0", "nan"),
        "zero_times_sqrt(0)''": ("0", "nan"),
    },
    "Torch's: NaN says that 1 was missed, where a cotangent of exactly 0 meets a pole.": {
        "square_of_sqrt(0)'": ("0", "nan"),
        "square_of_sqrt(0)''": ("inf", "nan"),
    },
    "Neither: a kink has no second derivative; of abs(x) it is 0 on both sides.": {
        "sqrt_of_square(0)''": ("inf", "nan"),
    },
    "Ours: declared 0 at the origin, which is a subgradient of the norm.": {
        "arctan2(0, 0)''": ("0 0 0 0", "nan nan nan nan"),
        "norm([0 0])''": ("0 0", "nan nan"),
        "hypot(0, 0)'": ("0 0", "nan nan"),
        "hypot(0, 0)''": ("0 0 0 0", "nan nan nan nan"),
    },
    "Ours: equal infinities share; else the greater has it all, and nothing changes that.": {
        "logaddexp(inf, inf)'": ("0.5 0.5", "nan nan"),
        "logaddexp(inf, inf)''": ("0 0 0 0", "nan nan nan nan"),
        "logaddexp(inf, 1)''": ("0 0 0 0", "0 0 nan nan"),
        "logaddexp(1, -inf)''": ("0 0 0 0", "0 0 nan nan"),
        "logaddexp(-inf, -inf)'": ("0.5 0.5", "nan nan"),
        "logaddexp(-inf, -inf)''": ("0 0 0 0", "nan nan nan nan"),
        "logaddexp(-inf, 1)''": ("0 0 0 0", "nan nan 0 0"),
        "logaddexp(1000, 0)''": ("0 0 0 0", "0 0 nan nan"),
        "logaddexp2(inf, inf)'": ("0.5 0.5", "nan nan"),
        "logaddexp2(inf, inf)''": ("0 0 0 0", "nan nan nan nan"),
        "logaddexp2(inf, 1)''": ("0 0 0 0", "0 0 nan nan"),
        "logaddexp2(1, -inf)''": ("0 0 0 0", "0 0 nan nan"),
        "logaddexp2(-inf, -inf)'": ("0.5 0.5", "nan nan"),
        "logaddexp2(-inf, -inf)''": ("0 0 0 0", "nan nan nan nan"),
        "logaddexp2(-inf, 1)''": ("0 0 0 0", "nan nan 0 0"),
    },
    "Ours: declared 0, where all shares are 0 / 0.": {
        "logsumexp([-inf -inf])'": ("0 0", "nan nan"),
        "logsumexp([-inf -inf])''": ("0 0", "nan nan"),
    },
    "Ours: the limit; torch's quotient is 0 / 0.": {
        "logit(0)''": ("-inf", "nan"),
        "logit(1)''": ("inf", "nan"),
        "sinc(1e-200)''": ("-3.28987", "nan"),
        "sinc(0)''": ("-3.28987", "nan"),
    },
    "Ours: torch computes 2 ** -1 in integers.": {
        "ldexp(3)'": ("0.5", "0"),
        "ldexp(0)'": ("0.5", "0"),
        "ldexp(inf)'": ("0.5", "0"),
    },
    "Ours: torch rounds to x from 20 on.": {
        "softplus(20.5)''": ("1.25015e-09", "0"),
    },
    "Both are subgradients of |x|. Ours is of the side that the zero's sign names.": {
        "copysign(0, 1)'": ("1 0", "0 0"),
        "copysign(0, 1)''": ("0 0 0 0", "nan 0 0 0"),
        "copysign(0, -1)'": ("-1 0", "0 0"),
        "copysign(0, -1)''": ("0 0 0 0", "nan 0 0 0"),
    },
    "Ours: 0 ** y is 0 beside every positive y; mixed, it is one limit of many.": {
        "power(0, 0)''": ("0 inf 0 0", "nan nan nan nan"),
        "power(0, 0.5)''": ("-inf nan 0 0", "-inf nan nan nan"),
        "power(0, 1)''": ("0 1 0 0", "0 1 nan nan"),
        "power(0, 2)''": ("2 0 0 0", "2 0 nan nan"),
        "power_of_zero(0)''": ("0", "nan"),
        "power_of_zero(0.5)''": ("0", "nan"),
        "power_of_zero(1)''": ("0", "nan"),
        "power_of_zero(inf)''": ("0", "nan"),
    },
    "Ours: torch takes x ** 0 for a constant in y too.": {
        "power(2, 0)''": ("0 0.5 0.5 0.480453", "0 0 0.5 0.480453"),
    },
    "Ours: the derivative on the side that the zero's sign names; torch's is the other's.": {
        "arccos(2+0j)'": ("0+0.57735j", "0-0.57735j"),
        "arccos(-2-0j)'": ("0+0.57735j", "0-0.57735j"),
        "arcsin(2+0j)'": ("0-0.57735j", "0+0.57735j"),
        "arcsin(-2-0j)'": ("0-0.57735j", "0+0.57735j"),
        "arccosh(0-0j)'": ("0-1j", "0+1j"),
        "arcsinh(-0+2j)'": ("0-0.57735j", "0+0.57735j"),
    },
    "Ours: z ** 1 is z, also at 0.": {
        "power(0+0j, 1+0j)'": ("1+0j 0+0j", "nan+nanj 0+0j"),
    },
}


def ours(function, point):
    """The value, and for each argument the cotangent of ones and then the one of that."""

    def gradient(number):
        def pulled(*arguments):
            value, pull = sd.vjp(function, *arguments)
            return pull(np.ones(np.shape(value), value.dtype))[number]

        return pulled

    found = [[function(*point)], [], []]
    for number in range(len(point)):
        value, pull = sd.vjp(gradient(number), *point)
        found[1].append(value)
        found[2] += pull(np.ones(np.shape(value), value.dtype))
    return found


def theirs(function, point):
    """The same of PyTorch; zeros where it says that nothing depends on an argument."""
    leaves = [torch.tensor(np.array(x), requires_grad=True) for x in point]

    def pulled(value):
        if not value.requires_grad:
            return [torch.zeros_like(x) for x in leaves]
        given = torch.ones_like(value)
        found = torch.autograd.grad(value, leaves, given, create_graph=True, allow_unused=True)
        return [
            torch.zeros_like(x) if each is None else each
            for x, each in zip(leaves, found, strict=True)
        ]

    value = function(*leaves)
    first = pulled(value)
    second = [each for one in first for each in pulled(one)]
    return [[x.numpy(force=True) for x in each] for each in ([value], first, second)]


def text(arrays):
    """The numbers of arrays, to six digits."""
    flat = np.concatenate([np.ravel(array) for array in arrays])
    return " ".join(f"{x:.6g}" for x in flat.tolist())


def differences(name, case, dtype, orders):
    """`name(point)`, with a dash an order -> what is found here and there."""
    function, other, points = case
    found = {}
    for point in points:
        point = [np.array(x, dtype) for x in (point if isinstance(point, tuple) else (point,))]
        label = ", ".join(text([x]) if x.ndim == 0 else f"[{text([x])}]" for x in point)
        with np.errstate(all="ignore"):
            pairs = zip(ours(function, point), theirs(other, point), strict=True)
            for order, (here, there) in list(enumerate(pairs))[:orders]:
                assert [np.shape(x) for x in here] == [x.shape for x in there]
                if not all(map(agree, here, there)):
                    found[f"{name}({label})" + "'" * order] = unsigned(here), unsigned(there)
    return found


def unsigned(arrays):
    """The same, zeros without a sign."""
    return text([np.array(array) + 0.0 for array in arrays])


def agree(here, there):
    return np.allclose(here, there, rtol=1e-8, atol=1e-15, equal_nan=True)


def over(cases):
    return pytest.mark.parametrize("name", cases)


def expected(name, complex_too):
    """The listed differences of a case."""
    return {
        label: pair
        for group in DIFFERENCES.values()
        for label, pair in group.items()
        if label.partition("(")[0] == name and ("j" in label) == complex_too
    }


@over(CASES)
def test_points_differ_from_torch_as_listed(name):
    assert differences(name, CASES[name], float, 3) == expected(name, False)


@over(COMPLEX)
def test_complex_points_differ_from_torch_as_listed(name):
    assert differences(name, COMPLEX[name], complex, 2) == expected(name, True)


def test_no_difference_is_listed_of_a_case_that_is_not():
    names = {label.partition("(")[0] for group in DIFFERENCES.values() for label in group}
    assert names <= CASES.keys() | COMPLEX.keys()
