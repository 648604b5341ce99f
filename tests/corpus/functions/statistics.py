"""Likelihoods and summaries."""

import numpy as np

X = np.array(
    [[1.0, 0.5, -0.3], [1.0, -1.2, 0.8], [1.0, 0.3, 1.1], [1.0, 2.0, -0.6], [1.0, -0.4, 0.2]]
)
LABELS = np.array([1, 0, 1, 1, 0])
TIMES = np.array([2.0, 3.5, 1.2, 4.8, 0.9])


def softmax_by_hand(z):
    e = np.exp(z - np.max(z))
    return e / np.sum(e)


def logsumexp_by_loop(z):
    biggest = z[0]
    for v in z[1:]:
        if v > biggest:
            biggest = v
    total = 0.0
    for v in z:
        total += np.exp(v - biggest)
    return biggest + np.log(total)


def gaussian_mixture(weights, means, sds):
    data = np.array([-1.0, -0.4, 0.3, 1.8, 2.2])
    w = weights / weights.sum()
    loglik = 0.0
    for x in data:
        density = 0.0
        for k in range(len(w)):
            z = (x - means[k]) / sds[k]
            density += w[k] * np.exp(-0.5 * z**2) / (sds[k] * np.sqrt(2 * np.pi))
        loglik += np.log(density)
    return loglik


def covariance_by_loops(data):
    n, d = data.shape
    means = [sum(data[:, j]) / n for j in range(d)]
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(i, d):
            C[i, j] = np.sum((data[:, i] - means[i]) * (data[:, j] - means[j])) / (n - 1)
            C[j, i] = C[i, j]
    return C


def correlation(x, y):
    xm, ym = x - x.mean(), y - y.mean()
    return (xm @ ym) / (np.linalg.norm(xm) * np.linalg.norm(ym))


def logistic_loss(w, l2=0.1):
    margins = X @ w
    losses = np.where(LABELS == 1, np.log1p(np.exp(-margins)), np.log1p(np.exp(margins)))
    return losses.mean() + l2 * w[1:] @ w[1:]


def huber_by_cases(theta):
    residuals = X[:, 1] - theta[0] - theta[1] * X[:, 2]
    loss = 0.0
    for r in residuals:
        if abs(r) <= 1.0:
            loss += 0.5 * r**2
        else:
            loss += abs(r) - 0.5
    return loss


def gaussian_process(log_params):
    length, signal, noise = np.exp(log_params)
    t = np.array([0.0, 0.4, 1.1, 1.7])
    y = np.array([0.2, 0.6, -0.1, -0.5])
    D = t[:, None] - t[None, :]
    K = signal**2 * np.exp(-0.5 * (D / length) ** 2)
    K[np.diag_indices(4)] += noise**2
    alpha = np.linalg.solve(K, y)
    _, logdet = np.linalg.slogdet(K)
    return 0.5 * (y @ alpha + logdet + 4 * np.log(2 * np.pi))


def kmeans_step(points, centres):
    new = np.zeros_like(centres)
    counts = np.zeros(len(centres))
    for p in points:
        distances = [np.sum((p - c) ** 2) for c in centres]
        nearest = int(np.argmin(np.array(distances)))
        new[nearest] += p
        counts[nearest] += 1
    return new / counts[:, np.newaxis]


def ordered_logit(beta, cuts):
    levels = [0, 1, 2, 1, 0]
    nll = 0.0
    for x, level in zip(X[:, 1], levels, strict=True):
        edges = 1 / (1 + np.exp(-(cuts - beta * x)))
        padded = np.concatenate(([0.0], edges, [1.0]))
        nll -= np.log(padded[level + 1] - padded[level])
    return nll


def cox_partial_likelihood(beta):
    order = np.argsort(TIMES)
    risk = np.exp(X[order, 1:] @ beta)
    at_risk = np.cumsum(risk[::-1])[::-1]
    return -np.sum(np.log(risk / at_risk))


def standardize_in_place(data):
    z = np.array(data, dtype=float, copy=True)
    z -= z.mean(axis=0)
    z /= z.std(axis=0)
    return (z[:-1] * z[1:]).sum(axis=0)


POINTS = np.array([[0.1, 0.2], [1.9, 2.2], [0.4, -0.3], [2.3, 1.7], [-0.2, 0.5]])

EXAMPLES = {
    "softmax_by_hand": [(np.array([0.5, -1.0, 2.0, 0.3]),)],
    "logsumexp_by_loop": [
        (np.array([0.5, -1.0, 2.0, 0.3]),),
        (np.array([3.0, -1.0, 2.0, 0.3]),),
    ],
    "gaussian_mixture": [(np.array([1.0, 2.0]), np.array([-0.5, 1.5]), np.array([0.7, 1.1]))],
    "covariance_by_loops": [(POINTS,)],
    "correlation": [(np.array([0.5, -1.0, 2.0, 0.3]), np.array([0.1, -0.7, 1.1, 1.3]))],
    "logistic_loss": [(np.array([0.2, -0.5, 0.8]),)],
    "huber_by_cases": [(np.array([0.2, -0.5]),), (np.array([2.0, 0.5]),)],
    "gaussian_process": [(np.array([-0.2, 0.1, -1.0]),)],
    "kmeans_step": [
        (POINTS, np.array([[0.0, 0.0], [2.0, 2.0]])),
        (POINTS, np.array([[0.1, 0.6], [0.2, 0.0]])),
    ],
    "ordered_logit": [(0.8, np.array([-0.4, 0.9]))],
    "cox_partial_likelihood": [(np.array([0.4, -0.7]),)],
    "standardize_in_place": [(POINTS,)],
}
