"""Tests of cli/classifier.py."""

import numpy as np
import pytest

import stagedad as sd
from stagedad.cli import classifier
from stagedad.cli.demo import BATCH, WEIGHTS, largest_difference
from stagedad.cli.loss import loss


@pytest.fixture(scope="module")
def data():
    """The digits, shuffled and split."""
    return classifier.load_digits()


@pytest.fixture
def batch(data):
    """The first images and labels."""
    return data.images[:BATCH], data.labels[:BATCH]


def test_holds_a_fifth_out(data):
    assert data.images.shape == (1438, 64)
    assert data.held_out_images.shape == (359, 64)
    assert data.labels.shape == (1438, 10)
    assert data.held_out_labels.shape == (359, 10)


def test_pixels_are_fractions_and_labels_one_hot(data):
    assert data.images.dtype == data.labels.dtype == np.float32
    assert data.images.min() == 0
    assert data.images.max() == 1
    assert (np.sort(data.labels) == [0] * 9 + [1]).all()


def test_split_is_the_same_every_time(data):
    np.testing.assert_array_equal(data.images, classifier.load_digits().images)


def test_every_digit_is_held_out_about_equally_often(data):
    counts = data.held_out_labels.sum(axis=0)
    assert counts.min() > 20
    assert counts.max() < 55


def test_gradient_by_hand_agrees_with_finite_differences(batch):
    parameters = classifier.initial_parameters()
    assert largest_difference(loss, classifier.hand_written, batch, parameters) < 1e-8


def test_gradient_by_hand_is_that_of_the_loss(batch):
    parameters = classifier.initial_parameters()
    by_hand = classifier.hand_written(*batch, *parameters)
    staged = sd.value_and_grad(loss, argnums=WEIGHTS)(*batch, *parameters)
    assert staged[0] == pytest.approx(by_hand[0], rel=1e-5)
    for expected, found in zip(by_hand[1], staged[1], strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_accuracy_counts_the_highest_scores():
    images, labels = np.eye(64, dtype=np.float32)[:10], np.eye(10, dtype=np.float32)
    w1 = np.zeros((64, 32), np.float32)
    w1[:10, :10] = np.eye(10)
    w2 = np.eye(32, 10, dtype=np.float32)
    parameters = [w1, np.zeros(32, np.float32), w2, np.zeros(10, np.float32)]
    assert classifier.accuracy(images, labels, parameters) == 1
    assert classifier.accuracy(images, labels[::-1], parameters) == 0
