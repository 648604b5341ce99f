"""Signals and images: convolutions, stencils, masks and transforms by hand."""

import numpy as np


def convolve_by_loops(signal, kernel):
    n, m = len(signal), len(kernel)
    out = np.zeros(n + m - 1)
    for i in range(n):
        for j in range(m):
            out[i + j] += signal[i] * kernel[j]
    return out


def blur_separable(image, width):
    taps = np.exp(-0.5 * (np.arange(-1, 2) / width) ** 2)
    taps /= taps.sum()
    padded = np.pad(image, 1, mode="edge")
    rows = sum(taps[k] * padded[:, k : k + image.shape[1]] for k in range(3))
    return sum(taps[k] * rows[k : k + image.shape[0], :] for k in range(3))


def rectify_by_mask(x):
    y = x.copy()
    y[y < 0] = 0
    y[y > 2] = 2
    return np.sum(y**2)


def leaky_by_mask(x, slope):
    y = x * 1.0
    negative = x < 0
    y[negative] *= slope
    y[~negative] += 0.5
    return y


def max_pool(image):
    h, w = image.shape
    pooled = np.empty((h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            pooled[i, j] = image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max()
    return (pooled**2).sum()


def bilinear_sample(image, row, col):
    i, j = int(np.floor(row)), int(np.floor(col))
    a, b = row - i, col - j
    top = (1 - b) * image[i, j] + b * image[i, j + 1]
    bottom = (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
    return (1 - a) * top + a * bottom


def biquad(x, b, a):
    y = np.zeros(len(x))
    for n in range(len(x)):
        y[n] = b[0] * x[n]
        if n >= 1:
            y[n] += b[1] * x[n - 1] - a[0] * y[n - 1]
        if n >= 2:
            y[n] += b[2] * x[n - 2] - a[1] * y[n - 2]
    return y


def normalized_cross_correlation(a, b):
    best = -np.inf
    for lag in range(3):
        u = a[lag : lag + 4] - a[lag : lag + 4].mean()
        v = b[:4] - b[:4].mean()
        score = np.sum(u * v) / np.sqrt(np.sum(u**2) * np.sum(v**2))
        if score > best:
            best = score
    return best


def median_of_three(x):
    y = x.copy()
    for i in range(1, len(x) - 1):
        y[i] = sorted([x[i - 1], x[i], x[i + 1]])[1]
    return y @ np.arange(1.0, len(x) + 1)


def interpolate_by_search(x, xs, ys):
    out = []
    for value in x:
        k = 0
        while k < len(xs) - 2 and xs[k + 1] < value:
            k += 1
        t = (value - xs[k]) / (xs[k + 1] - xs[k])
        out.append(ys[k] + t * (ys[k + 1] - ys[k]))
    return np.array(out)


def anisotropic_step(image, kappa):
    out = image.copy()
    for axis, shift in ((0, 1), (0, -1), (1, 1), (1, -1)):
        d = np.roll(image, shift, axis=axis) - image
        if axis == 0:
            d[0 if shift == 1 else -1, :] = 0
        else:
            d[:, 0 if shift == 1 else -1] = 0
        out += 0.2 * np.exp(-((d / kappa) ** 2)) * d
    return out


SIGNAL = np.array([0.4, -1.1, 0.9, 2.3, -0.2, 0.7, 1.6, -0.5])
IMAGE = np.array(
    [
        [0.1, 0.9, -0.4, 0.3],
        [1.2, -0.7, 0.5, 0.8],
        [0.6, 0.2, -1.1, 1.4],
        [-0.3, 1.0, 0.7, -0.9],
    ]
)

EXAMPLES = {
    "convolve_by_loops": [(SIGNAL[:5], np.array([0.5, -1.0, 0.3]))],
    "blur_separable": [(IMAGE, 0.8)],
    "rectify_by_mask": [(SIGNAL,), (-SIGNAL,)],
    "leaky_by_mask": [(SIGNAL, 0.2)],
    "max_pool": [(IMAGE,), (-IMAGE,)],
    "bilinear_sample": [(IMAGE, 1.3, 0.6), (IMAGE, 0.3, 1.8)],
    "biquad": [(SIGNAL, np.array([0.3, 0.5, 0.2]), np.array([-0.6, 0.25]))],
    "normalized_cross_correlation": [(SIGNAL, SIGNAL[::-1] ** 2), (SIGNAL[::-1] ** 2, SIGNAL)],
    "median_of_three": [(SIGNAL,), (SIGNAL[::-1] ** 2,)],
    "interpolate_by_search": [
        (
            np.array([0.3, 1.9, 1.2]),
            np.array([0.0, 1.0, 1.5, 3.0]),
            np.array([1.0, -1.0, 0.5, 2.0]),
        )
    ],
    "anisotropic_step": [(IMAGE, 1.5)],
}
