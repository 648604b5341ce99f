"""Tests of cli/picture.py."""

import math
from xml.etree import ElementTree

import pytest

from stagedad.cli.picture import curve_svg

SVG = "{http://www.w3.org/2000/svg}"


def draw(values):
    return ElementTree.fromstring(curve_svg(values, "a < b & c", "x", "y"))


def points(line):
    return [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]


def test_draws_every_value_from_left_to_right():
    (line,) = draw([100.0, 10.0, 1.0]).iter(f"{SVG}polyline")
    xs, ys = zip(*points(line), strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys)  # downwards on the screen
    assert ys[2] - ys[1] == pytest.approx(ys[1] - ys[0])  # a decade is a decade


def test_leaves_a_gap_where_a_value_has_no_logarithm():
    lines = list(draw([1.0, 2.0, 0.0, math.nan, math.inf, 3.0]).iter(f"{SVG}polyline"))
    assert [len(points(line)) for line in lines] == [2, 1]


def test_labels_say_what_they_were_given():
    texts = [text.text for text in draw([1.0]).iter(f"{SVG}text")]
    assert {"a < b & c", "x", "y"} <= set(texts)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0], [0.0], [1e-30, 1e30], [0.5] * 12345])
def test_stays_within_the_picture(values):
    for line in draw(values).iter(f"{SVG}polyline"):
        assert all(0 <= x <= 640 and 0 <= y <= 400 for x, y in points(line))


@pytest.mark.parametrize("count", [2, 9, 40, 100, 999, 6000])
def test_axis_has_a_readable_number_of_ticks(count):
    ticks = [
        text.text
        for text in draw([1.0] * count).iter(f"{SVG}text")
        if text.get("y") == "368.0"  # the row below the axis
    ]
    assert 2 <= len(ticks) <= 11
