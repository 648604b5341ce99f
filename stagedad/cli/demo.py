"""`stagedad demo`: train a classifier with a gradient that can be read, and time it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import stagedad as sd
from stagedad.cli import classifier
from stagedad.cli.classifier import Array, Digits
from stagedad.cli.pair import captures_text
from stagedad.cli.picture import curve_svg

BATCH, RATE, MOMENTUM = 32, 0.05, 0.9
TOLERANCE = 1e-6  # of central differences in float64, whose error is about 1e-10 here
WEIGHTS = (2, 3, 4, 5)  # w1, b1, w2, b2 among the arguments of the loss

ValueAndGrad = Callable[..., tuple[Any, Sequence[Array]]]


def run_demo(out: Path, steps: int) -> None:
    """Train for `steps` steps, print what there is to see and write it to the folder `out`.

    Raises: click.ClickException if `out` cannot be written or the gradient is wrong.
    """
    console = Console(highlight=False, soft_wrap=True)
    data = classifier.load_digits()
    batch = (data.images[:BATCH], data.labels[:BATCH])
    parameters = classifier.initial_parameters()

    source = files("stagedad.cli").joinpath("loss.py").read_text(encoding="utf-8")
    write(out, {"loss.py": source})
    loss = function_of(source, out / "loss.py")
    graph = sd.trace(loss, *batch, *parameters)
    wanted = [index in WEIGHTS for index in range(len(graph.inputs))]
    gradient = sd.differentiate(graph, requires_grad=wanted)
    texts = {
        "loss.py": source,
        "f.txt": str(gradient.f),
        "df.txt": str(gradient.df),
        "captures.txt": f"{captures_text(gradient)}\n",
    }
    write(out, texts)
    titles = [
        "the function, in plain NumPy",
        "f: the same, and what its gradient needs",
        "df: captures and a cotangent in, the gradient to w1, b1, w2, b2 out",
        "what goes from f to df",
    ]
    for title, text in zip(titles, texts.values(), strict=True):
        console.rule(title)
        console.print(text.rstrip(), markup=False)

    console.rule(f"training: {steps:,} steps of {BATCH} images")
    step_gradient: ValueAndGrad = sd.value_and_grad(loss, argnums=WEIGHTS)
    difference = largest_difference(loss, step_gradient, batch, parameters)
    losses = train(step_gradient, data, parameters, steps, console)
    held_out = classifier.accuracy(data.held_out_images, data.held_out_labels, parameters)
    ours, hand_written = step_times(
        [step_gradient, classifier.hand_written], batch, repeats=min(steps, 2000)
    )

    write(out, {"loss.svg": curve_svg(losses, "training loss", "epoch", "cross-entropy")})
    console.print(f"wrote {', '.join([*texts, 'loss.svg'])} to {out}", markup=False)
    console.print(f"held-out accuracy: {held_out:.4f}")
    console.print(f"largest difference to finite differences: {difference:.1e}")
    by_hand = f"hand-written NumPy: {hand_written / 1e3:.1f} us"
    console.print(f"one training step: {ours / 1e3:.1f} us ({by_hand})")
    if not difference < TOLERANCE:
        raise click.ClickException(f"the gradient is off by {difference:.1e}")


def function_of(source: str, path: Path) -> Callable[..., Any]:
    """Return the function `loss` of `source` as if it were imported from `path`.

    From the user's copy and not from the package, so that locations lead to lines that the
    user can read.
    """
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(source, str(path), "exec"), names)
    function: Callable[..., Any] = names["loss"]
    return function


def write(folder: Path, texts: dict[str, str]) -> None:
    """Write `texts` (by file name) into `folder`, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror}") from error


def training_step(
    value_and_grad: ValueAndGrad,
    batch: tuple[Array, Array],
    parameters: list[Array],
    velocities: list[Array],
) -> float:
    """Take one step of gradient descent with momentum, in place.  Returns the loss before."""
    value, gradients = value_and_grad(*batch, *parameters)
    for parameter, velocity, gradient in zip(parameters, velocities, gradients, strict=True):
        velocity *= MOMENTUM
        gradient *= RATE
        velocity -= gradient
        parameter += velocity
    return float(value)


def train(
    value_and_grad: ValueAndGrad,
    data: Digits,
    parameters: list[Array],
    steps: int,
    console: Console,
) -> list[float]:
    """Fit `parameters` in place to the images not held out.  Returns each epoch's mean loss."""
    random = np.random.default_rng(0)
    velocities = [np.zeros_like(parameter) for parameter in parameters]
    an_epoch = len(data.images) // BATCH
    means: list[float] = []
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.4f}"))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=steps, loss=0.0)
        for done in range(0, steps, an_epoch):
            order = random.permutation(len(data.images))
            losses = []
            for start in range(0, min(an_epoch, steps - done) * BATCH, BATCH):
                chosen = order[start : start + BATCH]
                batch = (data.images[chosen], data.labels[chosen])
                losses.append(training_step(value_and_grad, batch, parameters, velocities))
            means.append(sum(losses) / len(losses))
            progress.update(task, advance=len(losses), loss=means[-1])
    return means


def largest_difference(
    loss: Callable[..., Any],
    value_and_grad: ValueAndGrad,
    batch: tuple[Array, Array],
    parameters: list[Array],
    width: float = 1e-5,
) -> float:
    """Return how far the gradient is from central differences, at worst, over every parameter.

    In float64, whatever the arguments: rounding would hide any error in float32.
    """
    fixed = [array.astype(np.float64) for array in batch]
    moved = [array.astype(np.float64) for array in parameters]
    _, gradients = value_and_grad(*fixed, *moved)
    differences = []
    for parameter, gradient in zip(moved, gradients, strict=True):
        for index in np.ndindex(parameter.shape):
            middle = parameter[index]
            parameter[index] = middle + width
            above = loss(*fixed, *moved)
            parameter[index] = middle - width
            below = loss(*fixed, *moved)
            parameter[index] = middle
            differences.append(gradient[index] - (above - below) / (2 * width))
    return float(np.max(np.abs(differences)))


def step_times(
    contestants: Sequence[ValueAndGrad], batch: tuple[Array, Array], repeats: int
) -> list[float]:
    """Return the median time of a training step with each of `contestants`, in nanoseconds.

    Interleaved, so that all of them meet the same moods of the machine.
    """
    states = []
    for _ in contestants:
        parameters = classifier.initial_parameters()
        states.append((parameters, [np.zeros_like(parameter) for parameter in parameters]))
    times: list[list[int]] = [[] for _ in contestants]
    for _ in range(repeats):
        for contestant, (parameters, velocities), taken in zip(
            contestants, states, times, strict=True
        ):
            start = perf_counter_ns()
            training_step(contestant, batch, parameters, velocities)
            taken.append(perf_counter_ns() - start)
    return [statistics.median(taken) for taken in times]
