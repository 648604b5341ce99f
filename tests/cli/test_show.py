"""Tests of cli/show.py and cli/pair.py."""

import json
import re

import pytest

import stagedad as sd

MODEL = """
import math
import numpy as np

def energy(x, k):
    half = 0.5 * k
    return np.sum(half * x * x)

def broken(x):
    return x + 1 / 0

def cut(x):
    return math.sin(x)

def count(n):
    return n + 1
"""


@pytest.fixture(autouse=True)
def _model(tmp_path, monkeypatch):
    """A file of functions; works in its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")  # puts sys.path back afterwards
    (tmp_path / "model.py").write_text(MODEL)


def graphs(text):
    """The graphs of a text, parsed back."""
    return [sd.parse_graph(part) for part in re.findall(r"^graph\(.*?^}", text, re.M | re.S)]


def test_prints_graph_f_and_df(call):
    result = call("show", "model.py:energy", "--args", "f64[3]", "2.0")
    assert result.exit_code == 0, result.output
    graph, f, df = graphs(result.stdout)
    assert [str(value.type) for value in graph.inputs] == ["f64[3]", "f64[]"]
    assert len(f.outputs) >= len(graph.outputs)
    assert len(df.outputs) == 2


def test_prints_captures_with_their_sizes(call):
    text = call("show", "model.py:energy", "--args", "f64[3]", "2.0").stdout
    assert re.search(r"^in f +in df +type +bytes", text, re.M)
    assert re.search(r"^%x +%x +f64\[3\] +24 ", text, re.M)
    assert re.search(r"^\d+ captures: \d+ bytes$", text, re.M)


def test_json_holds_the_same(call):
    result = call("show", "model.py:energy", "--json", "--args", "f64[3]", "2.0")
    shown = json.loads(result.stdout)
    assert [len(graphs(shown[name])) for name in ("graph", "f", "df")] == [1, 1, 1]
    (x,) = [capture for capture in shown["captures"] if capture["name"] == "%x"]
    assert (x["kind"], x["type"], x["bytes"]) == ("input", "f64[3]", 24)


def test_takes_a_negative_number(call):
    assert call("show", "model.py:energy", "--args", "f64[3]", "-2.0").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["none.py:f"], "no such file: none.py"),
        (["model.py:none"], "model.py has no function 'none'"),
        (["model.py"], "not of the form FILE.py:FUNCTION"),
        (["model.py:energy", "--args", "f64[3"], "neither a Python literal nor a type"),
        (["model.py:energy", "f64[3]"], "write --args before the arguments"),
        (["model.py:energy", "--args", "f64[3]"], "missing 1 required positional"),
        (["model.py:energy", "--args", "f64[3]", "f64[4]"], "model.py:energy: line 7: "),
        (["model.py:broken", "--args", "1.0"], "line 10: ZeroDivisionError"),
        (["model.py:cut", "--args", "1.0"], "line 13"),
        (["model.py:count", "--args", "i64[]"], "no floating argument"),
        (["model.py:energy", "--argz", "f64[3]"], "--argz"),
        ([], "Missing argument"),
    ],
)
def test_says_in_one_line_what_is_wrong(refusal, arguments, problem):
    assert problem in refusal("show", *arguments)
