"""Prices and rates."""

import numpy as np

NORMALS = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6], [-0.5, 0.2, 0.9], [-1.4, 0.8, 0.1]])


def erf_by_formula(x):
    # Abramowitz and Stegun 7.1.26
    t = 1 / (1 + 0.3275911 * np.abs(x))
    poly = t * (
        0.254829592
        + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.sign(x) * (1 - poly * np.exp(-(x**2)))


def black_scholes(S, K, r, sigma, T):
    d1 = (np.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    cdf = [0.5 * (1 + erf_by_formula(d / np.sqrt(2))) for d in (d1, d2)]
    return S * cdf[0] - K * np.exp(-r * T) * cdf[1]


def binomial_call_in_place(S, sigma, r):
    n, K, T = 6, 100.0, 1.0
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    p = (np.exp(r * dt) - 1 / u) / (u - 1 / u)
    values = np.zeros(n + 1)
    for j in range(n + 1):
        values[j] = max(S * u ** (2 * j - n) - K, 0.0)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            values[j] = np.exp(-r * dt) * (p * values[j + 1] + (1 - p) * values[j])
    return values[0]


def american_put_tree(S, sigma):
    n, K, r, dt = 5, 100.0, 0.06, 0.2
    u = np.exp(sigma * np.sqrt(dt))
    q = (np.exp(r * dt) - 1 / u) / (u - 1 / u)
    tree = np.zeros((n + 1, n + 1))
    exponents = 2 * np.arange(n + 1) - n
    tree[n] = np.maximum(K - S * u**exponents, 0)
    for i in reversed(range(n)):
        spot = S * u ** (2 * np.arange(i + 1) - i)
        hold = np.exp(-r * dt) * (q * tree[i + 1, 1 : i + 2] + (1 - q) * tree[i + 1, : i + 1])
        tree[i, : i + 1] = np.where(hold > K - spot, hold, K - spot)
    return tree[0, 0]


def implied_volatility(price):
    S, K, T = 100.0, 105.0, 0.5
    vol = 0.3
    for _ in range(20):
        d = np.log(S / K) / (vol * np.sqrt(T)) + 0.5 * vol * np.sqrt(T)
        spread = 1 / (1 + np.exp(-1.702 * d)) * S - K / (
            1 + np.exp(-1.702 * (d - vol * np.sqrt(T)))
        )
        slope = S * np.sqrt(T) * np.exp(-0.5 * d**2) / np.sqrt(2 * np.pi)
        vol = vol - (spread - price) / slope
        if abs(spread - price) < 1e-13:
            break
    return vol


def nelson_siegel(beta, tau):
    maturities = np.array([0.25, 0.5, 1, 2, 5, 10, 30])
    quotes = np.array([1.2, 1.3, 1.5, 1.9, 2.4, 2.8, 3.0])
    x = maturities / tau
    basis = np.ones((7, 3))
    basis[:, 1] = (1 - np.exp(-x)) / x
    basis[:, 2] = basis[:, 1] - np.exp(-x)
    return np.sum((basis @ beta - quotes) ** 2)


def portfolio_sharpe(weights, mu, L):
    w = weights / np.sum(weights)
    covariance = L @ L.T
    risk = 0.0
    for i in range(len(w)):
        for j in range(len(w)):
            risk += w[i] * w[j] * covariance[i, j]
    return (w @ mu - 0.01) / np.sqrt(risk)


def asian_option(S0, sigma):
    paths = np.zeros((4, 4))
    paths[:, 0] = S0
    for k in range(3):
        paths[:, k + 1] = paths[:, k] * np.exp(-0.5 * sigma**2 + sigma * NORMALS[:, k])
    payoff = paths[:, 1:].mean(axis=1) - 100
    payoff[payoff < 0] = 0
    return payoff.mean()


def barrier_option(S0, sigma):
    total = 0.0
    for shocks in NORMALS:
        spot = S0
        for z in shocks:
            spot = spot * (1 + sigma * z)
            if spot < 80:
                break
        else:
            total += max(spot - 100, 0)
    return total / len(NORMALS)


EXAMPLES = {
    "erf_by_formula": [(np.array([0.3, -0.8, 1.5]),)],
    "black_scholes": [(100.0, 95.0, 0.03, 0.25, 0.75)],
    "binomial_call_in_place": [(102.0, 0.3, 0.04), (80.0, 0.5, 0.04)],
    "american_put_tree": [(96.0, 0.3)],
    "implied_volatility": [(7.3,)],
    "nelson_siegel": [(np.array([3.0, -1.5, -0.8]), 1.7)],
    "portfolio_sharpe": [
        (
            np.array([0.4, 0.5, 0.3]),
            np.array([0.05, 0.08, 0.03]),
            np.array([[0.2, 0.0, 0.0], [0.05, 0.3, 0.0], [0.02, -0.1, 0.15]]),
        )
    ],
    "asian_option": [(100.0, 0.2), (118.0, 0.4)],
    "barrier_option": [(105.0, 0.25), (95.0, 0.1)],
}
