"""Whether the fields of a Gradient fit its graphs, and what its slots are called."""

from __future__ import annotations

from collections.abc import Sequence

from stagedad.errors import VerifyError
from stagedad.ir import Value
from stagedad.transform.gradient import Capture, Gradient

__all__ = ["captured_values", "check_captures", "check_fields", "input_name", "output_name"]


def check_fields(gradient: Gradient) -> None:
    """Check that the lists of `gradient` wire df to f.

    Raises: VerifyError, naming the field or the capture.
    """
    inputs, outputs = gradient.f.inputs, gradient.f.outputs
    if not 0 <= gradient.f_real_outputs <= len(outputs):
        problem = f"f_real_outputs is {gradient.f_real_outputs}, f has {len(outputs)} outputs"
        raise VerifyError(f"gradient.check: {problem}")
    for number, (kind, offset) in enumerate(gradient.df_input_captures):
        count = len(inputs if kind is Capture.INPUT else outputs)
        if not 0 <= offset < count:
            text = Capture(kind, offset)
            raise VerifyError(f"gradient.check: capture {number} is {text}, f has {count} such")
    _check_offsets("df_input_vjps", gradient.df_input_vjps, outputs)
    _check_offsets("df_output_vjps", gradient.df_output_vjps, inputs)
    expected = len(gradient.df_input_captures) + len(gradient.df_input_vjps)
    for what, found, wanted in (
        ("inputs", len(gradient.df.inputs), expected),
        ("outputs", len(gradient.df.outputs), len(gradient.df_output_vjps)),
    ):
        if found != wanted:
            raise VerifyError(f"gradient.check: df has {found} {what}, its lists name {wanted}")
    sources = [*captured_values(gradient), *[outputs[j] for j in gradient.df_input_vjps]]
    for number, (source, inside) in enumerate(zip(sources, gradient.df.inputs, strict=True)):
        _check_types(f"df input {number} (%{_name(inside)})", source, inside)
    for number, (place, value) in enumerate(
        zip(gradient.df_output_vjps, gradient.df.outputs, strict=True)
    ):
        what = f"df output {number}, the cotangent of input {place} (%{_name(inputs[place])}),"
        _check_types(what, inputs[place], value)


def check_captures(gradient: Gradient) -> None:
    """Check that df reads every capture, and that no two captures are one value of f.

    Raises: VerifyError, naming the captures.
    """
    seen: dict[Value, int] = {}
    captures, inputs = gradient.df_input_captures, gradient.df.inputs
    pairs = zip(captured_values(gradient), inputs, strict=False)
    for number, (value, inside) in enumerate(pairs):
        what = f"{captures[number]} (%{_name(value)} of f, %{_name(inside)} of df)"
        if not inside.has_uses():
            raise VerifyError(
                f"gradient.check: capture {number} is dead: {what}: df never reads it",
                hint="take it out of df's inputs and of df_input_captures",
                capture=number,
            )
        if value in seen:
            first = seen[value]
            raise VerifyError(
                f"gradient.check: captures {first} and {number} are the same value: "
                f"{captures[first]} and {what}",
                hint="let df read one of them for both",
                capture=number,
            )
        seen[value] = number


def captured_values(gradient: Gradient) -> list[Value]:
    """Return the values of f that df keeps, in the order of df's inputs."""
    inputs, outputs = gradient.f.inputs, gradient.f.outputs
    return [
        (inputs if kind is Capture.INPUT else outputs)[offset]
        for kind, offset in gradient.df_input_captures
    ]


def input_name(gradient: Gradient, place: int) -> str:
    """Return what to call an input of f: `input 0 (%x)`."""
    return f"input {place} (%{_name(gradient.f.inputs[place])})"


def output_name(gradient: Gradient, offset: int) -> str:
    """Return what to call an output of f: `output 0 (%y)`; one that df keeps is a temporary."""
    kind = "output" if offset < gradient.f_real_outputs else "temporary output"
    return f"{kind} {offset} (%{_name(gradient.f.outputs[offset])})"


def _name(value: Value) -> str:
    return str(value.name or value.id)


def _check_offsets(field: str, offsets: Sequence[int], values: Sequence[Value]) -> None:
    seen = set()
    for offset in offsets:
        if not 0 <= offset < len(values):
            raise VerifyError(f"gradient.check: {field} names {offset} of {len(values)}")
        if offset in seen:
            raise VerifyError(f"gradient.check: {field} names {offset} twice")
        seen.add(offset)
        type_ = values[offset].type
        if type_ is not None and not type_.is_inexact:
            raise VerifyError(
                f"gradient.check: {field} names {offset}, which is {type_}: no cotangent"
            )


def _check_types(what: str, source: Value, other: Value) -> None:
    if None not in (source.type, other.type) and source.type is not other.type:
        raise VerifyError(
            f"gradient.check: {what} is {other.type}; %{_name(source)} of f is {source.type}"
        )
