"""SciPy's ufuncs on traced values: tables of values, what has no derivative, nothing at import.

The laws of tests/laws and tests/ops go over these ops too, where SciPy is installed.
"""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import stagedad as sd
from stagedad import special as own
from stagedad.errors import NotDifferentiable
from stagedad.ops import OPS
from stagedad.ops.registry import scipy_ops
from stagedad.plan.kernels import loops_enabled
from stagedad.types import TensorType

special = pytest.importorskip("scipy.special")

SQRT_PI = np.sqrt(np.pi)
EULER = 0.5772156649015329

# Function, at, derivative: known numbers, of DLMF's formulas.
KNOWN = [
    (special.erf, 0.0, 2 / SQRT_PI),
    (special.erfc, 1.0, -2 / SQRT_PI / np.e),
    (special.erfinv, 0.0, SQRT_PI / 2),
    (special.erfcinv, 1.0, -SQRT_PI / 2),
    (special.gamma, 1.0, -EULER),
    (special.gammaln, 2.0, 1 - EULER),
    (special.psi, 1.0, np.pi**2 / 6),
    (special.digamma, 0.5, np.pi**2 / 2),
    (lambda x: special.beta(x, 2.0), 1.0, -0.75),
    (lambda x: special.betaln(x, 1.0), 2.0, -0.5),
    (lambda x: special.gammainc(1.0, x), 2.0, np.exp(-2.0)),
    (lambda x: special.gammaincc(2.0, x), 3.0, -3 * np.exp(-3.0)),
    (lambda x: special.betainc(2.0, 3.0, x), 0.5, 1.5),
    (lambda x: special.betainc(1.0, 1.0, x), 0.0, 1.0),
    (special.expit, 0.0, 0.25),
    (special.logit, 0.25, 16 / 3),
    (special.log_expit, 0.0, 0.5),
    (special.log_expit, -800.0, 1.0),
    (lambda x: special.xlogy(x, 2.0), 0.0, np.log(2)),
    (lambda y: special.xlogy(0.0, y), 0.0, 0.0),
    (lambda y: special.xlog1py(2.0, y), 1.0, 1.0),
    (special.ndtr, 0.0, 1 / np.sqrt(2 * np.pi)),
    (special.ndtri, 0.5, np.sqrt(2 * np.pi)),
    (special.log_ndtr, 0.0, np.sqrt(2 / np.pi)),
    (special.log_ndtr, -1e4, 1e4 + 1e-4),
    (special.j0, 0.0, 0.0),
    (special.j1, 0.0, 0.5),
    (lambda x: special.jn(2, x), 0.0, 0.0),
    (lambda x: special.jv(0.5, x), np.pi, -np.sqrt(2) / np.pi),
    (special.y0, 1.0, -special.y1(1.0)),
    (lambda x: special.yn(1, x), 1.0, special.y0(1.0) - special.y1(1.0)),
    (special.i0, 0.0, 0.0),
    (special.i1, 0.0, 0.5),
    (special.i0e, 1.0, special.i1e(1.0) - special.i0e(1.0)),
    (lambda x: special.iv(0.5, x), 1.0, np.sqrt(2 / np.pi) * (np.cosh(1) - np.sinh(1) / 2)),
    (special.k0, 1.0, -special.k1(1.0)),
    (special.k1, 1.0, -special.k0(1.0) - special.k1(1.0)),
    (lambda x: special.kv(0.5, x), 1.0, -1.5 * np.sqrt(np.pi / 2) / np.e),
    (special.entr, 1.0, -1.0),
    (lambda x: special.rel_entr(x, 2.0), 2.0, 1.0),
    (lambda y: special.kl_div(1.0, y), 2.0, 0.5),
    (lambda r: special.huber(1.0, r), 0.25, 0.25),
    (lambda r: special.huber(1.0, r), -3.0, -1.0),
    (lambda d: special.huber(d, 3.0), 1.0, 2.0),
    (lambda r: special.pseudo_huber(2.0, r), 2.0, np.sqrt(2)),
    (special.exprel, 0.0, 0.5),
    (special.exprel, 1e-9, 0.5 + 1e-9 / 3),
    (special.exprel, 1.0, 1.0),
    (special.cosm1, np.pi / 2, -1.0),
    (special.exp10, 2.0, 100 * np.log(10)),
    (special.exp2, 3.0, 8 * np.log(2)),
    (special.log1p, 1.0, 0.5),
    (special.expm1, 0.0, 1.0),
    (special.cbrt, 8.0, 1 / 12),
    (lambda x: special.boxcox(x, 2.0), 3.0, 3.0),
    (lambda k: special.boxcox(np.e, k), 0.0, 0.5),
    (lambda k: special.boxcox1p(np.e - 1, k), 1.0, 1.0),
    (lambda q: special.zeta(2.0, q), 1.0, -2 * special.zeta(3.0)),
]


@pytest.mark.parametrize(("function", "at", "slope"), KNOWN, ids=range(len(KNOWN)))
def test_known_slopes(function, at, slope):
    assert sd.grad(function)(at) == pytest.approx(slope, rel=1e-13, abs=1e-15)


# Analytic ones by a complex step, which has no rounding of differences.
STEPS = {
    special.erf: 0.7, special.erfc: 0.7, special.erfcx: 0.7, special.gamma: 2.3,
    special.loggamma: 2.3, special.psi: 2.3, special.ndtr: 0.7, special.log_ndtr: -0.7,
    special.log1p: 0.7, special.expm1: 0.7,
}  # fmt: skip


@pytest.mark.parametrize("function", STEPS, ids=lambda f: f.__name__)
def test_slopes_are_those_of_a_complex_step(function):
    x = STEPS[function]
    assert sd.grad(function)(x) == pytest.approx(function(x + 1e-30j).imag / 1e-30, rel=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_psi_has_every_order(order):
    function = special.psi
    for _ in range(order):
        function = sd.grad(function)
    assert function(1.5) == pytest.approx(special.polygamma(order, 1.5), rel=1e-13)
    assert function(-1.3) == pytest.approx(special.polygamma(order, -1.3), rel=1e-12)


@pytest.mark.parametrize("order", range(4))
def test_polygamma_of_traced_values(order):
    x = np.array([0.7, 2.5])
    np.testing.assert_array_equal(own.polygamma(order, x), special.polygamma(order, x))
    found = sd.jit(lambda x: own.polygamma(order, x))(x)
    np.testing.assert_allclose(found, special.polygamma(order, x), rtol=1e-14)
    slope = sd.grad(lambda x: np.sum(own.polygamma(order, x)))(x)
    np.testing.assert_allclose(slope, special.polygamma(order + 1, x), rtol=1e-13)
    with pytest.raises(TypeError):
        sd.jit(lambda n: own.polygamma(n, x))(1)


PARAMETERS = [
    (special.gammainc, (1.5, 0.5), 0), (special.gammaincc, (1.5, 0.5), 0),
    (special.betainc, (1.5, 0.5, 0.5), 0), (special.betainc, (1.5, 0.5, 0.5), 1),
    (special.jv, (1.5, 0.5), 0), (special.yv, (1.5, 0.5), 0), (special.iv, (1.5, 0.5), 0),
    (special.kv, (1.5, 0.5), 0), (special.kn, (1.0, 0.5), 0), (special.yn, (1.0, 0.5), 0),
    (special.zeta, (1.5, 0.5), 0), (special.hyp1f1, (1.5, 0.5, 0.5), 0),
]  # fmt: skip


@pytest.mark.parametrize(("function", "at", "number"), PARAMETERS)
def test_parameters_without_a_derivative_say_so(function, at, number):
    assert sd.jit(function)(*at) == function(*at)
    with pytest.raises(NotDifferentiable, match="no derivative with respect to"):
        sd.grad(function, argnums=number)(*at)


def test_zeta_of_one_argument_has_no_derivative():
    assert sd.jit(lambda s: special.zeta(s))(2.0) == special.zeta(2.0)
    with pytest.raises(NotDifferentiable, match="riemann_zeta: no derivative"):
        sd.grad(lambda s: special.zeta(s))(2.0)


@pytest.mark.parametrize("kind", scipy_ops())
def test_values_are_scipys_to_the_bit(kind):
    op = OPS[kind]
    assert op.ufunc.nin == len(op.arguments)
    given = [
        np.linspace(*op.domain.get(argument.name, (-2, 2)), 7) for argument in op.arguments
    ]
    if kind in ("yn", "kn"):
        given[0] = np.arange(7)
    for dtype in "fd":
        arrays = [x if x.dtype.kind == "i" else x.astype(dtype) for x in given]
        found, wanted = sd.jit(op.ufunc)(*arrays), op.ufunc(*arrays)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_python_numbers_take_the_loop_that_numpy_takes():
    x = np.array([0.5, 1.5], "f4")
    for function in (
        lambda x: special.jv(2, x),
        lambda x: special.yn(2, x),
        lambda x: special.expit(x),
        lambda x: special.log1p(x.astype("f2")),
        lambda x: special.erf(x.astype("i1")),
        lambda x: special.xlogy(2.0, x),
        lambda x: special.jv.outer(np.array([1.0, 2.0]), x),
    ):
        found, wanted = sd.jit(function)(x), function(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.skipif(not loops_enabled(), reason="STAGEDAD_LOOPS=off")
def test_no_instruction_calls_scipy_as_an_object():
    program = sd.compile(sd.trace(lambda x: special.gammaln(special.erf(x) + 2), np.ones(9)))
    program(np.ones(9))
    assert not [each for each in program.instructions if each.kind == "object"]


def test_the_logistic_function_is_one_op():
    graph = sd.trace(lambda x: special.expit(x) + own.expit(x), np.ones(3))
    assert [node.kind for node in graph.nodes()] == ["sigmoid", "sigmoid", "add"]
    assert "expit" not in OPS


def test_complex_operands():
    z = np.array([0.3 + 0.4j])
    found = sd.grad(lambda z: special.erf(z)[0], holomorphic=True)(z)
    np.testing.assert_allclose(found, 2 / SQRT_PI * np.exp(-z * z), rtol=1e-14)


def test_nodes_are_of_the_users_line():
    graph = sd.trace(lambda x: special.zeta(2.0, x), np.ones(2))
    assert [node.location[0] for node in graph.nodes() if node.kind == "zeta"] == [__file__]


def test_symbolic_values():
    graph = sd.Graph()
    x = sd.SymbolicValue(graph.add_input("f64[3]", name="x"))
    graph.register_output(special.erf(x * 2).value)
    assert [node.kind for node in graph.nodes()][-1] == "erf"


def test_ufuncs_that_are_not_declared_say_how_to_register():
    with pytest.raises(TypeError, match=r"owens_t: .*\nhint: sd\.register_ufunc"):
        sd.grad(lambda x: special.owens_t(x, 1.0))(0.5)


def test_a_ufunc_of_scipys_is_registered():
    sd.register_ufunc(special.dawsn, partials=["1 - 2 * x * result"])
    assert sd.grad(special.dawsn)(0.3) == pytest.approx(1 - 0.6 * special.dawsn(0.3))
    sd.register_ufunc(
        special.sici,
        signature="sici(x) -> (si, ci)",
        vjp=["(g_si * sin(x) + g_ci * cos(x)) / x"],
        jvp="(x_t * sin(x) / x, x_t * cos(x) / x)",
    )
    si, ci = special.sici(1.3)
    found = sd.grad(lambda x: np.multiply(*special.sici(x)))(1.3)
    assert found == pytest.approx((ci * np.sin(1.3) + si * np.cos(1.3)) / 1.3)
    graph = sd.trace(lambda x: special.sici(x), np.ones(3))
    assert [value.type for value in graph.outputs] == [TensorType("f8", (3,))] * 2
    assert sd.differentiate(graph, [True]).check(np.ones(3)).tangents


def run(code, *arguments):
    """What a fresh process prints, one that checks no more than those of users."""
    command = [sys.executable, "-c", code, *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "STAGEDAD_CHECK"}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return found.stdout.split()


def test_scipy_costs_nothing_until_it_is_used():
    found = run(
        "import sys, numpy as np, stagedad as sd\n"
        "sd.grad(lambda x: np.sum(np.exp(x)))(np.ones(2))\n"
        "print(any(name.startswith('scipy') for name in sys.modules))\n"
        "print('stagedad.ops._gen_scipy_table' in sys.modules, 'tomllib' in sys.modules)\n"
        "print('erf' in list(sd.ops))\n"
        "import scipy.special\n"
        "print('stagedad.ops._gen_scipy_table' in sys.modules)\n"
        "sd.grad(scipy.special.erf)(1.0)\n"
        "print('erf' in list(sd.ops))\n"
    )
    assert found == ["False", "False", "False", "False", "False", "True"]


def test_threads_may_be_the_first_to_use_it():
    found = run(
        "import numpy as np, scipy.special as special, stagedad as sd\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from threading import Barrier\n"
        "barrier = Barrier(8)\n"
        "def work(number):\n"
        "    barrier.wait()\n"
        "    return float(sd.grad(special.erf if number % 2 else special.psi)(1.0))\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(len(set(pool.map(work, range(8)))))\n"
    )
    assert found == ["2"]


def test_errors_of_scipys_functions_are_raised():
    poles = np.array([-1.0, 2.0])
    assert np.isinf(sd.jit(special.gammaln)(poles)[0])
    with special.errstate(all="raise"), pytest.raises(special.SpecialFunctionError):
        sd.jit(special.gammaln)(poles)
    assert sd.jit(special.gammaln)(poles)[1] == special.gammaln(2.0)


def test_graphs_that_name_scipys_ops_bring_them():
    graph = sd.trace(lambda x: special.gammaln(special.digamma(x)), np.ones(2))
    code = (
        "import pickle, sys, numpy as np, stagedad as sd\n"
        "graph = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print(*sd.compile(graph)(np.full(2, 3.0))[0])\n"
        "print(sd.parse_graph(sys.argv[2]) == graph)\n"
    )
    found = run(code, pickle.dumps(graph).hex(), str(graph))
    value = special.gammaln(special.psi(3.0))
    assert found == [str(value), str(value), "True"]


def test_without_scipy_graphs_say_what_is_missing():
    found = run(
        "import sys\n"
        "sys.modules['scipy'] = None\n"
        "import numpy as np, stagedad as sd\n"
        "graph = sd.parse_graph('graph(%a : f64[]) { %1 : f64[] = erf(%a) return (%1) }')\n"
        "print('erf' in sd.ops)\n"
        "try:\n"
        "    sd.compile(graph)(1.0)\n"
        "except sd.errors.KernelError as error:\n"
        "    print(error.hint)\n"
    )
    assert found[0] == "False"
    assert "scipy.special," in found
