"""What the demo trains with: the digits, the parameters, and the gradient written by hand."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PIXELS, HIDDEN, DIGITS = 64, 32, 10


def hand_written(
    images: Array, labels: Array, w1: Array, b1: Array, w2: Array, b2: Array
) -> tuple[Any, tuple[Array, Array, Array, Array]]:
    """Return the loss of loss.py and its gradient to w1, b1, w2, b2, in plain NumPy.

    What the demo compares its speed with, so it does what a careful author would: buffers
    are used again, softmax and cross-entropy share their exponentials, and reductions are
    called on the ufunc.
    """
    hidden = images @ w1
    hidden += b1
    np.tanh(hidden, out=hidden)
    scores = hidden @ w2
    scores += b2
    scores -= np.maximum.reduce(scores, axis=1, keepdims=True)
    d_scores = np.exp(scores)
    total = np.add.reduce(d_scores, axis=1, keepdims=True)
    scores *= labels
    count = len(images)
    surprise = np.add.reduce(np.log(total), axis=None)
    value = (surprise - np.add.reduce(scores, axis=None)) / count

    d_scores /= total
    d_scores -= labels
    d_scores *= 1 / count
    d_w2 = hidden.T @ d_scores
    d_b2 = np.add.reduce(d_scores, axis=0)
    d_hidden = d_scores @ w2.T
    hidden *= hidden
    np.subtract(1, hidden, out=hidden)
    d_hidden *= hidden
    d_w1 = images.T @ d_hidden
    d_b1 = np.add.reduce(d_hidden, axis=0)
    return value, (d_w1, d_b1, d_w2, d_b2)


class Digits(NamedTuple):
    """The data, shuffled once and split: four fifths to learn from, one held out.

    Shapes: images f32[n, 64] in 0..1; labels f32[n, 10], one-hot.
    """

    images: Array
    labels: Array
    held_out_images: Array
    held_out_labels: Array


def load_digits(seed: int = 0) -> Digits:
    """Read the digits that come with the package; see data/README.md."""
    with files("stagedad.cli").joinpath("data", "digits.npz").open("rb") as file:
        data = np.load(file)
        images, labels = data["images"], data["labels"]
    order = np.random.default_rng(seed).permutation(len(images))
    pixels = (images[order].reshape(-1, PIXELS) / 16).astype(np.float32)
    one_hot = np.eye(DIGITS, dtype=np.float32)[labels[order]]
    cut = len(images) - len(images) // 5
    return Digits(pixels[:cut], one_hot[:cut], pixels[cut:], one_hot[cut:])


def initial_parameters(seed: int = 0) -> list[Array]:
    """Draw w1, b1, w2, b2: variance 1 / inputs, no bias."""
    random = np.random.default_rng(seed)
    w1 = random.normal(0, PIXELS**-0.5, (PIXELS, HIDDEN))
    w2 = random.normal(0, HIDDEN**-0.5, (HIDDEN, DIGITS))
    parameters = [w1, np.zeros(HIDDEN), w2, np.zeros(DIGITS)]
    return [parameter.astype(np.float32) for parameter in parameters]


def accuracy(images: Array, labels: Array, parameters: list[Array]) -> float:
    """Return the share of images whose digit gets the highest score."""
    w1, b1, w2, b2 = parameters
    scores = np.tanh(images @ w1 + b1) @ w2 + b2
    return float(np.mean(scores.argmax(axis=1) == labels.argmax(axis=1)))
