"""Recursions over time series: Kalman filters, hidden Markov models, volatilities."""

import numpy as np

SERIES = np.array([0.3, -0.5, 0.9, 1.4, 0.2, -0.8, 0.6, 1.1])


def kalman_local_level(log_q, log_r):
    q, r = np.exp(log_q), np.exp(log_r)
    mean, variance = 0.0, 10.0
    loglik = 0.0
    for y in SERIES:
        variance = variance + q
        s = variance + r
        innovation = y - mean
        loglik -= 0.5 * (np.log(2 * np.pi * s) + innovation**2 / s)
        gain = variance / s
        mean += gain * innovation
        variance *= 1 - gain
    return loglik


def kalman_constant_velocity(q, r):
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    Q = q * np.array([[0.25, 0.5], [0.5, 1.0]])
    x = np.zeros(2)
    P = np.eye(2)
    nll = 0
    for y in SERIES[:5]:
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + r
        K = P @ H.T @ np.linalg.inv(S)
        v = y - H @ x
        nll = nll + 0.5 * (np.log(np.linalg.det(S)) + v @ np.linalg.solve(S, v))
        x = x + K @ v
        P = (np.eye(2) - K @ H) @ P
    return nll


def hmm_forward_scaled(transition, means):
    T = transition / transition.sum(axis=1, keepdims=True)
    K = len(means)
    alpha = np.full(K, 1.0 / K)
    loglik = 0.0
    for t in range(len(SERIES)):
        density = np.exp(-0.5 * (SERIES[t] - means) ** 2)
        if t > 0:
            alpha = alpha @ T
        alpha = alpha * density
        scale = np.sum(alpha)
        alpha /= scale
        loglik += np.log(scale)
    return loglik


def hmm_viterbi_score(log_transition, means):
    scores = -0.5 * (SERIES[0] - means) ** 2
    for y in SERIES[1:]:
        new = np.zeros(len(means))
        for j in range(len(means)):
            options = [scores[i] + log_transition[i, j] for i in range(len(means))]
            new[j] = max(options) - 0.5 * (y - means[j]) ** 2
        scores = new
    return scores.max()


def hmm_posteriors(emission):
    T, K = emission.shape
    A = np.array([[0.9, 0.1], [0.2, 0.8]])
    forward = np.empty((T, K))
    backward = np.ones((T, K))
    forward[0] = 0.5 * emission[0]
    for t in range(1, T):
        for k in range(K):
            forward[t, k] = emission[t, k] * np.sum(forward[t - 1] * A[:, k])
    for t in range(T - 2, -1, -1):
        backward[t] = A @ (emission[t + 1] * backward[t + 1])
    gamma = forward * backward
    return gamma / gamma.sum(axis=1)[:, None]


def garch_likelihood(theta):
    omega, alpha, beta = theta
    h = np.zeros(len(SERIES))
    h[0] = np.var(SERIES)
    for t in range(1, len(SERIES)):
        h[t] = omega + alpha * SERIES[t - 1] ** 2 + beta * h[t - 1]
    return 0.5 * np.sum(np.log(h) + SERIES**2 / h)


def arma_residuals(phi, theta, y):
    e = np.zeros_like(y)
    for t in range(len(y)):
        ar = sum(phi[k] * y[t - 1 - k] for k in range(len(phi)) if t - 1 - k >= 0)
        ma = sum(theta[k] * e[t - 1 - k] for k in range(len(theta)) if t - 1 - k >= 0)
        e[t] = y[t] - ar - ma
    return e


def cusum_statistic(y, drift):
    high = low = 0.0
    worst = 0.0
    for value in y:
        high = max(0.0, high + value - drift)
        low = min(0.0, low + value + drift)
        worst = max(worst, high, -low)
    return worst


EXAMPLES = {
    "kalman_local_level": [(-1.0, -0.5)],
    "kalman_constant_velocity": [(0.3, 0.8)],
    "hmm_forward_scaled": [(np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([-0.5, 0.9]))],
    "hmm_viterbi_score": [(np.array([[-0.1, -2.3], [-1.2, -0.4]]), np.array([-0.5, 0.9]))],
    "hmm_posteriors": [(np.array([[0.5, 0.2], [0.1, 0.9], [0.4, 0.3], [0.7, 0.6]]),)],
    "garch_likelihood": [(np.array([0.1, 0.2, 0.6]),)],
    "arma_residuals": [(np.array([0.5, -0.2]), np.array([0.3]), SERIES)],
    "cusum_statistic": [(SERIES, 0.2), (-SERIES, 0.1)],
}
