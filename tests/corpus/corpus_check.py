"""One function of the corpus held against NumPy's value and the answers."""

import numpy
from corpus_loader import ANSWERS, flat, load, read, rebuilt, seed

import stagedad as sd
import stagedad.numpy
from stagedad.errors import NotDifferentiable, TraceError

NAMESPACES = {"stagedad.numpy": stagedad.numpy, "numpy": numpy}
PLAIN = load(numpy)
BOUND = {name: load(np) for name, np in NAMESPACES.items()}
EXPECTED = read(ANSWERS)


def check(bound, name):
    """Value, gradient and structure at every example; AssertionError where one is wrong.

    The transformed function is called beside the first example before, and at the first
    example again after, so that what one call leaves behind is under test as well. What
    stagedad refuses is raised as it is.
    """
    function, examples = BOUND[bound][name]
    plain = PLAIN[name][0]
    gradient = sd.value_and_grad(function, argnums=tuple(range(len(examples[0]))))
    first = flat(examples[0])
    calls = [(rebuilt(examples[0], first * 1.001 + 1e-6), None)]
    calls += [(each, answer) for each, answer in zip(examples, EXPECTED[name], strict=True)]
    calls.append(calls[1])
    for arguments, answer in calls:
        before = flat(arguments).copy()
        wanted = plain(*rebuilt(arguments, before))
        if numpy.isscalar(wanted):
            out, slopes = gradient(*arguments)
        else:
            out, pullback = sd.vjp(function, *arguments)
            cotangents = seed(len(flat(out)))
            slopes = pullback(rebuilt(wanted, cotangents))
        assert flat(arguments).tolist() == before.tolist(), "the arguments were changed"
        alike(out, wanted)
        alike(slopes, arguments)
        close(flat(out), flat(wanted), 1e-12, 1e-12)
        if answer is not None:
            close(
                flat(slopes), numpy.array(answer["gradient"]), 1e-9, max(answer["error"], 1e-12)
            )


def refusal_of(bound, name):
    """What stagedad says against the function; None where it works.

    Other errors than the two that refuse are raised: they are faults.
    """
    try:
        check(bound, name)
    except (TraceError, NotDifferentiable) as refusal:
        return refusal
    return None


def alike(tree, wanted):
    """Two results have one structure, and arrays of the same shape and dtype."""
    if isinstance(wanted, dict):
        assert list(tree) == list(wanted)
        tree, wanted = list(tree.values()), list(wanted.values())
    if isinstance(wanted, list | tuple):
        assert len(tree) == len(wanted)
        for each, other in zip(tree, wanted, strict=True):
            alike(each, other)
    else:
        assert numpy.shape(tree) == numpy.shape(wanted)
        assert numpy.result_type(tree) == numpy.result_type(wanted) == numpy.float64


def close(found, wanted, relative, absolute):
    """Close number by number, or by the largest of them where much cancels."""
    scale = numpy.max(numpy.abs(wanted))
    numpy.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute * scale)
