"""Functions as NumPy's users write them: right, or a known refusal at the user's line.

`refusals.json` lists what is refused today, by the `np` that the functions are bound to. What
begins to work must leave the list (`make_refusals.py` does that); a wrong number fails always.
"""

import numpy
import pytest
from corpus_check import BOUND, EXPECTED, PLAIN, check, refusal_of
from corpus_loader import REFUSALS, read
from make_answers import make

KNOWN = {bound: dict(pairs) for bound, pairs in read(REFUSALS).items()}


def users_line(error, file):
    """`file:line` of the innermost frame of the file."""
    frame, line = error.__traceback__, None
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{file}:{line}"


CASES = [(bound, name) for bound in BOUND for name in sorted(PLAIN)]


@pytest.mark.parametrize(
    ("bound", "name"), [case for case in CASES if case[1] not in KNOWN[case[0]]]
)
def test_right(bound, name):
    check(bound, name)


@pytest.mark.parametrize(
    ("bound", "name"), [case for case in CASES if case[1] in KNOWN[case[0]]]
)
def test_refused_at_the_users_line(bound, name):
    refusal = refusal_of(bound, name)
    assert refusal is not None, f"works now: take {name} out of {REFUSALS.name} ({bound})"
    assert str(refusal).startswith(KNOWN[bound][name])
    assert users_line(refusal, PLAIN[name][0].__code__.co_filename) in str(refusal)


def test_every_refusal_is_of_a_function():
    for known in KNOWN.values():
        assert known.keys() <= PLAIN.keys()


def test_every_example_has_an_answer_of_known_accuracy():
    bounds = {"complex step": 1e-13, "differences": 1e-7}
    assert len(PLAIN) >= 150
    assert EXPECTED.keys() == PLAIN.keys()
    for name, (_, examples) in PLAIN.items():
        assert len(EXPECTED[name]) == len(examples)
        for answer in EXPECTED[name]:
            assert answer["error"] <= bounds[answer["method"]]
            assert numpy.any(answer["gradient"])


def test_a_sample_of_the_answers_is_made_again():
    sample = [*sorted(PLAIN)[::8], "bilinear_sample", "gaussian_process"]
    for name, answers in make(sample).items():
        for answer, expected in zip(answers, EXPECTED[name], strict=True):
            assert answer["method"] == expected["method"]
            found, wanted = numpy.array(answer["gradient"]), numpy.array(expected["gradient"])
            limit = max(1e-12, 10 * expected["error"]) * numpy.max(numpy.abs(wanted))
            numpy.testing.assert_allclose(found, wanted, rtol=1e-9, atol=limit)
