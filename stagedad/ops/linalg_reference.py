"""What linear algebra computes beside numpy.linalg's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


def _floating(self: Array) -> Array:
    return self if self.dtype.kind in "fc" else self.astype(np.float64)


def _cofactor(self: Array) -> Array:
    """Products of all singular values but one: as good for singular matrices as for others."""
    u, s, vh = np.linalg.svd(_floating(self))
    others = np.ones_like(s)
    # Products from the left and from the right of each: no division by what may be 0.
    np.multiply.accumulate(s[..., :-1], axis=-1, out=others[..., 1:])
    others[..., :-1] *= np.multiply.accumulate(s[..., :0:-1], axis=-1)[..., ::-1]
    # det(A) = det(U) prod(s) det(Vh), and cof(A) = conj(adj(A)^H).
    phase = np.linalg.det(u) * np.linalg.det(vh)
    cofactors = np.conj((u * others[..., None, :]) @ vh) * phase[..., None, None]
    return np.asarray(cofactors.astype(u.dtype))


def _hermitian(self: Array, *, lower: bool) -> Array:
    kept = np.tril(self, -1) if lower else np.triu(self, 1)
    mirrored = np.conj(np.swapaxes(kept, -1, -2))
    diagonal = np.tril(np.triu(self))
    return np.asarray((kept + mirrored + diagonal.real).astype(self.dtype))


def _eig(self: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(self)
    # NumPy gives real arrays where no eigenvalue happens to be complex.
    dtype = np.result_type(values, np.complex64)
    return values.astype(dtype), vectors.astype(dtype)


def _eigvals(self: Array) -> Array:
    values = np.linalg.eigvals(self)
    return values.astype(np.result_type(values, np.complex64))


def _svd(self: Array) -> tuple[Array, Array, Array]:
    return tuple(np.linalg.svd(self, full_matrices=False))  # type: ignore[return-value]


def _basis_inverse(self: Array) -> Array:
    self = _floating(self)
    if self.shape[-1]:
        with np.errstate(divide="ignore"):
            worst = np.max(np.linalg.cond(self), initial=0)
        if not worst < 1 / (self.shape[-1] * np.finfo(self.dtype).eps):
            raise np.linalg.LinAlgError(
                "eig: the matrix has too few eigenvectors: their gradient does not exist\n"
                f"hint: the condition number of the eigenvectors is {worst:.1e}"
            )
    return np.linalg.inv(self)


def _over_gaps(self: Array, values: Array, *, sign: int) -> Array:
    dtype = np.result_type(self, values)
    self, values = self.astype(dtype), values.astype(np.result_type(values, dtype.char.lower()))
    if sign:
        self = (self + sign * np.conj(np.swapaxes(self, -1, -2))) / 2
    gaps = values[..., None, :] - values[..., :, None]
    size = np.max(np.abs(values), axis=-1, initial=0)[..., None, None]
    equal = ~(np.abs(gaps) > 8 * values.shape[-1] * np.finfo(values.dtype).eps * size)
    off = ~np.eye(values.shape[-1], dtype=bool)
    wrong = equal & off & (self != 0)
    if wrong.any():
        *_, row, column = np.argwhere(wrong)[0]
        raise np.linalg.LinAlgError(
            f"eigenvectors: numbers {row} and {column} belong to one eigenvalue or singular "
            "value: their gradient does not exist\n"
            "hint: functions of the eigenvalues or singular values alone have one"
        )
    return np.where(equal | ~off, np.zeros((), dtype), self / np.where(equal, 1, gaps))


def _over_columns(self: Array, values: Array) -> Array:
    dtype = np.result_type(self, values)
    size = np.max(np.abs(values), axis=-1, initial=0)[..., None]
    longest = max(self.shape[-2:], default=0)
    zero = ~(np.abs(values) > longest * np.finfo(values.dtype).eps * size)[..., None, :]
    if (zero & (self != 0)).any():
        raise np.linalg.LinAlgError(
            "svd: a singular value is 0: the gradient of its vectors does not exist\n"
            "hint: functions of the singular values alone have one"
        )
    quotient = self.astype(dtype) / np.where(zero, 1, values[..., None, :])
    return np.where(zero, np.zeros((), dtype), quotient)


def _gauge_pivot(self: Array, *, which: str) -> Array:
    self = _floating(self)
    sizes = np.abs(self)
    if self.shape[-2] == 0:
        return np.zeros_like(sizes)
    largest = np.argmax(sizes, axis=-2, keepdims=True)
    if which != "largest":
        row = 0 if which == "first" else self.shape[-2] - 1
        # Where the entry is nothing, its phase is noise: there any other one is as good.
        small = sizes[..., row : row + 1, :] <= 1e-8 * np.max(sizes, axis=-2, keepdims=True)
        largest = np.where(small, largest, row)
    pivot = np.zeros_like(sizes)
    np.put_along_axis(pivot, largest, 1, axis=-2)
    return pivot


def _pinv(self: Array, *, rcond: float | None) -> Array:
    return np.linalg.pinv(self) if rcond is None else np.linalg.pinv(self, rcond)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tril": lambda self, *, k: np.tril(self, k),
    "triu": lambda self, *, k: np.triu(self, k),
    "hermitian": _hermitian,
    "cofactor": _cofactor,
    "eig": _eig,
    "eigvals": _eigvals,
    "svd": _svd,
    "svdvals": lambda self: np.linalg.svd(self, compute_uv=False),
    "pinv": _pinv,
    "basis_inverse": _basis_inverse,
    "over_gaps": _over_gaps,
    "over_columns": _over_columns,
    "gauge_pivot": _gauge_pivot,
}
