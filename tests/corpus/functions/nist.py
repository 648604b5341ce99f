"""Nonlinear regression: the models of NIST's reference data sets.

The samples are short and rounded, or of the same shape: not the certified data.
"""

import numpy as np

MISRA1A = np.array(
    [
        [77.6, 10.07],
        [141.1, 17.94],
        [239.9, 29.61],
        [332.8, 40.02],
        [477.3, 55.05],
        [760.0, 81.78],
    ]
)
MGH09_X = np.array([4.0, 2.0, 1.0, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])
MGH09_Y = np.array(
    [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
)
BOD_DAYS = [1, 2, 3, 5, 7, 10]
BOD_DEMAND = [109, 149, 149, 191, 213, 224]
RAT43 = [16.08, 33.83, 65.80, 97.20, 191.55, 326.20, 386.87, 520.53, 590.03, 651.92]
LANCZOS_Y = np.array([2.5134, 2.0443, 1.6684, 1.3664, 1.1232, 0.9269, 0.7679, 0.6389])
THURBER = [
    (-3.067, 80.574),
    (-2.4, 130.0),
    (-1.5, 330.0),
    (-0.5, 990.0),
    (0.5, 1330.0),
    (1.9, 1440.0),
]
HAHN_T = np.array([24.41, 34.82, 44.09, 54.98, 65.51, 70.53, 150.0, 400.0])
HAHN_Y = np.array([0.591, 1.547, 2.902, 4.703, 6.307, 7.03, 13.0, 18.0])


def misra1a(b):
    r = np.zeros(len(MISRA1A))
    for i in range(len(MISRA1A)):
        r[i] = b[0] * (1 - np.exp(-b[1] * MISRA1A[i, 0])) - MISRA1A[i, 1]
    return r


def thurber(b):
    total = 0.0
    for x, y in THURBER:
        top = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
        bottom = 1 + b[4] * x + b[5] * x**2 + b[6] * x**3
        total += (y - top / bottom) ** 2
    return total / len(THURBER)


def mgh09(b):
    b1, b2, b3, b4 = b
    model = b1 * (MGH09_X**2 + MGH09_X * b2) / (MGH09_X**2 + MGH09_X * b3 + b4)
    return model - MGH09_Y


def hahn1(b):
    powers = np.vstack([np.ones_like(HAHN_T), HAHN_T, HAHN_T**2, HAHN_T**3])
    numerator = b[:4] @ powers
    denominator = 1.0 + b[4:] @ powers[1:]
    return 0.5 * np.sum((HAHN_Y - numerator / denominator) ** 2)


def rat43(b1, b2, b3, b4):
    sse = 0
    for day, weight in enumerate(RAT43, start=1):
        predicted = b1 / (1 + np.exp(b2 - b3 * day)) ** (1 / b4)
        sse = sse + (weight - predicted) ** 2
    return sse / 1000


def lanczos3(b):
    x = 0.05 * np.arange(8)
    fitted = np.zeros(8)
    for k in range(0, 6, 2):
        fitted += b[k] * np.exp(-b[k + 1] * x)
    residual = LANCZOS_Y - fitted
    return np.dot(residual, residual)


def gauss1(b):
    x = np.arange(1.0, 250.0, 24.0)
    y = np.array([97.6, 53.4, 35.2, 79.6, 93.6, 50.0, 70.1, 83.2, 36.9, 18.2, 10.4])

    def bump(height, centre, width):
        return height * np.exp(-((x - centre) ** 2) / width**2)

    model = b[0] * np.exp(-b[1] * x) + bump(*b[2:5]) + bump(*b[5:8])
    return np.linalg.norm(y - model)


def boxbod(b):
    residuals = [
        demand - b[0] * (1 - np.exp(-b[1] * days))
        for days, demand in zip(BOD_DAYS, BOD_DEMAND, strict=True)
    ]
    return np.array(residuals)


def eckerle4(b):
    wave = np.linspace(430.0, 470.0, 9)
    seen = np.array([0.01, 0.024, 0.064, 0.17, 0.33, 0.4, 0.26, 0.1, 0.03])
    r = np.empty(wave.shape)
    for i, w in enumerate(wave):
        z = (w - b[2]) / b[1]
        r[i] = seen[i] - b[0] / b[1] * np.exp(-0.5 * z * z)
    return (r**2).sum()


def bennett5(b):
    x = np.array([7.447168, 8.452547, 9.217, 10.17, 11.4])
    y = np.array([-34.83, -34.1, -33.6, -33.1, -32.6])
    return y - b[0] * (b[1] + x) ** (-1 / b[2])


EXAMPLES = {
    "misra1a": [(np.array([250.0, 5e-4]),)],
    "thurber": [(np.array([1300.0, 1500.0, 500.0, 75.0, 1.0, 0.4, 0.05]),)],
    "mgh09": [(np.array([0.25, 0.39, 0.415, 0.39]),)],
    "hahn1": [(np.array([1.0776, -0.1227, 4.1e-3, -1.4e-6, -5.8e-3, 2.4e-4, -1.2e-7]),)],
    "rat43": [(700.0, 5.0, 0.75, 1.3)],
    "lanczos3": [(np.array([0.5, 0.7, 3.6, 4.2, 4.0, 6.3]),)],
    "gauss1": [(np.array([94.0, 0.0105, 99.0, 63.0, 25.0, 71.0, 180.0, 20.0]),)],
    "boxbod": [(np.array([210.0, 0.5]),)],
    "eckerle4": [(np.array([1.5, 5.0, 450.0]),)],
    "bennett5": [(np.array([-1500.0, 45.0, 0.85]),)],
}
