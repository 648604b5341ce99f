"""Differential equations: time steppers and finite differences on grids."""

import numpy as np


def euler_decay(k, y0):
    dt = 0.1
    y = np.zeros(11)
    y[0] = y0
    for i in range(10):
        y[i + 1] = y[i] + dt * (-k * y[i])
    return y


def rk4_lotka_volterra(p, z0):
    def f(z):
        prey, predator = z
        return np.array(
            [p[0] * prey - p[1] * prey * predator, p[2] * prey * predator - p[3] * predator]
        )

    h = 0.2
    path = np.zeros((6, 2))
    path[0] = z0
    for i in range(5):
        k1 = f(path[i])
        k2 = f(path[i] + h / 2 * k1)
        k3 = f(path[i] + h / 2 * k2)
        k4 = f(path[i] + h * k3)
        path[i + 1] = path[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path


def heat_in_place(u0, kappa):
    u = u0.copy()
    for _ in range(5):
        u[1:-1] += kappa * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def upwind_burgers(u0):
    u = np.array(u0)
    for _ in range(3):
        old = u.copy()
        for i in range(1, len(u) - 1):
            if old[i] > 0:
                u[i] = old[i] - 0.1 * old[i] * (old[i] - old[i - 1])
            else:
                u[i] = old[i] - 0.1 * old[i] * (old[i + 1] - old[i])
    return u


def crank_nicolson(u0, r):
    n = len(u0)
    A = np.zeros((n, n))
    B = np.zeros((n, n))
    for i in range(n):
        A[i, i] = 1 + r
        B[i, i] = 1 - r
        if i > 0:
            A[i, i - 1] = -r / 2
            B[i, i - 1] = r / 2
        if i < n - 1:
            A[i, i + 1] = -r / 2
            B[i, i + 1] = r / 2
    u = u0
    for _ in range(3):
        u = np.linalg.solve(A, B @ u)
    return u


def adaptive_heun(rate):
    t, y, h = 0.0, 1.0, 0.25
    while t < 1.0:
        h = min(h, 1.0 - t)
        k1 = -rate * y + np.sin(t)
        k2 = -rate * (y + h * k1) + np.sin(t + h)
        error = abs(k2 - k1) * h / 2
        if error < 1e-2:
            t += h
            y = y + h * (k1 + k2) / 2
        else:
            h = h / 2
    return y


def bouncing_ball(v0, restitution):
    g, dt = 9.81, 0.02
    height, v = 1.0, v0
    for _ in range(40):
        v = v - g * dt
        height = height + v * dt
        if height < 0:
            height = -height
            v = -restitution * v
    return height + 0.1 * v


def gravity_of_three_bodies(positions, masses):
    n = len(masses)
    forces = np.zeros((n, 2))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            d = positions[j] - positions[i]
            r = np.sqrt(d[0] ** 2 + d[1] ** 2)
            forces[i] += masses[i] * masses[j] * d / r**3
    return forces


def laplace_five_points(boundary):
    u = np.zeros((5, 5))
    u[0, :] = boundary
    u[:, -1] = boundary[::-1]
    for _ in range(6):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u[1:-1, 1:-1].sum()


GRID = np.array([0.0, 0.3, 0.9, 0.4, -0.2, 0.1])

EXAMPLES = {
    "euler_decay": [(0.7, 2.0)],
    "rk4_lotka_volterra": [(np.array([1.1, 0.4, 0.1, 0.4]), np.array([3.0, 1.5]))],
    "heat_in_place": [(GRID, 0.2)],
    "upwind_burgers": [
        (np.array([0.5, 0.8, -0.4, -0.6, 0.3, 0.2]),),
        (np.array([0.5, 0.8, 0.4, 0.6, 0.3, 0.2]),),
    ],
    "crank_nicolson": [(GRID, 0.4)],
    "adaptive_heun": [(1.3,), (0.2,)],
    "bouncing_ball": [(1.0, 0.8), (5.0, 0.8)],
    "gravity_of_three_bodies": [
        (np.array([[0.0, 0.1], [1.0, 0.3], [-0.4, 0.9]]), np.array([1.0, 2.0, 0.5]))
    ],
    "laplace_five_points": [(np.array([1.0, 0.5, -0.3, 0.8, 0.2]),)],
}
