"""Tests of cli/demo.py."""

import re
from xml.etree import ElementTree

import pytest

import stagedad as sd


@pytest.fixture(scope="module")
def ran(call, tmp_path_factory):
    """The folder and the output of a whole demo."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = call("demo", "--out", str(out))
    assert result.exit_code == 0, result.output
    return out, result.stdout


def test_learns(ran):
    accuracy = re.search(r"^held-out accuracy: (0\.\d{4})$", ran[1], re.M)
    assert float(accuracy[1]) >= 0.96


def test_gradient_agrees_with_finite_differences(ran):
    found = re.search(r"^largest difference to finite differences: (.*)$", ran[1], re.M)
    assert 0 < float(found[1]) < 1e-8


def test_last_lines_are_the_figures(ran):
    last = ran[1].splitlines()[-3:]
    assert [line.partition(":")[0] for line in last] == [
        "held-out accuracy",
        "largest difference to finite differences",
        "one training step",
    ]
    assert re.fullmatch(r".*: \d+\.\d us \(hand-written NumPy: \d+\.\d us\)", last[2])


def test_writes_what_it_prints(ran):
    out, text = ran
    for name in ("loss.py", "f.txt", "df.txt", "captures.txt"):
        assert (out / name).read_text().strip() in text


def test_writes_graphs_that_parse(ran):
    out, _ = ran
    f, df = (sd.parse_graph((out / name).read_text()) for name in ("f.txt", "df.txt"))
    assert len(f.inputs) == 6
    wanted = ["f32[64, 32]", "f32[32]", "f32[32, 10]", "f32[10]"]
    assert [str(value.type) for value in df.outputs] == wanted


def test_writes_a_picture(ran):
    assert ElementTree.parse(ran[0] / "loss.svg").getroot().tag.endswith("svg")


def test_prints_no_escapes_into_a_file(ran):
    assert "\x1b" not in ran[1]


def test_few_steps_will_do(call, tmp_path):
    assert call("demo", "--out", str(tmp_path), "--steps", "3").exit_code == 0


def test_refuses_a_folder_that_cannot_be_written(refusal, tmp_path):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "folder"
    assert f"cannot write to {place}" in refusal("demo", "--out", str(place))


def test_refuses_a_file_as_folder(refusal, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refusal("demo", "--out", str(tmp_path / "file"))
