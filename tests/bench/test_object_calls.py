"""Programs of the benchmarks call no Python: every op has a loop."""

import sys
from pathlib import Path

import pytest

import stagedad as sd
import stagedad.numpy
from stagedad.plan.kernels import loops_enabled

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "rows.py").exists():
    pytest.skip("bench/ is not beside the tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last: an installed stagedad comes first

from bench import graphs  # noqa: E402
from bench.peers.stagedad_peer import make_joint  # noqa: E402
from bench.rows import ROWS  # noqa: E402

pytestmark = pytest.mark.skipif(not loops_enabled(), reason="ufuncs are called as objects")
CASES = [(name, size) for name, row in ROWS.items() for size in row.sizes]


@pytest.mark.parametrize(("name", "size"), CASES)
def test_rows_call_no_objects(name, size):
    row = ROWS[name]
    arguments = row.arguments(size)
    function = row.over(stagedad.numpy)
    if row.cotangent is None:
        step = sd.value_and_grad(function, row.wrt)
    else:
        arguments = (*arguments, row.cotangent(size))

        def step(*arguments):
            value, pull = sd.vjp(function, *arguments[:-1])
            return (value, *pull(arguments[-1]))

    assert sd.explain(step, *arguments).objects == ()
    joint = make_joint(row, size)  # a partial: program, then its inputs
    assert sd.explain(joint.func, *joint.args).objects == ()


def test_functions_of_many_operations_call_no_objects():
    step = sd.value_and_grad(graphs.operations(100, stagedad.numpy))
    found = sd.explain(step, 0.5)
    assert found.instructions > 100
    assert found.objects == ()
    program = sd.compile(graphs.chain(100))
    program.specialise(["f64[16]", "f64[16]"])
    assert "object" not in {each.kind for each in program.instructions}
