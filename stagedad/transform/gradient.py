"""`Gradient`: the explicit pair of programs that `differentiate` gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from stagedad.ir import Graph, Value
from stagedad.transform.cost import Cost, cost
from stagedad.types import TensorType

__all__ = ["Capture", "CaptureInfo", "Gradient"]


class CaptureKind(Enum):
    """Where a captured value comes from."""

    INPUT = "input"
    OUTPUT = "output"

    def __repr__(self) -> str:
        return f"Capture.{self.name}"


class _Capture(NamedTuple):
    kind: CaptureKind
    offset: int


class Capture(_Capture):
    """One captured value: input or output number `offset` of f, by `kind`."""

    __slots__ = ()

    INPUT: ClassVar = CaptureKind.INPUT
    OUTPUT: ClassVar = CaptureKind.OUTPUT

    def __str__(self) -> str:
        return f"{'I' if self.kind is CaptureKind.INPUT else 'O'}{self.offset}"


class CaptureInfo(NamedTuple):
    """A captured value as people want to know it."""

    name: str
    """`%name` in f."""
    kind: str
    """`input`, `output` (of the function) or `temporary` (appended to the outputs of f)."""
    type: TensorType | None
    bytes: int | None
    """Size of the array; None where the shape is unknown."""
    producer: str | None
    """Kind of the node of f that computes it; None for an input."""
    location: tuple[str, int] | None
    """File and line of that node in the user's code."""
    consumers: tuple[str, ...]
    """Kinds of the nodes of df that read it, in order."""
    inside: str
    """`%name` of the input of df that it becomes."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """A function as two programs, f and its vjp df, and how to wire them.

    Example: y = f(x, m), where only x requires a gradient and its vjp reads x, y and an
    intermediate t.

        y, t = f(x, m)                  t is appended to the outputs of f
        dx   = df(x, t, y, dy, dt)      captures first, then cotangents

        f_real_outputs     = 1          y; t is a stranger to the caller
        df_input_captures  = I0, O1, O0    x, t, y: inputs of f first, then outputs of its nodes
        df_input_vjps      = 0, 1       outputs of f that dy and dt belong to
        df_output_vjps     = 0          inputs of f that dx belongs to

    To run it: call f; take each capture from f's inputs or outputs; append the cotangents in
    the order of `df_input_vjps` (zeros for temporaries in a first backward); call df; its
    output i is the cotangent of input `df_output_vjps[i]`.  The cotangents of temporaries are
    there for higher orders: whoever differentiates df reaches x through t as well.
    """

    f: Graph
    df: Graph
    f_real_outputs: int
    df_input_captures: list[Capture]
    df_input_vjps: list[int]
    df_output_vjps: list[int]

    @property
    def captures(self) -> list[CaptureInfo]:
        """What df keeps from f, in the order of df's inputs."""
        inputs, outputs = self.f.inputs, self.f.outputs
        found = []
        for capture, inside in zip(self.df_input_captures, self.df.inputs, strict=False):
            from_input = capture.kind is CaptureKind.INPUT
            value = (inputs if from_input else outputs)[capture.offset]
            if from_input:
                kind = "input"
            else:
                kind = "output" if capture.offset < self.f_real_outputs else "temporary"
            found.append(_describe(value, kind, inside))
        return found

    @property
    def joint(self) -> Graph:
        """f at stage 0 and df at stage 1, as one graph.

        Inputs: those of f, then, at stage 1, the cotangents in `df_input_vjps` order, of
        temporaries too.  Outputs: those of f, then those of df.
        """
        graph = Graph()
        inputs = [graph.add_input(value.type, name=value.name) for value in self.f.inputs]
        outputs = graph.inline(self.f, inputs)
        graph.advance_stage()
        captured = [
            (inputs if kind is Capture.INPUT else outputs)[offset]
            for kind, offset in self.df_input_captures
        ]
        slots = self.df.inputs[len(captured) :]
        seeds = [graph.add_input(value.type, name=value.name) for value in slots]
        for value in (*outputs, *graph.inline(self.df, [*captured, *seeds])):
            graph.register_output(value)
        graph.stage = 0
        return graph

    def cost(self) -> Cost:
        """Return what f and df cost: operations, their ratio, and the bytes of the captures.

        Raises: ShapeError, naming the value, where a size is not known.
        """
        return cost(self)

    def check(self, *arguments: Any, function: Callable[..., Any] | None = None) -> Any:
        """Check the pair at `arguments`; return how much was compared, or raise.

        That the lists fit the graphs, that df reads every capture and none twice; then, for
        each input and each cotangent, of temporaries too, that df agrees with the tangent of
        f, within rounding, and with finite differences, within what these can tell.  With
        `function`, also that the real outputs are what `function(*arguments)` gives, if it
        is what f was traced from.

        `arguments` are those of the traced function, pytrees too: arrays and numbers for the
        inputs of f.  Nothing is changed; the same call compares the same numbers.

        What it cannot do: at a kink differences allow every slope between those of the two
        sides, at a jump, a singular point and where f changes faster than its dtype resolves
        any; `blunt` in the result counts that.  In float32 they tell slopes to about 1e-3, in
        float16 hardly.  What `stop_gradient` gives is held still in them.  The tangent has no
        such limits, but believes what the ops declare.  Large arrays are compared along a few
        directions, not element by element; other branches of the function not at all.

        Raises: VerifyError, an AssertionError, naming the capture, or input and output, the
                index and both numbers; TypeError and what the program of f raises for
                arguments that f does not take.
        """
        assert _check is not None, "set by stagedad.front"
        return _check(self, arguments, function)

    def __repr__(self) -> str:
        return (
            f"<Gradient: f has {len(self.f)} nodes, df {len(self.df)}; "
            f"captures {_first(self.df_input_captures)}; "
            f"vjps in {_first(self.df_input_vjps)}, out {_first(self.df_output_vjps)}>"
        )

    def __copy__(self) -> Gradient:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Gradient:
        return Gradient(
            self.f.copy(),
            self.df.copy(),
            self.f_real_outputs,
            list(self.df_input_captures),
            list(self.df_input_vjps),
            list(self.df_output_vjps),
        )


_check: Callable[[Gradient, tuple[Any, ...], Any], Any] | None = None


def set_check(check: Callable[[Gradient, tuple[Any, ...], Any], Any]) -> None:
    """Set what `Gradient.check` calls: it runs programs, so it lives in front."""
    global _check
    _check = check


def _first(items: Sequence[object]) -> str:
    """The first few items, and how many there are."""
    shown = ", ".join(str(item) for item in items[:8]) or "none"
    return f"{shown}, ... ({len(items)})" if len(items) > 8 else shown


def _describe(value: Value, kind: str, inside: Value) -> CaptureInfo:
    node = value.node
    return CaptureInfo(
        name=f"%{value.name or value.id}",
        kind=kind,
        type=value.type,
        bytes=None if value.type is None else value.type.nbytes,
        producer=None if node.kind == "param" else node.kind,
        location=node.location,
        consumers=tuple(use.user.kind for use in inside.uses),
        inside=f"%{inside.name or inside.id}",
    )
