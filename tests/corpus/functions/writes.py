"""Arrays written in place: by items, slices, masks, views, functions and out=."""

import numpy as np


def sine_into_out(x):
    buffer = np.zeros(3)
    np.sin(x, out=buffer)
    np.multiply(buffer, x, out=buffer)
    return buffer.sum()


def copyto_and_put(x):
    a = np.zeros(4)
    np.copyto(a, x**2)
    np.put(a, [0, 2], [x[1], 3.0])
    return a @ a


def copyto_where(x):
    a = np.ones_like(x)
    np.copyto(a, 2 * x, where=x > 0)
    return np.prod(a)


def add_at_repeated(x, weights):
    bins = np.array([0, 2, 2, 1, 0, 2])
    histogram = np.zeros(3)
    np.add.at(histogram, bins, weights * x)
    return histogram**2


def fill_diagonal(x):
    M = np.outer(x, x)
    np.fill_diagonal(M, 2 * x)
    return np.linalg.det(M)


def view_of_a_view(x):
    base = np.zeros((3, 4))
    block = base[1:, 1:]
    corner = block[:, ::2]
    corner[0] = x[:2]
    corner[1, 1] = x[2] * x[0]
    return base


def transposed_view(x):
    a = np.zeros((2, 3))
    a.T[0] = x[:2]
    a.T[2, 1] = x[2]
    return a * np.arange(6.0).reshape(2, 3)


def reversed_view(x):
    y = x.copy()
    back = y[::-1]
    back[0] = 3 * y[0]
    back[-1] *= 2
    return y


def reshaped_view(x):
    flat = np.zeros(6)
    grid = flat.reshape(2, 3)
    grid[:, 1] = x[:2]
    grid[0] += x
    return flat


def swap_rows(A):
    M = A.copy()
    M[0], M[2] = M[2].copy(), M[0].copy()
    M[[0, 1]] = M[[1, 0]]
    return M * np.array([[1.0], [2.0], [3.0]])


def swap_items(x):
    a = x.copy()
    a[0], a[1] = a[1], a[0]
    i, j = 1, 3
    a[i], a[j] = a[j].copy(), a[i].copy()
    return a * np.array([1.0, 2.0, 3.0, 4.0])


def aliased_names(x):
    a = x * 1.0
    b = a
    b[0] = 5.0 * x[1]
    a[1] += b[0]
    return a + b


def read_before_write(x):
    a = x.copy()
    kept = a[0]
    column = a[1:3]
    a[1:3] = column[::-1]
    a[0] = 7.0
    return a.sum() * kept + column @ column


def mask_from_another(x, fill):
    y = np.empty_like(x)
    mask = (x > 0) & (x < 2)
    y[mask] = x[mask] ** 2
    y[~mask] = fill[: np.sum(~mask)]
    return y


def ellipsis_and_newaxis(x):
    a = np.zeros((2, 1, 3))
    a[..., 0] = x[:2, np.newaxis]
    a[1, ...] += x
    a[:, 0, -1] = x[1] * x[2]
    return a


def fancy_assignment(x):
    a = np.zeros((3, 3))
    rows = [0, 1, 2]
    cols = [2, 0, 1]
    a[rows, cols] = x
    a[[0, 2]] += x
    a[1, [0, 2]] *= x[0]
    return np.sum(a**2, axis=1)


def last_write_wins(x):
    a = np.zeros(3)
    a[[0, 1, 0]] = x
    a[2] = x[0]
    a[2] = x[1] ** 2
    return a


def fill_and_flat(x):
    a = np.empty((2, 2))
    a.fill(x[0])
    a.flat[3] = x[1]
    a.flat[[0, 1]] = x[1:]
    return np.linalg.inv(a)


def place_and_putmask(x):
    a = x**2
    np.place(a, a > 1, [x[0], x[1]])
    np.putmask(a, np.array([False, False, True, False]), x * 10)
    return a


def sort_in_place(x):
    y = x * np.array([1.0, -1.0, 2.0, 0.5])
    y.sort()
    return np.cumsum(y)


def insertion_sort(x):
    a = x.copy()
    for i in range(1, len(a)):
        key = a[i].copy()
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a[1:] * a[:-1]


def growing_by_append(x):
    history = np.array([])
    state = x[0]
    for k in range(4):
        state = np.sin(state + x[1] * k)
        history = np.append(history, state)
    return history


def stacks_of_scalars(x):
    row = np.hstack([x[0], x[1:], 1.0, [x[0] * x[2]]])
    square = np.vstack((row[:2], [x[2], 4.0]))
    return np.concatenate([row, square.ravel(), [x @ x]])


def insert_and_delete(x):
    y = np.insert(x, 1, x[0] * x[1])
    y = np.delete(y, [2])
    return np.r_[y, x[-1]] ** 2


def triangle_from_vector(v):
    L = np.zeros((3, 3))
    L[np.tril_indices(3)] = v
    S = L @ L.T
    S[np.triu_indices(3, k=1)] *= 0.5
    return S


def rows_as_views(x):
    table = np.zeros((3, 2))
    for row in table:
        row += x
    for k, row in enumerate(table):
        row[0] *= k
    return np.sum(np.sin(table))


def modifies_its_argument(x):
    def normalise(v):
        v -= v.mean()
        v[0] = 0.5
        return v

    work = 2 * x
    normalise(work[1:])
    return work


def accumulate_and_reduce(x):
    highest = np.maximum.accumulate(x)
    products = np.multiply.accumulate(x)
    return np.add.reduce(highest * products) + np.multiply.reduce(x[:2])


def block_matrix(A, b, c):
    n = len(b)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = A
    M[:n, n] = b
    M[n, :n] = b
    M[n, n] = c
    return np.linalg.solve(M, np.ones(n + 1))


VECTOR = np.array([0.7, 1.4, -0.6])
LONGER = np.array([0.7, 1.4, -0.6, 2.3])
MATRIX = np.array([[2.0, 1.0, -1.0], [0.5, 3.0, 0.7], [-0.3, 0.4, 1.5]])

EXAMPLES = {
    "sine_into_out": [(VECTOR,)],
    "copyto_and_put": [(LONGER,)],
    "copyto_where": [(LONGER,)],
    "add_at_repeated": [
        (np.array([0.5, 1.0, -0.3, 0.8, 1.2, 0.4]), np.array([1.0, 0.5, 2.0, 0.3, 0.7, 1.1]))
    ],
    "fill_diagonal": [(VECTOR,)],
    "view_of_a_view": [(VECTOR,)],
    "transposed_view": [(VECTOR,)],
    "reversed_view": [(VECTOR,)],
    "reshaped_view": [(VECTOR,)],
    "swap_rows": [(MATRIX,)],
    "swap_items": [(LONGER,)],
    "aliased_names": [(VECTOR,)],
    "read_before_write": [(LONGER,)],
    "mask_from_another": [(LONGER, np.array([1.1, 0.9, 0.3, 0.2]))],
    "ellipsis_and_newaxis": [(VECTOR,)],
    "fancy_assignment": [(VECTOR,)],
    "last_write_wins": [(VECTOR,)],
    "fill_and_flat": [(VECTOR,)],
    "place_and_putmask": [(LONGER,)],
    "sort_in_place": [(LONGER,), (LONGER[::-1],)],
    "insertion_sort": [(LONGER,), (-LONGER,)],
    "growing_by_append": [(VECTOR,)],
    "stacks_of_scalars": [(VECTOR,)],
    "insert_and_delete": [(VECTOR,)],
    "triangle_from_vector": [(np.array([0.7, 0.2, 1.1, -0.4, 0.3, 0.9]),)],
    "rows_as_views": [(VECTOR[:2],)],
    "modifies_its_argument": [(LONGER,)],
    "accumulate_and_reduce": [(LONGER,)],
    "block_matrix": [(MATRIX[:2, :2], np.array([0.4, -0.8]), 3.0)],
}
