"""Tests of front/linear.py and front/diagonals.py: numpy.linalg on traced values."""

import numpy as np
import pytest

import stagedad.numpy as snp
from stagedad.errors import ShapeError, TraceError
from stagedad.front import grad, jit
from stagedad.numpy import linalg

S = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.6, 0.7, 3.0]])
T = np.array([[0.3, -1.2], [0.7, 1.9], [2.5, -0.4]])
V = np.array([0.5, -1.5, 2.0])
B = np.stack([S, S.T + 1.0])


def positive(x):
    return x @ x.T + 0.5 * (x + x.T)


def hermitian(x):
    return x + x.T + 1j * (x - x.T)


SQUARE = {
    "inv": lambda np, x: np.linalg.inv(x),
    "det": lambda np, x: np.linalg.det(x),
    "slogdet": lambda np, x: np.linalg.slogdet(-x),
    "solve_vector": lambda np, x: np.linalg.solve(x, x[0] * x[1]),
    "solve_matrix": lambda np, x: np.linalg.solve(x, x[:, :2] ** 2),
    "solve_plain": lambda np, x: (np.linalg.solve(x, V), np.linalg.solve(S, x)),
    "cholesky": lambda np, x: np.linalg.cholesky(positive(x)),
    "cholesky_upper": lambda np, x: np.linalg.cholesky(positive(x), upper=True),
    "eigh": lambda np, x: np.linalg.eigh(x + x.T),
    "eigh_upper": lambda np, x: np.linalg.eigh(hermitian(x), UPLO="u"),
    "eigvalsh": lambda np, x: np.linalg.eigvalsh(x + x.T, "U"),
    "eig": lambda np, x: np.linalg.eig(x + 1j * x.T),
    "eigvals": lambda np, x: np.linalg.eigvals(x + 1j * x.T),
    "svd": lambda np, x: np.linalg.svd(x),
    "svd_complex": lambda np, x: np.linalg.svd(x[:2] + 1j * x[1:], full_matrices=False),
    "svd_tall": lambda np, x: np.linalg.svd(x[:, 1:], full_matrices=False),
    "svd_values": lambda np, x: np.linalg.svd(x, compute_uv=False) + np.linalg.svdvals(x),
    "svd_hermitian": lambda np, x: np.linalg.svd(x + x.T, compute_uv=False, hermitian=True),
    "qr": lambda np, x: np.linalg.qr(x),
    "qr_wide": lambda np, x: (np.linalg.qr(x[:2]), np.linalg.qr(x[:2], "complete")),
    "qr_r": lambda np, x: np.linalg.qr(x[:, :2], mode="r"),
    "pinv": lambda np, x: np.linalg.pinv(x[:, :2]) + np.linalg.pinv(x[:, :2], rtol=None),
    "pinv_rank": lambda np, x: np.linalg.pinv(x, rcond=1e-3),
    "lstsq": lambda np, x: np.linalg.lstsq(x[:, :2], x[:, 2])[0],
    "lstsq_all": lambda np, x: np.linalg.lstsq(x[:, :2], x * x, rcond=1e-9),
    "lstsq_plain": lambda np, x: np.linalg.lstsq(T, x),
    "cond": lambda np, x: [np.linalg.cond(x, p) for p in (None, 2, -2, 1, "fro", np.inf)],
    "matrix_power": lambda np, x: [np.linalg.matrix_power(x, n) for n in (-2, 0, 1, 2, 3, 5)],
    "multi_dot": lambda np, x: np.linalg.multi_dot([x[0], x, x[:, :2], x[:2, 1]]),
    "multi_dot_plain": lambda np, x: np.linalg.multi_dot([T.T, S, x, T]),
    "tensorinv": lambda np, x: np.linalg.tensorinv(x.reshape(3, 3), ind=1),
    "tensorsolve": lambda np, x: np.linalg.tensorsolve(x.reshape(3, 1, 3), V.reshape(3, 1)),
    "matrix_transpose": lambda np, x: np.linalg.matrix_transpose(x) + np.matrix_transpose(x),
    "vecdot": lambda np, x: np.linalg.vecdot(x, V) + np.linalg.vecdot(x * 1j, x, axis=0),
    "vecdot_ufunc": lambda np, x: np.vecdot(x, x * 2j),
    "products": lambda np, x: np.linalg.matmul(x, x) + np.linalg.tensordot(x, x, axes=1),
    "outer": lambda np, x: np.linalg.outer(x[0], x[1]),
    "cross": lambda np, x: np.linalg.cross(x, V) + np.cross(x, x[1]),
    "cross_axes": lambda np, x: np.cross(x.T, V, axisa=0, axisc=0),
    "cross_two": lambda np, x: [np.cross(x[0], x)[1], np.cross(x, x[0] * 2)],
    "trace": lambda np, x: np.linalg.trace(x) + np.trace(x, 1) + np.trace(x, -1) + x.trace(9),
    "diagonal": lambda np, x: [np.diagonal(x, k) for k in (0, 1, -2, 5)] + [x.diagonal()],
    "diagonal_last": lambda np, x: np.linalg.diagonal(x[None] * V[:, None, None], offset=1),
    "diag": lambda np, x: [np.diag(x, -1), np.diag(x[0]), np.diag(x[0], 2), np.diag(x[1], -1)],
    "diagflat": lambda np, x: np.diagflat(x, 1),
    "triangles": lambda np, x: np.tril(x) + np.triu(x, 1) * 2 + np.tril(x, -1) + np.triu(x[0]),
    "norm": lambda np, x: np.linalg.norm(x) + np.linalg.norm(x, "fro", keepdims=True),
    "norm_vector": lambda np, x: [
        np.linalg.norm(x[0], p) for p in (None, 1, 2, 3, 0.5, -1, 0, np.inf, -np.inf)
    ],
    "norm_matrix": lambda np, x: [
        np.linalg.norm(x, p) for p in ("nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    "norm_axis": lambda np, x: [
        np.linalg.norm(x[None], p, axis=(2, 1), keepdims=True)
        for p in ("fro", "nuc", 1, np.inf)
    ],
    "norm_keepdims": lambda np, x: np.linalg.norm(x, 3, axis=0, keepdims=True),
    "norm_complex": lambda np, x: [
        np.linalg.norm(x[0] + 1j * x[1], p) for p in (None, 1, 3, np.inf)
    ],
    "vector_norm": lambda np, x: [
        np.linalg.vector_norm(x, ord=3),
        np.linalg.vector_norm(x[None], axis=(0, 2), keepdims=True),
    ],
    "matrix_norm": lambda np, x: np.linalg.matrix_norm(x[None], ord=2),
}
if hasattr(np, "matvec"):
    SQUARE["matvec"] = lambda np, x: np.matvec(x, x[0]) + np.vecmat(x[0] * 1j, x)


@pytest.mark.parametrize("name", SQUARE)
def test_is_numpys(name, same_as_numpy):
    same_as_numpy(SQUARE[name], S)


STACKS = {
    "inv": lambda np, x: np.linalg.inv(x),
    "det": lambda np, x: np.linalg.det(x),
    "slogdet": lambda np, x: np.linalg.slogdet(x),
    "solve": lambda np, x: np.linalg.solve(x, V),
    "cholesky": lambda np, x: np.linalg.cholesky(x @ np.swapaxes(x, 1, 2)),
    "eigh": lambda np, x: np.linalg.eigh(x + np.swapaxes(x, 1, 2)),
    "svd": lambda np, x: np.linalg.svd(x),
    "qr": lambda np, x: np.linalg.qr(x),
    "pinv": lambda np, x: np.linalg.pinv(x),
    "matrix_power": lambda np, x: np.linalg.matrix_power(x, 3),
    "cond": lambda np, x: np.linalg.cond(x),
    "trace": lambda np, x: np.linalg.trace(x, offset=-1) + np.trace(x, axis1=2, axis2=1),
    "triangles": lambda np, x: np.tril(x, 1) - np.triu(x),
    "norm": lambda np, x: (
        np.linalg.norm(x, axis=(0, 1)) + np.linalg.norm(x, 2, axis=(2, 1)).sum()
    ),
    "norm_all": lambda np, x: np.linalg.norm(x),
}


@pytest.mark.parametrize("name", STACKS)
def test_stacks_are_numpys(name, same_as_numpy):
    same_as_numpy(STACKS[name], B)


def test_results_have_numpys_names():
    result = jit(lambda x: np.linalg.eigh(x).eigenvalues + np.linalg.slogdet(x).logabsdet)(S)
    np.testing.assert_allclose(result, np.linalg.eigh(S)[0] + np.linalg.slogdet(S)[1])
    u, s, vh = jit(lambda x: linalg.svd(x, full_matrices=False))(T)
    np.testing.assert_allclose((u * s) @ vh, T)


def test_eigenvalues_are_complex_whatever_they_are():
    for x in (S, np.array([[0.0, 1.0], [-1.0, 0.0]])):
        values, vectors = jit(np.linalg.eig)(x)
        assert values.dtype == vectors.dtype == complex
        np.testing.assert_allclose(x @ vectors, vectors * values, atol=1e-14)
    gradient = grad(lambda x: np.sum(np.real(np.linalg.eigvals(x)) ** 2))(S)
    np.testing.assert_allclose(gradient, 2 * S.T, atol=1e-12)


def test_cholesky_gradient_is_symmetric_and_right_among_symmetric_matrices():
    a = np.array([[2.0, 0.5], [0.5, 1.0]])
    gradient = grad(lambda x: 2 * np.sum(np.log(np.diag(np.linalg.cholesky(x)))))(a)
    np.testing.assert_allclose(gradient, np.linalg.inv(a))


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_only_one_triangle_is_read(uplo):
    kept = np.tril(positive(S)) if uplo == "L" else np.triu(positive(S))
    wanted = np.linalg.cholesky(kept, upper=uplo == "U")
    np.testing.assert_array_equal(
        jit(lambda x: np.linalg.cholesky(x, upper=uplo == "U"))(kept), wanted
    )
    wanted = np.linalg.eigvalsh(kept, uplo)
    np.testing.assert_allclose(jit(lambda x: np.linalg.eigvalsh(x, uplo))(kept), wanted)


def test_norms_of_nothing_have_gradient_zero():
    zero = np.zeros(3)
    for order in (None, 1, 2, 3):
        np.testing.assert_array_equal(grad(lambda x, p=order: np.linalg.norm(x, p))(zero), zero)
    np.testing.assert_array_equal(grad(np.linalg.norm)(np.zeros((2, 2))), np.zeros((2, 2)))
    rows = grad(lambda x: np.sum(np.linalg.norm(x, axis=1)))(np.array([[0.0, 0], [3, 4]]))
    np.testing.assert_allclose(rows, [[0, 0], [0.6, 0.8]])


def test_eigenvalues_that_coincide_have_their_mean_gradient():
    for function in (np.linalg.eigvalsh, np.linalg.svdvals, lambda x: np.linalg.eigh(x)[0]):
        gradient = grad(lambda x, f=function: np.sum(f(x) ** 2))(np.eye(3))
        np.testing.assert_allclose(gradient, 2 * np.eye(3), atol=1e-14)
    gradient = grad(lambda x: np.sum(np.real(np.linalg.eigvals(x))))(np.eye(2))
    np.testing.assert_allclose(gradient, np.eye(2))


def test_vectors_of_eigenvalues_that_coincide_raise():
    for function in (
        lambda x: np.sum(np.linalg.eigh(x)[1][0]),
        lambda x: np.sum(np.linalg.svd(x)[0][0]),
        lambda x: np.real(np.sum(np.linalg.eig(x)[1][:, 0])),
    ):
        with pytest.raises(np.linalg.LinAlgError, match="belong to one eigenvalue"):
            grad(function)(np.eye(3))
    # The vector of an eigenvalue that stands alone has a gradient beside those that do not.
    a = np.diag([1.0, 1.0, 3.0])
    gradient = grad(lambda x: np.linalg.eigh(x)[1][0, 2] ** 2 + np.linalg.eigh(x)[0][2])(a)
    np.testing.assert_allclose(gradient, np.diag([0.0, 0, 1]), atol=1e-14)


def test_matrices_with_too_few_vectors_raise():
    with pytest.raises(np.linalg.LinAlgError, match="too few eigenvectors"):
        grad(lambda x: np.real(np.linalg.eigvals(x)[0]))(np.array([[1.0, 1.0], [0.0, 1.0]]))


def test_singular_values_of_zero_raise_where_their_vectors_count():
    a = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(grad(lambda x: np.sum(np.linalg.svdvals(x)))(a)[0], [1, 0])
    with pytest.raises(np.linalg.LinAlgError, match="a singular value is 0"):
        grad(lambda x: np.linalg.svd(x, full_matrices=False)[0][2, 1])(a)


def test_phases_are_lapacks_and_no_pivot_is_missing():
    # Components of 0 leave the phase open, and a function that does not see it does not care.
    a = np.diag([1.0 + 0j, 2.0, 4.0])
    gradient = grad(lambda x: np.abs(np.real(np.linalg.eigh(x)[1][1, 1])) ** 2)(a)
    np.testing.assert_allclose(gradient, np.zeros((3, 3)), atol=1e-14)


def test_determinant_of_singular_matrices():
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    wanted = [[-3.0, 6.0, -3.0], [6.0, -12.0, 6.0], [-3.0, 6.0, -3.0]]
    np.testing.assert_allclose(grad(np.linalg.det)(a), wanted, atol=1e-12)
    np.testing.assert_array_equal(grad(np.linalg.det)(np.zeros((3, 3))), np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.linalg.inv, np.ones((2, 2))),
        (lambda x: np.linalg.solve(x, V[:2]), np.ones((2, 2))),
        (np.linalg.cholesky, -np.eye(2)),
        (lambda x: np.linalg.matrix_power(x, -1), np.zeros((2, 2))),
        (np.linalg.svdvals, np.full((2, 2), np.nan)),
    ],
    ids=["inv", "solve", "cholesky", "matrix_power", "svdvals"],
)
def test_programs_raise_linalgerror_too(function, x):
    compiled = jit(function)
    compiled(np.array([[2.0, 0.5], [0.5, 1.0]]))
    with pytest.raises(np.linalg.LinAlgError):
        function(x)
    with pytest.raises(np.linalg.LinAlgError):
        compiled(x)


@pytest.mark.parametrize(
    ("function", "error", "match"),
    [
        (lambda x: np.linalg.svd(x), TraceError, "full_matrices=False"),
        (lambda x: np.linalg.svd(x[:2], hermitian=True), TraceError, "eigh"),
        (lambda x: np.linalg.qr(x, "complete"), TraceError, "reduced"),
        (lambda x: np.linalg.qr(x, "raw"), TraceError, "reduced"),
        (lambda x: np.linalg.pinv(x, rcond=x[0]), TraceError, "cut off"),
        (lambda x: np.linalg.matrix_rank(x), TraceError, "svdvals"),
        (lambda x: np.linalg.inv(x), ShapeError, "not square"),
        (lambda x: np.linalg.inv(x[0]), ShapeError, "not a matrix"),
        (lambda x: np.linalg.solve(x[:2], x), ShapeError, "rows differ"),
        (lambda x: np.linalg.norm(x, "nuc", axis=0), ValueError, "of vectors"),
        (lambda x: np.linalg.norm(x, 7), ValueError, "of matrices"),
        (lambda x: np.linalg.norm(x[None], 1), ValueError, "over 3 axes"),
        (lambda x: np.linalg.eigh(x[:2], "X"), ValueError, "UPLO"),
        (lambda x: np.linalg.cross(x, x), ShapeError, "three dims"),
        (lambda x: np.linalg.outer(x, x), ShapeError, "not vectors"),
        (lambda x: np.linalg.multi_dot([x]), ValueError, "two or more"),
        (lambda x: np.diag(x[None]), ValueError, "1- or 2-d"),
        (lambda x: np.linalg.inv(x[:2].astype(np.float16)), TypeError, "float16"),
    ],
)
def test_refuses_by_name(function, error, match):
    with pytest.raises(error, match=match):
        jit(function)(T)


def test_names_are_recordable_or_refused_with_a_reason():
    from stagedad.front.linear import REFUSED
    from stagedad.front.protocol import is_recordable

    names = set(np.linalg.__all__) - {"LinAlgError"}
    assert {name for name in names if not is_recordable(getattr(np.linalg, name))} == set(
        REFUSED
    )
    assert {name for name in names if not hasattr(snp.linalg, name)} == set()


def test_second_derivatives():
    first = grad(lambda x: np.log(np.linalg.det(x)))
    direction = np.cos(S)
    second = grad(lambda x: np.sum(direction * first(x)))(S)
    back = np.linalg.inv(S).T
    np.testing.assert_allclose(second, -back @ direction.T @ back, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        # The cofactors of singular matrices have a derivative that no formula here gives.
        grad(lambda x: np.sum(grad(np.linalg.det)(x) ** 2))(np.ones((3, 3)))


def test_needs_no_gradient_of_integers():
    values = jit(np.linalg.inv)(np.array([[2, 0], [0, 4]]))
    np.testing.assert_array_equal(values, [[0.5, 0], [0, 0.25]])
