"""Tests of bench/transforming.py: the same work everywhere, and what the table says of it."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "transforming.py").exists():
    pytest.skip("bench/ is not beside the tests", allow_module_level=True)
sys.path.append(str(ROOT))  # last: an installed stagedad comes first

from bench import graphs, measure, peers, transforming  # noqa: E402
from bench.agree import difference  # noqa: E402
from bench.peers.numpy_hand import chain, operations  # noqa: E402
from bench.transforming import Line  # noqa: E402

A, B, G = np.random.default_rng(0).uniform(0.5, 1, (3, 16))


@pytest.fixture(params=sorted(peers.TRANSFORMERS))
def library(request):
    """Each library that is installed."""
    try:
        return peers.transforming(request.param)
    except peers.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_library_differentiates_the_same_chain(library):
    for nodes in (1, 2, 3, 20):
        found = library.results(library.differentiate(nodes)(), A, B, G)
        assert difference(float, tuple(found), chain(A, B, G, nodes)) is None
    assert library.ready is None or library.ready(library.differentiate(4)())() is not None
    assert library.create is None or library.create(4) is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_library_gives_the_same_first_result(library):
    for count in (4, 31):
        assert difference(float, tuple(library.first(count, A)()), operations(count, A)) is None


def test_chains_have_as_many_nodes_as_asked_for():
    assert len(graphs.chain(20)) == 20
    gradient = peers.transforming("stagedad").differentiate(20)()
    assert len(gradient.f) == 20
    value = graphs.chained(A, B, 20)
    np.testing.assert_array_equal(value, chain(A, B, G, 20)[0])


def test_by_hand_agrees_with_differences():
    value, dx = operations(31, A)
    model = graphs.operations(31, np)
    assert value == model(A)
    for at in range(3):
        step = 1e-6 * np.eye(16)[at]
        slope = (model(A + step) - model(A - step)) / 2e-6
        assert dx[at] == pytest.approx(slope, rel=1e-7)


def test_a_library_that_is_wrong_is_left_out(monkeypatch):
    right = peers.transforming("stagedad")
    off = right._replace(results=lambda *_: chain(A, B, G, 19))

    def found(name):
        if name == "TorchScript":
            raise peers.Missing("TorchScript: cannot be imported: no")
        return off if name == "JAX" else right

    monkeypatch.setattr(peers, "transforming", found)
    libraries, notes = transforming._libraries()
    assert sorted(libraries) == ["CasADi", "stagedad"]
    assert notes[0] == "skipped: TorchScript: cannot be imported: no"
    assert notes[1].startswith("WRONG, not timed: JAX: chain: result 0: off by")


def test_lines_are_held_against_the_limit():
    line = Line("work", "us", {"stagedad": 2.0, "CasADi": 4.0, "JAX": 300.0}, 3.0)
    assert line.missed is None
    assert line.cells(["JAX", "CasADi"]) == [
        "work", "2 us", "300 us", "4 us", "0.5", "3", "3", "none", "met",
    ]  # fmt: skip
    slow = line._replace(measured={"stagedad": 6.0})
    assert slow.missed == "work: 6 us, 2.0 x the limit 3"
    assert slow.cells(["JAX"]) == ["work", "6 us", "-", "-", "3", "3", "none", "missed"]
    free = line._replace(limit=None)
    assert (free.missed, free.cells([])[-1]) == (None, "-")


def test_limits_grow_with_the_peer_that_slowed_down_and_never_shrink():
    stated = {"CasADi": 5.0, "JAX": 100.0}
    line = Line("work", "us", {"stagedad": 5.0, "CasADi": 10.0, "JAX": 900.0}, 3.0, stated)
    assert line.scaled == (6.0, "CasADi")
    assert line.missed is None
    assert line.cells(["CasADi"])[2] == "10 us (5)"
    fast = line._replace(measured={"stagedad": 5.0, "CasADi": 1.0})
    assert fast.scaled == (3.0, "none")
    beyond = line._replace(measured={"stagedad": 9.0, "CasADi": 10.0})
    assert beyond.missed == "work: 9 us, 1.5 x the limit 6 (3 scaled by CasADi)"


def test_works_take_turns_until_they_took_long_enough(monkeypatch):
    calls = []
    cost = {"quick": 0.01, "middling": 1.5, "slow": 30.0}
    monkeypatch.setattr(measure, "once", lambda work: work())

    def work(name):
        def call():
            calls.append(name)
            return cost[name]

        return call

    found = measure.in_turn({name: work(name) for name in cost}, seconds=2.0)
    assert found == cost
    assert calls[:6] == ["quick", "middling", "slow", "quick", "middling", "quick"]
    assert {name: calls.count(name) for name in cost} == {"quick": 25, "middling": 3, "slow": 1}


def test_life_is_measured_in_a_process_of_its_own():
    create, size, free = transforming._life_in_a_process("stagedad", 20_000)
    assert create > 0
    assert free >= 0
    assert 0 <= size < 2_000
