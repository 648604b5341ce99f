"""Tests of front/fourier.py: numpy.fft on traced values."""

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import DTypeError, ShapeError, TraceError
from stagedad.front import grad, jit
from stagedad.front.protocol import is_recordable

X = np.cos(np.arange(60.0)).reshape(3, 4, 5)
ONES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
NORMS = [None, "backward", "ortho", "forward"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONES)
def test_along_one_axis(name, norm, same_as_numpy):
    def function(np, x):
        transform = getattr(np.fft, name)
        return [
            transform(x, norm=norm),
            transform(x, axis=0, norm=norm),
            transform(x, 3, -2, norm),
            transform(x[0], n=7, axis=1, norm=norm),
            transform(x, 1),
            transform(x[:, :, :2], axis=2),
        ]

    same_as_numpy(function, X)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft"])
def test_of_complex_numbers(name, norm, same_as_numpy):
    def function(np, x):
        transform = getattr(np.fft, name)
        z = x[0] + 1j * x[1]
        return [transform(z, norm=norm), transform(z, 7, norm=norm), transform(z, 3, axis=0)]

    same_as_numpy(function, X)


@pytest.mark.parametrize("name", SEVERAL)
def test_along_several_axes(name, same_as_numpy):
    def function(np, x):
        transform = getattr(np.fft, name)
        return [
            transform(x),
            transform(x, norm="ortho"),
            transform(x, s=(3, 6), axes=(2, 0)),
            transform(x, axes=(1, 0), norm="forward"),
        ]

    same_as_numpy(function, X)


def test_shifts(same_as_numpy):
    same_as_numpy(
        lambda np, x: [
            np.fft.fftshift(x),
            np.fft.ifftshift(x, axes=1),
            np.fft.fftshift(x, axes=(0, 2)),
        ],
        X,
    )


def test_energy_of_half_a_spectrum_of_odd_length():
    def energy(x):
        return np.sum(np.abs(np.real(np.fft.rfft(x))) ** 2 + np.imag(np.fft.rfft(x)) ** 2)

    np.testing.assert_allclose(grad(energy)(np.array([1.0, 2, 3])), [9, 12, 15])


def test_single_precision_stays():
    x = X.astype(np.float32)
    assert jit(np.fft.rfft)(x).dtype == np.complex64
    assert grad(lambda x: np.sum(np.fft.irfft(np.fft.rfft(x))))(x).dtype == np.float32


def test_every_function_is_recorded_but_those_without_arrays():
    # These take numbers and give constants.
    constants = {"fftfreq", "rfftfreq"}
    names = set(np.fft.__all__)
    assert {name for name in names if not is_recordable(getattr(np.fft, name))} == constants
    assert jit(lambda x: x * snp.fft.fftfreq(5))(X).shape == X.shape


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: np.fft.fft(x, 0), ShapeError, "no points"),
        (lambda x: np.fft.irfft(x[..., :1]), ShapeError, "no points"),
        (lambda x: np.fft.fft(x, norm="half"), ValueError, "norm"),
        (lambda x: np.fft.hfft(x, norm="half"), ValueError, "norm"),
        (lambda x: np.fft.fft(x, axis=3), np.exceptions.AxisError, "out of bounds"),
        (lambda x: np.fft.rfft(x * 1j), DTypeError, "complex128"),
        (lambda x: np.fft.fftn(x, s=(3,), axes=(0, 1)), ValueError, "different lengths"),
        (lambda x: np.fft.fft(x, out=np.empty((3, 4, 5), complex)), TraceError, "out="),
    ],
)
def test_refuses_by_name(function, error, match):
    with pytest.raises(error, match=match):
        jit(function)(X)
