"""The table (op, law, layout): no hole in it without a reason."""

import re
from pathlib import Path

import pytest

from stagedad.ops import OPS
from stagedad.ops.samples import ABSENT, LAYOUTS


def test_every_law_is_a_test(laws):
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    found = re.findall(r"^def (test_\w+)\((?:over|over, .*)\):", "\n".join(texts), re.MULTILINE)
    assert sorted(found) == sorted(laws.LAWS)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_op_keeps_every_law_in_every_layout_or_says_why_not(op, laws):
    for law, dtypes in laws.LAWS.items():
        covered = {dtype for other, dtype in laws.cases(law) if other is op}
        for dtype in dtypes:
            why = laws.reason(law, op, dtype)
            assert (dtype in covered) == (why is None)
            if why is None:
                # `over` asserts of each law that it compared something in each layout.
                layouts = {call.layout for call in laws.calls(op.kind, dtype)}
                assert len(laws.calls(op.kind, dtype)) >= 8
                for layout in LAYOUTS:
                    assert (layout in layouts) == ((op.kind, layout) not in ABSENT)


def test_differentiable_ops_are_exempt_from_little(laws):
    for op in map(OPS.__getitem__, laws.KINDS):
        if op.is_differentiable:
            exempt = {law for law in laws.LAWS if laws.reason(law, op, "f64") is not None}
            if op.kind == "hermitian":
                exempt -= laws.FREE
            assert exempt <= {
                "test_mixed_operands_agree_with_differences",
                "test_mixed_operands_lose_no_precision",
                "test_second_order_through_df",
            }
