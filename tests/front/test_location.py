"""Tests of front/location: a node comes from the line of the user that made it."""

import numpy as np
import pytest

import stagedad as sd
import stagedad.numpy as snp
from stagedad.front import _location
from stagedad.front.location import place, user_location


def lines_of(function, *args):
    graph = sd.trace(function, *args)
    return [(node.location[0], node.location[1]) for node in graph.nodes()]


def test_every_line_of_a_long_function():
    count = 2_000
    text = "def f(x):\n" + "".join(f"    x = np.sin(x + {i}.5)\n" for i in range(count))
    scope = {"np": snp}
    exec(compile(text + "    return x\n", "long.py", "exec"), scope)
    found = lines_of(scope["f"], 1.0)
    made = [line for file, line in found if file == "long.py"]
    assert len(found) == len(made) == 3 * count  # constant, sum and sine
    assert made == [2 + i for i in range(count) for _ in range(3)]


def test_parts_of_a_statement_have_their_own_lines():
    def function(x):
        return (
            np.sin(x)
            + np.cos(
                x
            )
        ) * x  # fmt: skip

    first = function.__code__.co_firstlineno
    found = [line - first for _, line in lines_of(function, np.ones(2))]
    assert found == [2, 3, 2, 1]


def test_functions_generators_lambdas_and_comprehensions():
    def helper(x):
        return x * 2

    def generator(x):
        for i in range(2):
            yield x + float(i)

    def function(x):
        total = helper(x)
        for each in generator(x):
            total = total + each
        return sum([total * 3.0 for _ in range(2)]) + (lambda y: y - 1.0)(x)

    code = {f.__code__.co_firstlineno: f.__name__ for f in (helper, generator, function)}
    found = {line for _, line in lines_of(function, np.ones(2))}
    firsts = sorted(code)
    assert {firsts[0] + 1, firsts[1] + 2, firsts[2] + 3, firsts[2] + 4} <= found


def test_outside_of_a_trace():
    line = test_outside_of_a_trace.__code__.co_firstlineno
    assert user_location() == (__file__, line + 2)
    assert place() == f"{__file__}:{line + 3}"
    assert user_location()[1] == line + 4


def test_equal_places_are_one_object():
    def function(x):
        return np.sin(x) + np.cos(x)

    one, *others = [node.location for node in sd.trace(function, np.ones(2)).nodes()]
    assert all(each is one for each in others)


def test_code_that_is_gone_gives_its_place_to_no_other():
    for i in range(300):
        scope = {"place": user_location}
        exec(compile("\n" * i + "found = place()", f"made{i}.py", "exec"), scope)
        assert scope["found"] == (f"made{i}.py", i + 1)


def test_the_table_is_bounded(monkeypatch):
    monkeypatch.setattr(_location, "PLACES", 20)
    for i in range(100):
        exec(compile("place()", f"bound{i}.py", "exec"), {"place": place})
        assert 0 < _location.place_count() <= max(20, 1)


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_an_error_of_the_user_leaves_no_frame_behind(error):
    def function(x):
        y = np.sin(x)
        raise error(str(y.shape))

    for _ in range(3):
        with pytest.raises(error):
            sd.trace(function, np.ones(3))
