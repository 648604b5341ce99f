"""Matrices: products, solves, factors and sums over indices."""

import numpy as np


def quadratic_form(A, x):
    trace = np.einsum("ii", A)
    return np.einsum("i,ij,j->", x, A, x) + trace


def cofactor_determinant(A):
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    det = 0.0
    for j in range(n):
        minor = np.hstack([A[1:, :j], A[1:, j + 1 :]])
        det += (-1) ** j * A[0, j] * cofactor_determinant(minor)
    return det


def conjugate_gradients(A, b):
    x = np.zeros(len(b))
    r = b - A @ x
    p = r.copy()
    for _ in range(3):
        Ap = A @ p
        alpha = r @ r / (p @ Ap)
        x += alpha * p
        new = r - alpha * Ap
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x


def attention(Q, K, V):
    scores = np.einsum("id,jd->ij", Q, K) / np.sqrt(Q.shape[-1])
    scores = np.where(np.tril(np.ones((3, 3))) > 0, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ V


def log_determinant_by_cholesky(B):
    A = B @ B.T + 2 * np.eye(3)
    L = np.linalg.cholesky(A)
    z = np.linalg.solve(L, np.ones(3))
    return 2 * np.log(np.diag(L)).sum() + z @ z


def stiffness_assembly(k):
    n = len(k) + 1
    K = np.zeros((n, n))
    for e in range(len(k)):
        local = k[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        dofs = [e, e + 1]
        K[np.ix_(dofs, dofs)] += local
    u = np.zeros(n)
    u[1:] = np.linalg.solve(K[1:, 1:], np.ones(n - 1))
    return 0.5 * u @ K @ u


def trapezoid_by_hand(x, y):
    total = 0
    for i in range(1, len(x)):
        total += 0.5 * (y[i] + y[i - 1]) * (x[i] - x[i - 1])
    return total


def clipped_cumulative(x):
    level = np.clip(np.cumsum(x), 0.0, 1.5)
    return np.sum(level * np.interp(np.arange(4.0), [0.0, 3.0], [1.0, 2.0]))


def page_rank(links, damping):
    n = len(links)
    M = links / links.sum(axis=0)
    rank = np.full(n, 1 / n)
    for _ in range(60):
        new = (1 - damping) / n + damping * M @ rank
        if np.abs(new - rank).sum() < 1e-15:
            break
        rank = new
    return rank


MATRIX = np.array([[2.0, 1.0, -1.0], [0.5, 3.0, 0.7], [-0.3, 0.4, 1.5]])
TALL = np.array([[1.0, 0.5], [0.3, -1.2], [2.0, 0.4], [-0.6, 0.9]])
SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.7], [0.5, -0.7, 5.0]])
VECTOR = np.array([0.7, 1.4, -0.6])

EXAMPLES = {
    "quadratic_form": [(MATRIX, VECTOR)],
    "cofactor_determinant": [(MATRIX,)],
    "conjugate_gradients": [(SPD, VECTOR)],
    "attention": [(TALL[:3], TALL[1:], MATRIX)],
    "log_determinant_by_cholesky": [(MATRIX,)],
    "stiffness_assembly": [(np.array([2.0, 1.5, 3.0]),)],
    "trapezoid_by_hand": [(np.array([0.0, 0.5, 1.2, 2.0]), np.array([1.0, 0.3, -0.5, 0.9]))],
    "clipped_cumulative": [
        (np.array([0.7, -0.2, 1.4, 0.3]),),
        (np.array([-0.7, 0.9, 0.4, 0.3]),),
    ],
    "page_rank": [(np.abs(MATRIX), 0.85)],
}
