"""Numerical methods written out by loops, as textbooks print them."""

import numpy as np


def determinant_by_lu(A):
    U = A.copy()
    n = U.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            factor = U[i, k] / U[k, k]
            U[i, k:] -= factor * U[k, k:]
    det = 1.0
    for k in range(n):
        det *= U[k, k]
    return det


def thomas(lower, diagonal, upper, rhs):
    n = len(diagonal)
    c = np.zeros(n - 1)
    d = np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = rhs[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / pivot
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / pivot
    for i in reversed(range(n - 1)):
        d[i] -= c[i] * d[i + 1]
    return d


def cholesky_by_loops(B):
    A = B @ B.T + np.eye(len(B))
    n = A.shape[0]
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - np.dot(L[i, :j], L[j, :j])
            if i == j:
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


def spline_second_derivatives(x, y):
    n = len(x)
    y2 = np.zeros(n)
    u = np.zeros(n - 1)
    for i in range(1, n - 1):
        sig = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        p = sig * y2[i - 1] + 2.0
        y2[i] = (sig - 1.0) / p
        u[i] = (y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])
        u[i] = (6.0 * u[i] / (x[i + 1] - x[i - 1]) - sig * u[i - 1]) / p
    for k in range(n - 2, -1, -1):
        y2[k] = y2[k] * y2[k + 1] + u[k] if k > 0 else 0.0
    return y2


def clenshaw(coefficients, x):
    d = dd = 0.0
    for c in coefficients[:0:-1]:
        d, dd = 2 * x * d - dd + c, d
    return x * d - dd + coefficients[0]


def romberg(a, b, rate):
    def f(t):
        return np.exp(-rate * t) * np.cos(t)

    levels = 5
    R = np.zeros((levels, levels))
    h = b - a
    R[0, 0] = 0.5 * h * (f(a) + f(b))
    for i in range(1, levels):
        h = h / 2
        mids = sum(f(a + k * h) for k in range(1, 2**i, 2))
        R[i, 0] = 0.5 * R[i - 1, 0] + h * mids
        for k in range(1, i + 1):
            R[i, k] = R[i, k - 1] + (R[i, k - 1] - R[i - 1, k - 1]) / (4**k - 1)
    return R[-1, -1]


def horner_with_derivative(p, x):
    value, slope = p[-1], 0.0
    for c in p[-2::-1]:
        slope = slope * x + value
        value = value * x + c
    return value * slope


def bisection_then_newton(c):
    lo, hi = 0.0, 4.0
    while hi - lo > 1e-3:
        mid = 0.5 * (lo + hi)
        if mid**3 - c[0] * mid - c[1] > 0:
            hi = mid
        else:
            lo = mid
    root = 0.5 * (lo + hi)
    for _ in range(3):
        root = root - (root**3 - c[0] * root - c[1]) / (3 * root**2 - c[0])
    return root


def newton_with_break(e, mean_anomaly):
    E = mean_anomaly
    for _ in range(50):
        step = (E - e * np.sin(E) - mean_anomaly) / (1 - e * np.cos(E))
        E = E - step
        if abs(step) < 1e-13:
            break
    else:
        raise RuntimeError("no convergence")
    return np.sqrt(1 - e**2) * np.sin(E)


def levinson(r, y):
    n = len(y)
    a = np.array([1.0])
    x = np.array([y[0] / r[0]])
    error = r[0]
    for k in range(1, n):
        reflection = -np.dot(a, r[k:0:-1]) / error
        a = np.append(a, 0.0)
        a = a + reflection * a[::-1]
        error = error * (1 - reflection**2)
        gap = (y[k] - np.dot(x, r[k:0:-1])) / error
        x = np.append(x, 0.0) + gap * a[::-1]
    return x


def gauss_jordan_with_pivoting(A, b):
    M = np.column_stack([A, b])
    n = len(b)
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(M[i, k]) > abs(M[best, k]):
                best = i
        if best != k:
            M[[k, best]] = M[[best, k]]
        M[k] = M[k] / M[k, k]
        for i in range(n):
            if i != k:
                M[i] -= M[i, k] * M[k]
    return M[:, -1]


def divided_differences(x, y):
    table = np.zeros((len(x), len(x)))
    table[:, 0] = y
    for j in range(1, len(x)):
        table[j:, j] = (table[j:, j - 1] - table[j - 1 : -1, j - 1]) / (x[j:] - x[:-j])
    return np.diag(table)


def gram_schmidt(A):
    Q = A.copy()
    R = np.zeros((A.shape[1], A.shape[1]))
    for j in range(A.shape[1]):
        for i in range(j):
            R[i, j] = Q[:, i] @ Q[:, j]
            Q[:, j] -= R[i, j] * Q[:, i]
        R[j, j] = np.sqrt(Q[:, j] @ Q[:, j])
        Q[:, j] /= R[j, j]
    return Q, R


def elliptic_by_agm(k):
    a, g = 1.0, np.sqrt(1 - k * k)
    while abs(a - g) > 1e-12:
        a, g = (a + g) / 2, np.sqrt(a * g)
    return np.pi / (a + g)


SQUARE = np.array([[2.0, 1.0, -1.0], [0.5, 3.0, 0.7], [-0.3, 0.4, 1.5]])

EXAMPLES = {
    "determinant_by_lu": [(SQUARE,)],
    "thomas": [
        (
            np.array([0.5, -0.3, 0.2]),
            np.array([2.0, 3.0, 2.5, 1.8]),
            np.array([0.4, 0.6, -0.5]),
            np.array([1.0, -1.0, 0.5, 2.0]),
        )
    ],
    "cholesky_by_loops": [(SQUARE,)],
    "spline_second_derivatives": [
        (np.array([0.0, 0.7, 1.5, 2.9, 3.5]), np.array([1.0, 0.3, -0.8, 0.2, 0.9]))
    ],
    "clenshaw": [(np.array([0.5, -1.0, 0.3, 0.8]), 0.35)],
    "romberg": [(0.2, 1.9, 0.7)],
    "horner_with_derivative": [(np.array([1.0, -0.5, 2.0, 0.3]), 0.8)],
    "bisection_then_newton": [(np.array([1.3, 2.1]),), (np.array([0.4, 5.0]),)],
    "newton_with_break": [(0.3, 1.1), (0.8, 0.4)],
    "levinson": [(np.array([2.0, 0.8, -0.3, 0.2]), np.array([1.0, 0.5, -0.7, 0.3]))],
    "gauss_jordan_with_pivoting": [
        (
            np.array([[0.2, 1.0, -1.0], [2.5, 0.3, 0.7], [-0.3, 1.4, 1.5]]),
            np.array([1.0, -2.0, 0.5]),
        ),
        (SQUARE, np.array([1.0, -2.0, 0.5])),
    ],
    "divided_differences": [(np.array([0.0, 0.7, 1.5, 2.9]), np.array([1.0, 0.3, -0.8, 0.2]))],
    "gram_schmidt": [(np.array([[1.0, 0.5], [0.3, -1.2], [2.0, 0.4]]),)],
    "elliptic_by_agm": [(0.6,), (0.99,)],
}
