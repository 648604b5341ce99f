"""TorchScript's graphs and `_jit_differentiate`, whose contract stagedad's is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from bench import graphs
from bench.peers import Transforming
from bench.rows import Array

torch.set_num_threads(1)


def _text(nodes: int) -> str:
    """Write a chain whose values are typed and all require gradients."""
    kind = "Double(16, strides=[1], requires_grad=1, device=cpu)"
    lines = [f"graph(%a : {kind}, %b : {kind}):", "  %one : int = prim::Constant[value=1]()"]
    last = "a"
    for i in range(nodes):
        name = graphs.KINDS[i % 3]
        alpha = "" if name == "mul" else ", %one"
        lines.append(f"  %c{i} : {kind} = aten::{name}(%{last}, %b{alpha})")
        last = f"c{i}"
    return "\n".join([*lines, f"  return (%{last})"])


def _create(nodes: int) -> Any:
    graph = torch._C.Graph()
    a, b, one = graph.addInput("a"), graph.addInput("b"), graph.insertConstant(1)
    last = a
    for i in range(nodes):
        name = graphs.KINDS[i % 3]
        operands = [last, b] if name == "mul" else [last, b, one]
        last = graph.appendNode(graph.create(f"aten::{name}", operands, 1)).output()
    graph.registerOutput(last)
    return graph


def _differentiate(nodes: int) -> Any:
    return partial(torch._C._jit_differentiate, torch._C.parse_ir(_text(nodes)))


def _ready(gradient: Any) -> Callable[[], Callable[..., tuple[Any, ...]]]:
    """Make functions of f and df; what captures and cotangents are is as stagedad has it."""

    def ready() -> Callable[..., tuple[Any, ...]]:
        f = torch._C._create_function_from_graph("f", _tupled(gradient.f))
        df = torch._C._create_function_from_graph("df", gradient.df.copy())
        real = gradient.f_real_outputs

        def both(inputs: list[Any], cotangent: Any) -> tuple[Any, ...]:
            outputs = f(*inputs)
            kept = [inputs[i] for i in gradient.df_input_captured_inputs]
            kept += [outputs[i] for i in gradient.df_input_captured_outputs]
            # Other outputs are sizes, or temporaries whose cotangents are zero.
            given = [
                cotangent if i < real else torch.zeros_like(outputs[i])
                for i in gradient.df_input_vjps
            ]
            found = df(*given, *kept)
            return (*outputs[:real], *(found if isinstance(found, tuple) else (found,)))

        return both

    return ready


def _results(gradient: Any, a: Array, b: Array, g: Array) -> tuple[Any, ...]:
    both = _ready(gradient)()
    return both([torch.tensor(a), torch.tensor(b)], torch.tensor(g))


def _first(operations: int, x: Array) -> Any:
    """The last operation, a sum, has no rule here: the vector takes a cotangent of ones."""
    model = graphs.operations(operations, SimpleNamespace(tanh=torch.tanh, sum=_itself))
    example = torch.tensor(x, requires_grad=True)

    def first() -> tuple[Any, ...]:
        graph = torch.jit.trace(model, example, check_trace=False).graph
        both = _ready(torch._C._jit_differentiate(graph))()
        value, gradient = both([example.detach()], torch.ones_like(example))
        return value.sum(), gradient

    return first


def _itself(x: Any) -> Any:
    return x


def _tupled(graph: Any) -> Any:
    """Return a copy whose outputs are one tuple, as functions must have it."""
    graph = graph.copy()
    outputs = list(graph.outputs())
    node = graph.create("prim::TupleConstruct", outputs, 1)
    node.output().setType(torch._C.TupleType([output.type() for output in outputs]))
    graph.appendNode(node)
    for i in reversed(range(len(outputs))):
        graph.eraseOutput(i)
    graph.registerOutput(node.output())
    return graph


TRANSFORMING = Transforming(_differentiate, _results, _first, ready=_ready, create=_create)
