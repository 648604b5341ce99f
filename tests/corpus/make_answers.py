"""Compute the gradients of the corpus without stagedad and write `answers.json`.

Each number is the derivative, by one number of the arguments, of the result contracted with
`corpus_loader.seed`. The complex step (Squire and Trapp 1998) is exact to rounding where a
function is analytic: the same source runs with an `np` whose arrays are complex. It counts only
where it agrees with Richardson-extrapolated central differences; elsewhere the differences are
written. `error` is the estimate of the relative error: between two complex steps of different
size, or between the last two columns of Richardson's table.

Usage: python tests/corpus/make_answers.py
"""

import warnings

import numpy
from corpus_loader import ANSWERS, flat, load, rebuilt, seed, write

TINY, SMALL = 1e-30, 1e-20  # steps: two roundings of the same derivative
AGREE = 1e-6  # of the two methods


def carry(function, derivative):
    """A real function carried to complex numbers of infinitesimal imaginary part."""

    def carried(x, *others, **named):
        if not numpy.iscomplexobj(x):
            return function(x, *others, **named)
        return function(x.real) + 1j * derivative(x.real) * x.imag

    return carried


def absolute(x):
    return x if not numpy.iscomplexobj(x) else numpy.where(numpy.real(x) < 0, -x, x)[()]


def arctan2(y, x):
    y, x = numpy.asarray(y), numpy.asarray(x)
    turned = (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    return (numpy.arctan2(y.real, x.real) + 1j * turned)[()]


def floor(x):
    return numpy.floor(numpy.real(x)) + 0j


def sign(x):
    return numpy.sign(numpy.real(x)) + 0j


def norm(x, axis=None):
    return numpy.sqrt(numpy.sum(x * x, axis=axis))


def var(x, axis=None):
    centred = x - numpy.mean(x, axis=axis, keepdims=True)
    return numpy.mean(centred * centred, axis=axis)


class Complex:
    """NumPy (or a module of it) whose new float arrays are complex."""

    def __init__(self, module, replaced):
        self.module, self.replaced = module, replaced

    def __getattr__(self, name):
        return self.replaced.get(name) or getattr(self.module, name)


def creating(name):
    function = getattr(numpy, name)

    def create(*arguments, **named):
        if named.get("dtype") is float:
            named["dtype"] = complex
        made = function(*arguments, **named)
        return made.astype(complex) if made.dtype == float else made

    return create


COMPLEX = Complex(
    numpy,
    {
        name: creating(name)
        for name in (
            "zeros ones empty full eye zeros_like ones_like empty_like full_like array asarray"
            " arange linspace"
        ).split()
    }
    | {
        "abs": absolute,
        "absolute": absolute,
        "arctan2": arctan2,
        "floor": floor,
        "sign": sign,
        "var": var,
        "std": lambda x, axis=None: numpy.sqrt(var(x, axis)),
        "hypot": lambda x, y: numpy.sqrt(x * x + y * y),
        "radians": lambda x: x * (numpy.pi / 180),
        "log1p": carry(numpy.log1p, lambda x: 1 / (1 + x)),
        "linalg": Complex(numpy.linalg, {"norm": norm}),
    },
)


def complex_step(function, arguments, step):
    """The gradient by complex steps: exact where the function is analytic."""
    point = flat(arguments).astype(complex)
    gradient = []
    for k in range(len(point)):
        moved = point.copy()
        moved[k] += 1j * step
        out = flat(function(*rebuilt(arguments, moved)))
        gradient.append(seed(len(out)) @ out.imag / step)
    return numpy.array(gradient)


def differences(function, arguments, levels=5):
    """Richardson-extrapolated central differences: gradient and estimate of its error."""
    point = flat(arguments)
    gradient, errors = [], []

    def value(k, h):
        moved = point.copy()
        moved[k] += h
        out = flat(function(*rebuilt(arguments, moved)))
        return seed(len(out)) @ out

    for k in range(len(point)):
        best, error = numpy.nan, numpy.inf
        # The step that suits: as large as analyticity around the point allows.
        for start in (2.0**-5, 2.0**-8, 2.0**-11):
            start *= abs(point[k]) if abs(point[k]) > 1e3 or 0 < abs(point[k]) < 1e-2 else 1.0
            rows = []
            for i in range(levels):
                h = start / 2**i
                row = [(value(k, h) - value(k, -h)) / (2 * h)]
                for j, above in enumerate(rows[-1] if rows else []):
                    row.append(row[j] + (row[j] - above) / (4 ** (j + 1) - 1))
                rows.append(row)
                if i >= 2:
                    gap = abs(rows[-1][-1] - rows[-2][-1])
                    if gap < error:
                        best, error = rows[-1][-1], gap
        gradient.append(best)
        errors.append(error)
    return numpy.array(gradient), numpy.array(errors)


def relative(error, gradient):
    return float(numpy.max(numpy.abs(error)) / numpy.max(numpy.abs(gradient)))


def answer(real, carried, arguments):
    """The answer of one example, as it is written."""
    with numpy.errstate(all="ignore"):
        expected, errors = differences(real, arguments)
    method, error = "differences", relative(errors, expected)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found, other = (complex_step(carried, arguments, step) for step in (TINY, SMALL))
    except (TypeError, ValueError, Warning) as refusal:
        print(f"    {type(refusal).__name__}: {refusal}")
    else:
        if relative(found - expected, expected) < max(AGREE, 10 * error):
            method, error, expected = "complex step", relative(found - other, found), found
    return {"method": method, "error": float(f"{error:.1e}"), "gradient": expected.tolist()}


def make(names=None):
    """Name -> list of answers, one an example; all functions, or those named."""
    real = load(numpy)
    carried = load(COMPLEX, abs=absolute)
    done = {}
    for name in names or real:
        function, examples = real[name]
        print(name)
        done[name] = [answer(function, carried[name][0], each) for each in examples]
    return done


if __name__ == "__main__":
    write(ANSWERS, make())
