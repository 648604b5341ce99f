"""Tests of transform/wiring.py: whether the lists of a Gradient fit its graphs."""

import dataclasses

import pytest

from stagedad.errors import VerifyError
from stagedad.ir import Graph
from stagedad.transform import Capture, differentiate
from stagedad.transform.wiring import (
    check_captures,
    check_fields,
    input_name,
    output_name,
)


@pytest.fixture
def gradient():
    """The pair of y = tanh(a) * b, where n takes no part."""
    graph = Graph()
    a, b = graph.add_input("f64[3]", "a"), graph.add_input("f64[3]", "b")
    graph.add_input("i64[]", "n")
    y = graph.insert("mul", graph.insert("tanh", a), b)
    y.name = "y"
    graph.register_output(y)
    return differentiate(graph, [True, True, False])


def refusal(check, gradient, **fields):
    with pytest.raises(VerifyError) as caught:
        check(dataclasses.replace(gradient, **fields))
    return str(caught.value)


def test_accepts_what_differentiate_gives(gradient):
    check_fields(gradient)
    check_captures(gradient)
    assert input_name(gradient, 1) == "input 1 (%b)"
    assert output_name(gradient, 0) == "output 0 (%y)"
    temporary = gradient.f.outputs[1]
    assert output_name(gradient, 1) == f"temporary output 1 (%{temporary.id})"


I1, O1 = Capture(Capture.INPUT, 1), Capture(Capture.OUTPUT, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"f_real_outputs": 3}, "f_real_outputs is 3, f has 2 outputs"),
        ({"f_real_outputs": -1}, "f_real_outputs is -1, f has 2 outputs"),
        ({"df_input_captures": [I1, Capture(Capture.OUTPUT, 7)]},
         "capture 1 is O7, f has 2 such"),
        ({"df_input_captures": [Capture(Capture.INPUT, -1), O1]},
         "capture 0 is I-1, f has 3 such"),
        ({"df_input_captures": [I1]}, "df has 4 inputs, its lists name 3"),
        ({"df_input_vjps": [0]}, "df has 4 inputs, its lists name 3"),
        ({"df_input_vjps": [0, 2]}, "df_input_vjps names 2 of 2"),
        ({"df_input_vjps": [1, 1]}, "df_input_vjps names 1 twice"),
        ({"df_output_vjps": [0]}, "df has 2 outputs, its lists name 1"),
        ({"df_output_vjps": [0, -1]}, "df_output_vjps names -1 of 3"),
        ({"df_output_vjps": [0, 0]}, "df_output_vjps names 0 twice"),
        ({"df_output_vjps": [0, 2]}, "df_output_vjps names 2, which is i64[]: no cotangent"),
        ({"df_input_captures": [Capture(Capture.INPUT, 2), O1]},
         "df input 0 (%b) is f64[3]; %n of f is i64[]"),
    ],
)  # fmt: skip
def test_names_the_field_that_does_not_fit(gradient, fields, message):
    assert refusal(check_fields, gradient, **fields) == f"gradient.check: {message}"


def test_names_a_cotangent_of_another_type(gradient):
    gradient.df.inputs[2].type = "f64[4]"
    assert refusal(check_fields, gradient).startswith("gradient.check: df input 2 (%")
    gradient.df.inputs[2].type = None
    check_fields(gradient)
    gradient.df.outputs[1].type = "f32[3]"
    assert "df output 1, the cotangent of input 1 (%b), is f32[3]" in refusal(
        check_fields, gradient
    )


def test_names_captures_that_are_dead_or_one_value(gradient):
    repeated = refusal(check_captures, gradient, df_input_captures=[O1, O1])
    assert repeated.startswith(
        "gradient.check: captures 0 and 1 are the same value: O1 and O1 (%"
    )
    kept = gradient.df.inputs[0]
    kept.replace_all_uses_with(gradient.df.inputs[1])
    dead = refusal(check_captures, gradient)
    assert dead.startswith("gradient.check: capture 0 is dead: I1 (%b of f, %b of df)")
    assert "\nhint: take it out of df's inputs" in dead


def test_what_df_hands_on_is_not_dead(gradient):
    gradient.df.register_output(gradient.df.inputs[0])
    other = gradient.df.inputs[1]
    for use in gradient.df.inputs[0].uses:
        if use.user.kind != "return":
            use.user.replace_input(use.offset, other)
    check_captures(gradient)
