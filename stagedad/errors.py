"""Every exception that stagedad raises on purpose.

Each class is also the built-in that a caller would guess, so that code which
knows nothing of stagedad can still catch it.  A message reads `op: problem:
values`; advice follows on a second line after `hint:`.  What a program may want
to know is an attribute (`op`, `shapes`, `line`, ...), so that nobody parses text.
"""

# ruff: noqa: N818  (the class says what is wrong, not that it is an error)
from __future__ import annotations

from collections.abc import Iterable


class StagedadError(Exception):
    """Base of all; never raised itself.

    Keywords beyond `op` and `hint` become attributes of the exception.
    """

    op: str | None
    hint: str | None

    def __init__(
        self, message: str, *, op: str | None = None, hint: str | None = None, **data: object
    ) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.op, self.hint = op, hint
        for name, value in data.items():
            setattr(self, name, value)


class ShapeError(StagedadError, ValueError):
    """Shapes that do not fit an operation.

    >>> raise ShapeError("mul", "do not broadcast", (2, 3), (4,))
    Traceback (most recent call last):
    stagedad.errors.ShapeError: mul: do not broadcast: (2, 3), (4,)
    """

    shapes: tuple[object, ...]

    def __init__(
        self,
        op: str,
        problem: str | None = None,
        /,
        *shapes: object,
        hint: str | None = None,
        **data: object,
    ) -> None:
        if problem is None:  # one finished text, which is also how pickle calls
            super().__init__(op, hint=hint, **data)  # type: ignore[arg-type]
        else:
            values = f": {', '.join(map(str, shapes))}" if shapes else ""
            super().__init__(f"{op}: {problem}{values}", op=op, hint=hint, **data)
        self.shapes = shapes


class NotScalar(ShapeError, TypeError):
    """The gradient was asked of a function whose result is no scalar."""


class DTypeError(StagedadError, TypeError):
    """A dtype that an operation does not take, or that stagedad does not know."""


class DeviceError(StagedadError, RuntimeError):
    """A device that is unknown, absent, or not where the other operands are."""


class VersionError(StagedadError, RuntimeError):
    """A saved tensor was changed in place before its gradient was computed."""


class FreedError(StagedadError, RuntimeError):
    """The saved values of a tape are gone, as after a first backward."""


class InplaceError(StagedadError, RuntimeError):
    """An in-place operation that would make gradients wrong."""


class NotDifferentiable(StagedadError, NotImplementedError):
    """A gradient was asked of an argument that has none."""

    argument: str | None = None
    location: tuple[str, int] | None = None
    """File and line of the user's code."""


class ForwardModeUnsupported(StagedadError, NotImplementedError):
    """A tangent met an operation without a forward rule."""


class DeclarationError(StagedadError, ValueError):
    """An op declaration that is malformed or names what does not exist."""

    file: str | None = None
    entry: str | None = None
    key: str | None = None
    line: int | None = None
    column: int | None = None


class ParseError(StagedadError, SyntaxError):
    """Text that is not a type, a graph or a file of stagedad.

    `lineno` and `offset`, where given, count from 1.
    """

    def __str__(self) -> str:
        return str(self.args[0])  # SyntaxError would say the line a second time

    def __reduce__(self) -> tuple[object, ...]:
        # SyntaxError keeps these outside of __dict__, where pickle would lose them.
        place = {"lineno": self.lineno, "offset": self.offset, "text": self.text}
        return (type(self), self.args, {**self.__dict__, **place})


class ForeignValue(StagedadError, ValueError):
    """A value of another graph."""


class StaleHandle(StagedadError, ReferenceError):
    """A handle whose node or value was destroyed."""


class BusyError(StagedadError, RuntimeError):
    """A graph was edited while someone else was reading or changing it."""


class VerifyError(StagedadError, AssertionError):
    """A graph that breaks an invariant of the IR, or a staged pair that is not one."""


class TraceError(StagedadError, TypeError):
    """A traced value met code that cannot carry it."""


class LeakedTracer(StagedadError, RuntimeError):
    """A traced value was used after its trace had ended."""


class FormatError(StagedadError, ValueError):
    """A saved file that is damaged, too new, or not of stagedad."""


class ExportError(StagedadError, NotImplementedError):
    """A program that cannot be exported as asked."""


class KernelError(StagedadError, RuntimeError):
    """A kernel failed to compile or to run; the log is a note."""


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """Return the hint `did you mean 'x'?`, or None where nothing in `known` is near."""
    from difflib import get_close_matches  # slow to import, and only errors need it

    near = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None
