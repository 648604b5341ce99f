"""Derivatives of matrix decompositions, as macros over ops.

Matrices are the last two axes.  `X^H` is the conjugate transpose; a cotangent is that of
the real inner product Re <u, v>.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stagedad.ops.macros import macro, metadata

if TYPE_CHECKING:
    from stagedad.ops.builder import Builder

BASIC = (
    "add", "sub", "neg", "mul", "matmul", "conj", "transpose", "expand_dims", "sum", "real",
    "imag", "astype", "constant", "constant_like",
)  # fmt: skip
PHASE = (*BASIC, "gauge_pivot", "div", "where", "equal")
SLICES = ("slice", "concatenate", "zeros_like", "broadcast_to")


@metadata
def shorter(shape: Any) -> int:
    """Return the lesser of the lengths of a matrix."""
    least: int = min(shape[-2:])
    return least


@macro(*BASIC, "solve", "squeeze")
def solve_left(b: Builder, g: Any, self: Any, other: Any, result: Any) -> Any:
    """Return the cotangent of the matrices of a solve: -A^-H g x^H.

    Shapes: g, other, result [.., n] (one axis) or [.., n, k]; self [.., n, n] -> that
    """
    back = b.call("solve", (adjoint(b, self), solve_operand(b, g, other)))
    if b.ndim(b.shape(other), "solve") == 1:
        result = expand(b, result, -1)
    return b.sum_to(neg(b, matmul(b, back, adjoint(b, result))), b.shape(self))


@macro(*BASIC, "solve", "squeeze")
def solve_right(b: Builder, g: Any, self: Any, other: Any) -> Any:
    """Return the cotangent of the right-hand sides: A^-H g."""
    back = b.call("solve", (adjoint(b, self), solve_operand(b, g, other)))
    if b.ndim(b.shape(other), "solve") == 1:
        back = b.call("squeeze", (back,), {"axis": -1})
    return b.sum_to(back, b.shape(other))


@macro(*BASIC, "solve", "squeeze")
def solve_tangent(
    b: Builder, self: Any, other: Any, result: Any, self_t: Any, other_t: Any
) -> Any:
    """Return A^-1 (b_t - A_t x)."""
    is_vector = b.ndim(b.shape(other), "solve") == 1
    column = expand(b, result, -1) if is_vector else result
    right = other_t
    if is_vector and other_t is not b.zero:
        right = expand(b, other_t, -1)
    right = sub(b, right, matmul(b, self_t, column))
    tangent = b.call("solve", (self, right))
    if is_vector:
        tangent = b.call("squeeze", (tangent,), {"axis": -1})
    return b.broadcast_to(tangent, b.shape(result))


def solve_operand(b: Builder, g: Any, other: Any) -> Any:
    """Return a cotangent of vectors as columns, which many of them are for one matrix each."""
    return expand(b, g, -1) if b.ndim(b.shape(other), "solve") == 1 else g


@macro(*BASIC, "inv")
def slogdet_pull(b: Builder, self: Any, sign: Any, g_sign: Any, g_logabsdet: Any) -> Any:
    """Return the cotangent of A: log|det A| is Re log det A, and the sign turns by Im."""
    turned = b.zero
    if is_complex(b, sign):
        # d sign = i sign Im tr(A^-1 dA)
        turned = b.call("imag", (mul(b, conj(b, g_sign), sign),))
        turned = mul(b, turned, -1j)
    total = add(b, g_logabsdet, turned)
    if total is b.zero:
        return b.zero
    inverse = b.call("inv", (self,))
    return mul(b, expand(b, total, (-2, -1)), adjoint(b, inverse))


@macro(*BASIC, "inv")
def slogdet_tangent(b: Builder, self: Any, sign: Any, self_t: Any) -> Any:
    """Return the tangents of sign and logarithm, by tr(A^-1 A_t)."""
    inverse = transposed(b, b.call("inv", (self,)))
    trace = b.call("sum", (mul(b, inverse, self_t),), {"axis": (-2, -1)})
    if not is_complex(b, sign):
        return b.zero, trace
    turned = mul(b, mul(b, b.call("imag", (trace,)), 1j), sign)
    return turned, b.call("real", (trace,))


@macro(*BASIC, "inv", "cofactor")
def cofactor_pull(b: Builder, self: Any, result: Any, g: Any) -> Any:
    """Return the cotangent of A: cof(A) is det(A) A^-T where A has an inverse."""
    inverse = conj(b, b.call("inv", (self,)))
    cofactor = conj(b, result)
    total = b.call("sum", (mul(b, g, transposed(b, inverse)),), {"axis": (-2, -1)})
    whole = mul(b, expand(b, total, (-2, -1)), cofactor)
    # cof = det inv^T, so its part through inv is -inv^T (cof g^T) inv^T, conjugated.
    inner = matmul(b, matmul(b, cofactor, transposed(b, g)), transposed(b, inverse))
    return sub(b, whole, inner)


@macro(*BASIC, "inv")
def cofactor_tangent(b: Builder, self: Any, result: Any, self_t: Any) -> Any:
    """Return tr(A^-1 A_t) cof(A) - A^-T A_t^T cof(A)."""
    turned = transposed(b, b.call("inv", (self,)))
    trace = b.call("sum", (mul(b, turned, self_t),), {"axis": (-2, -1)})
    whole = mul(b, expand(b, trace, (-2, -1)), result)
    return sub(b, whole, matmul(b, matmul(b, turned, transposed(b, self_t)), result))


@macro(*BASIC, "solve", "tril")
def cholesky_pull(b: Builder, result: Any, g: Any) -> Any:
    """Return the cotangent of A's lower triangle: L^-H phi(L^H g) L^-1.

    phi keeps the lower triangle and half of the diagonal.
    Source: Murray 2016, Differentiation of the Cholesky decomposition, (8), (9).
    """
    inner = _phi(b, matmul(b, adjoint(b, result), g))
    back = adjoint(b, result)
    left = b.call("solve", (back, inner))
    whole = adjoint(b, b.call("solve", (back, adjoint(b, left))))
    return to_triangle(b, whole)


@macro(*BASIC, "solve", "tril")
def cholesky_tangent(b: Builder, result: Any, self_t: Any) -> Any:
    """Return L phi(L^-1 A_t L^-H).  Source: as `cholesky_pull`."""
    moved = from_triangle(b, self_t)
    left = b.call("solve", (result, moved))
    both = b.call("solve", (result, adjoint(b, left)))
    return matmul(b, result, _phi(b, both))


def to_triangle(b: Builder, cotangent: Any, lower: bool = True) -> Any:
    """Return the cotangent of the triangle that is read, given one of the whole matrix.

    The other triangle is the conjugate of this one, and counts through it.
    """
    kind, off = ("tril", -1) if lower else ("triu", 1)
    if cotangent is b.zero:
        return cotangent
    both = add(b, cotangent, adjoint(b, cotangent))
    kept = add(b, b.call(kind, (both,), {"k": 0}), b.call(kind, (both,), {"k": off}))
    return mul(b, kept, 0.5)


def from_triangle(b: Builder, tangent: Any, lower: bool = True) -> Any:
    """Return the tangent of the whole matrix, given one of which a triangle is read."""
    kind, off = ("tril", -1) if lower else ("triu", 1)
    if tangent is b.zero:
        return tangent
    kept = add(b, b.call(kind, (tangent,), {"k": 0}), b.call(kind, (tangent,), {"k": off}))
    return mul(b, add(b, kept, adjoint(b, kept)), 0.5)


@macro(*BASIC, "tril", "triu", "eigh")
def eigvalsh_pull(b: Builder, self: Any, g: Any, uplo: Any) -> Any:
    """Return V diag(g) V^H: of eigenvalues that coincide, the mean if g is the same.

    Source: Giles 2008, An extended collection of matrix derivative results, 3.1.
    """
    _, vectors = b.call("eigh", (self,), {"UPLO": uplo})
    whole = matmul(b, mul(b, vectors, expand(b, g, -2)), adjoint(b, vectors))
    return to_triangle(b, whole, uplo == "L")


@macro(*BASIC, "tril", "triu", "eigh")
def eigvalsh_tangent(b: Builder, self: Any, self_t: Any, uplo: Any) -> Any:
    """Return the diagonal of V^H A_t V.  Source: as `eigvalsh_pull`."""
    _, vectors = b.call("eigh", (self,), {"UPLO": uplo})
    moved = from_triangle(b, self_t, uplo == "L")
    return _real_diagonal(b, vectors, matmul(b, moved, vectors))


@macro(*PHASE, "tril", "triu", "over_gaps")
def eigh_pull(
    b: Builder, values: Any, vectors: Any, g_values: Any, g_vectors: Any, uplo: Any
) -> Any:
    """Return V (diag(g_w) + F o V^H g_V) V^H, F_ij = 1 / (w_j - w_i).

    LAPACK leaves the first component of each complex vector real, or the last under UPLO="U".
    Source: Giles 2008, 3.1; Boeddeker 2017, On the Computation of Complex-valued Gradients, 4.
    """
    which = "first" if uplo == "L" else "last"
    g_vectors = _in_gauge(b, vectors, g_vectors, which)
    turned = matmul(b, adjoint(b, vectors), g_vectors)
    if turned is not b.zero:
        turned = b.call("over_gaps", (turned, values), {"sign": -1})
    left = add(b, mul(b, vectors, expand(b, g_values, -2)), matmul(b, vectors, turned))
    return to_triangle(b, matmul(b, left, adjoint(b, vectors)), uplo == "L")


@macro(*PHASE, "tril", "triu", "over_gaps")
def eigh_tangent(b: Builder, values: Any, vectors: Any, self_t: Any, uplo: Any) -> Any:
    """Return diag(P) and V (F o P) for P = V^H A_t V.  Source: as `eigh_pull`."""
    moved = matmul(b, from_triangle(b, self_t, uplo == "L"), vectors)
    turned = matmul(b, adjoint(b, vectors), moved)
    change = matmul(b, vectors, b.call("over_gaps", (turned, values), {"sign": 1}))
    which = "first" if uplo == "L" else "last"
    return _real_diagonal(b, vectors, moved), _rephased(b, vectors, change, which)


@macro(*BASIC, "eig", "basis_inverse")
def eigvals_pull(b: Builder, self: Any, g: Any) -> Any:
    """Return V^-H diag(g) V^H.  Source: Giles 2008, 3.1."""
    _, vectors = b.call("eig", (self,))
    back = adjoint(b, b.call("basis_inverse", (vectors,)))
    return matmul(b, mul(b, back, expand(b, g, -2)), adjoint(b, vectors))


@macro(*BASIC, "eig", "basis_inverse")
def eigvals_tangent(b: Builder, self: Any, self_t: Any) -> Any:
    """Return the diagonal of V^-1 A_t V.  Source: as `eigvals_pull`."""
    _, vectors = b.call("eig", (self,))
    back = transposed(b, b.call("basis_inverse", (vectors,)))
    return _total(b, mul(b, back, matmul(b, self_t, vectors)))


@macro(*PHASE, "basis_inverse", "over_gaps")
def eig_pull(b: Builder, values: Any, vectors: Any, g_values: Any, g_vectors: Any) -> Any:
    """Return V^-H (diag(g_w) + F^* o (V^H g_V - V^H V diag(Re V^H g_V))) V^H.

    LAPACK scales the vectors to length 1, and their largest component to be real.
    Source: Boeddeker 2017, 4.
    """
    g_vectors = _in_gauge(b, vectors, g_vectors, "largest")
    back = adjoint(b, b.call("basis_inverse", (vectors,)))
    inner = b.zero
    if g_vectors is not b.zero:
        along = expand(b, _real_diagonal(b, vectors, g_vectors), -2)
        across = sub(b, g_vectors, mul(b, vectors, along))
        turned = matmul(b, adjoint(b, vectors), across)
        inner = b.call("over_gaps", (turned, conj(b, values)), {"sign": 0})
    left = add(b, mul(b, back, expand(b, g_values, -2)), matmul(b, back, inner))
    return matmul(b, left, adjoint(b, vectors))


@macro(*PHASE, "basis_inverse", "over_gaps")
def eig_tangent(b: Builder, values: Any, vectors: Any, self_t: Any) -> Any:
    """Return diag(P) and V (F o P), at length 1, for P = V^-1 A_t V.  Source: as `eig_pull`."""
    inverse = b.call("basis_inverse", (vectors,))
    moved = matmul(b, self_t, vectors)
    turned = matmul(b, inverse, moved)
    change = matmul(b, vectors, b.call("over_gaps", (turned, values), {"sign": 0}))
    along = expand(b, _real_diagonal(b, vectors, change), -2)
    change = sub(b, change, mul(b, vectors, along))
    diagonal = _total(b, mul(b, transposed(b, inverse), moved))
    return diagonal, _rephased(b, vectors, change, "largest")


@macro(*BASIC, "svd")
def svdvals_pull(b: Builder, self: Any, g: Any) -> Any:
    """Return U diag(g) V^H.  Source: Giles 2008, 3.2."""
    left, _, right = b.call("svd", (self,))
    return matmul(b, mul(b, left, expand(b, g, -2)), right)


@macro(*BASIC, "svd")
def svdvals_tangent(b: Builder, self: Any, self_t: Any) -> Any:
    """Return the diagonal of U^H A_t V.  Source: Giles 2008, 3.2."""
    left, _, right = b.call("svd", (self,))
    return _real_diagonal(b, left, matmul(b, self_t, adjoint(b, right)))


@macro(*PHASE, "over_gaps", "over_columns", "tril", "triu")
def svd_pull(b: Builder, u: Any, s: Any, vh: Any, g_u: Any, g_s: Any, g_vh: Any) -> Any:
    """Return the cotangent of A = U diag(s) V^H.

    LAPACK leaves the first component of each column of V real, or that of U if A has fewer
    rows than columns.
    Source: Townsend 2016, Differentiating the singular value decomposition; for complex
            matrices Wan and Zhang 2019, Automatic differentiation for complex valued SVD.
    """
    rows, columns = _rows(b, u), b.static(b.shape(vh), "svd")[-1]
    few = b.static(b.shape(s), "svd")[-1]
    v, g_v = adjoint(b, vh), adjoint(b, g_vh)
    if g_u is b.zero and g_v is b.zero:
        return matmul(b, mul(b, u, expand(b, g_s, -2)), vh)
    if is_complex(b, u):
        turned = add(b, _imag_diagonal(b, u, g_u), _imag_diagonal(b, v, g_v))
        if rows >= columns:
            g_v = sub(b, g_v, _phase_pull(b, v, turned, "first"))
        else:
            g_u = sub(b, g_u, _phase_pull(b, u, turned, "first"))
    squares = mul(b, s, s)
    row = expand(b, s, -2)
    inner, total = b.zero, b.zero
    if g_u is not b.zero:
        own = matmul(b, adjoint(b, u), g_u)
        gaps = b.call("over_gaps", (own, squares), {"sign": -1})
        inner = mul(b, mul(b, gaps, 2), row)
        if is_complex(b, u):
            imaginary = mul(b, _diagonal_part(b, b.call("imag", (own,))), 1j)
            inner = add(b, inner, b.call("over_columns", (imaginary, s)))
        if rows > few:
            rest = sub(b, g_u, matmul(b, u, own))
            total = matmul(b, b.call("over_columns", (rest, s)), vh)
    if g_v is not b.zero:
        own = matmul(b, vh, g_v)
        gaps = b.call("over_gaps", (own, squares), {"sign": -1})
        inner = add(b, inner, mul(b, expand(b, s, -1), mul(b, gaps, 2)))
        if columns > few:
            rest = sub(b, g_v, matmul(b, v, own))
            total = add(b, total, matmul(b, u, adjoint(b, b.call("over_columns", (rest, s)))))
    left = add(b, mul(b, u, expand(b, g_s, -2)), matmul(b, u, inner))
    return add(b, matmul(b, left, vh), total)


@macro(*PHASE, "over_gaps", "over_columns", "tril", "triu")
def svd_tangent(b: Builder, u: Any, s: Any, vh: Any, self_t: Any) -> Any:
    """Return the tangents of U, s and V^H, for P = U^H A_t V.  Source: as `svd_pull`."""
    rows, columns = _rows(b, u), b.static(b.shape(vh), "svd")[-1]
    few = b.static(b.shape(s), "svd")[-1]
    v = adjoint(b, vh)
    moved = matmul(b, self_t, v)
    turned = matmul(b, adjoint(b, u), moved)
    squares = mul(b, s, s)
    right = mul(b, mul(b, turned, expand(b, s, -2)), 2)
    left = mul(b, mul(b, turned, expand(b, s, -1)), 2)
    u_t = matmul(b, u, b.call("over_gaps", (right, squares), {"sign": 1}))
    v_t = matmul(b, v, b.call("over_gaps", (left, squares), {"sign": 1}))
    if rows > few:
        rest = sub(b, moved, matmul(b, u, turned))
        u_t = add(b, u_t, b.call("over_columns", (rest, s)))
    if columns > few:
        back = matmul(b, adjoint(b, self_t), u)
        rest = sub(b, back, matmul(b, v, adjoint(b, turned)))
        v_t = add(b, v_t, b.call("over_columns", (rest, s)))
    if is_complex(b, u):
        # U's column turns by Im(P_jj) / s_j against V's.
        imaginary = mul(b, _diagonal_part(b, b.call("imag", (turned,))), 1j)
        u_t = add(b, u_t, matmul(b, u, b.call("over_columns", (imaginary, s))))
        by_v = rows >= columns
        phase = _phase(b, v, v_t, "first") if by_v else _phase(b, u, u_t, "first")
        phase = mul(b, expand(b, phase, -2), 1j)
        u_t, v_t = sub(b, u_t, mul(b, u, phase)), sub(b, v_t, mul(b, v, phase))
    return u_t, _real_diagonal(b, u, moved), adjoint(b, v_t)


@macro(*BASIC, *SLICES, "solve", "tril", "triu")
def qr_pull(b: Builder, q: Any, r: Any, g_q: Any, g_r: Any) -> Any:
    """Return (g_Q + Q copyltu(R g_R^H - g_Q^H Q)) R^-H.

    copyltu mirrors the lower triangle; the diagonal of R is real.  Of a wide A the first
    columns decide Q, and the others are Q^H A.
    Source: Roberts and Roberts 2020, QR and LQ decomposition matrix backpropagation
            algorithms for square, wide, and deep matrices, 2.
    """
    if g_q is b.zero and g_r is b.zero:
        return b.zero
    few, columns = b.static(b.shape(r), "qr")[-2:]
    rest = b.zero
    r_rest = g_rest = b.zero
    if columns > few:
        r_rest, g_rest = _columns(b, r, few, columns), _columns(b, g_r, few, columns)
        r, g_r = _columns(b, r, 0, few), _columns(b, g_r, 0, few)
        rest = matmul(b, q, g_rest)
        g_q = add(b, g_q, matmul(b, q, matmul(b, r_rest, adjoint(b, g_rest))))
    m = sub(b, matmul(b, r, adjoint(b, g_r)), matmul(b, adjoint(b, g_q), q))
    off = b.call("tril", (m,), {"k": -1})
    mirrored = add(b, add(b, off, adjoint(b, off)), _real_part(b, _diagonal_part(b, m)))
    left = add(b, g_q, matmul(b, q, mirrored))
    first = adjoint(b, b.call("solve", (r, adjoint(b, left))))
    if columns == few:
        return first
    if rest is b.zero:
        rest = b.zeros(b.shape(r_rest), first)
    return b.call("concatenate", (first, rest), {"axis": -1})


@macro(*BASIC, *SLICES, "solve", "tril", "triu")
def qr_tangent(b: Builder, q: Any, r: Any, self_t: Any) -> Any:
    """Return the tangents of Q and R; of X = Q^H A_t R^-1 the part in Q is skew.

    Source: as `qr_pull`.
    """
    few, columns = b.static(b.shape(r), "qr")[-2:]
    whole_t, r_rest = self_t, b.zero
    if columns > few:
        r_rest = _columns(b, r, few, columns)
        r, self_t = _columns(b, r, 0, few), _columns(b, self_t, 0, few)
    c = adjoint(b, b.call("solve", (adjoint(b, r), adjoint(b, self_t))))
    x = matmul(b, adjoint(b, q), c)
    off = b.call("tril", (x,), {"k": -1})
    skew = sub(b, off, adjoint(b, off))
    if is_complex(b, x):
        imaginary = b.call("imag", (_diagonal_part(b, x),))
        skew = add(b, skew, mul(b, imaginary, 1j))
    upper = sub(b, x, skew)
    q_t = sub(b, c, matmul(b, q, upper))
    r_t = b.call("triu", (matmul(b, upper, r),), {"k": 0})
    if columns > few:
        moved = matmul(b, adjoint(b, q), _columns(b, whole_t, few, columns))
        moved = add(b, moved, matmul(b, adjoint(b, q_t), matmul(b, q, r_rest)))
        r_t = b.call("concatenate", (r_t, moved), {"axis": -1})
    return q_t, r_t


@macro(*BASIC)
def pinv_pull(b: Builder, self: Any, result: Any, g: Any) -> Any:
    """Return the cotangent of A of constant rank, P being its pseudo-inverse.

    Source: Golub and Pereyra 1973, The differentiation of pseudo-inverses, (4.12).
    """
    p, ph = result, adjoint(b, result)
    gh = adjoint(b, g)
    first = neg(b, matmul(b, matmul(b, ph, g), ph))
    second = matmul(b, gh, matmul(b, p, ph))
    second = sub(b, second, matmul(b, self, matmul(b, p, second)))
    third = matmul(b, matmul(b, ph, p), gh)
    third = sub(b, third, matmul(b, matmul(b, third, p), self))
    return add(b, add(b, first, second), third)


@macro(*BASIC)
def pinv_tangent(b: Builder, self: Any, result: Any, self_t: Any) -> Any:
    """Return the tangent of P.  Source: as `pinv_pull`."""
    p, ph = result, adjoint(b, result)
    th = adjoint(b, self_t)
    first = neg(b, matmul(b, matmul(b, p, self_t), p))
    second = matmul(b, matmul(b, p, ph), th)
    second = sub(b, second, matmul(b, matmul(b, second, self), p))
    third = matmul(b, th, matmul(b, ph, p))
    third = sub(b, third, matmul(b, p, matmul(b, self, third)))
    return add(b, add(b, first, second), third)


@macro(*BASIC, "over_gaps")
def gaps_pull(b: Builder, result: Any, values: Any, g: Any) -> Any:
    """Return the cotangent of the values: d(1 / gap) = -d gap / gap^2."""
    slope = b.call("over_gaps", (result, values), {"sign": 0})
    moved = neg(b, mul(b, conj(b, slope), g))
    columns = b.call("sum", (moved,), {"axis": -2})
    return sub(b, columns, b.call("sum", (moved,), {"axis": -1}))


@macro(*BASIC, "over_gaps")
def gaps_tangent(
    b: Builder, result: Any, values: Any, self_t: Any, values_t: Any, sign: Any
) -> Any:
    """Return the tangent of the quotients by gaps."""
    total = b.zero
    if self_t is not b.zero:
        total = b.call("over_gaps", (self_t, values), {"sign": sign})
    if values_t is b.zero:
        return total
    slope = b.call("over_gaps", (result, values), {"sign": 0})
    gaps = sub(b, expand(b, values_t, -2), expand(b, values_t, -1))
    return sub(b, total, mul(b, slope, gaps))


@macro(*BASIC, "over_columns")
def columns_tangent(b: Builder, result: Any, values: Any, self_t: Any, values_t: Any) -> Any:
    """Return the tangent of the quotients by column."""
    total = b.zero
    if self_t is not b.zero:
        total = b.call("over_columns", (self_t, values))
    if values_t is b.zero:
        return total
    slope = b.call("over_columns", (result, values))
    return sub(b, total, mul(b, slope, expand(b, values_t, -2)))


@macro("conj", "transpose")
def adjoint(b: Builder, x: Any) -> Any:
    """Return the conjugate transpose of the last two axes."""
    return conj(b, transposed(b, x))


def transposed(b: Builder, x: Any) -> Any:
    """Return the transpose of the last two axes."""
    if x is b.zero:
        return x
    ndim = b.ndim(b.shape(x), "linalg")
    axes = None if ndim == 2 else (*range(ndim - 2), ndim - 1, ndim - 2)
    return b.call("transpose", (x,), {"axes": axes})


def conj(b: Builder, x: Any) -> Any:
    """Return the conjugate; real values are their own."""
    return b.conj(x)


def matmul(b: Builder, x: Any, y: Any) -> Any:
    """Return the product of matrices."""
    return b.call("matmul", (x, y))


def mul(b: Builder, x: Any, y: Any) -> Any:
    """Return the product of elements."""
    return b.call("mul", (x, y))


def add(b: Builder, x: Any, y: Any) -> Any:
    """Return the sum."""
    return b.call("add", (x, y)) if x is not b.zero else y


def sub(b: Builder, x: Any, y: Any) -> Any:
    """Return the difference."""
    return b.call("sub", (x, y))


def neg(b: Builder, x: Any) -> Any:
    """Return the negative."""
    return b.call("neg", (x,))


def expand(b: Builder, x: Any, axis: Any) -> Any:
    """Return `x` with axes of length 1 inserted."""
    return x if x is b.zero else b.call("expand_dims", (x,), {"axis": axis})


def is_complex(b: Builder, x: Any) -> bool:
    """Whether an operand is known to be complex."""
    return x is not b.zero and x.type is not None and x.type.dtype.kind == "c"


def _phi(b: Builder, x: Any) -> Any:
    kept = add(b, b.call("tril", (x,), {"k": 0}), b.call("tril", (x,), {"k": -1}))
    return mul(b, kept, 0.5)


def _rows(b: Builder, x: Any) -> int:
    return b.static(b.shape(x), "svd")[-2]


def _columns(b: Builder, x: Any, start: int, stop: int) -> Any:
    if x is b.zero:
        return x
    dims = b.static(b.shape(x), "qr")
    last = len(dims) - 1
    slices = {
        "start": (*(0,) * last, start), "stop": (*dims[:-1], stop), "step": (1,) * len(dims)
    }  # fmt: skip
    return b.call("slice", (x,), slices)


def _total(b: Builder, x: Any) -> Any:
    return b.call("sum", (x,), {"axis": -2})


def _real_part(b: Builder, x: Any) -> Any:
    return b.call("real", (x,)) if is_complex(b, x) else x


def _diagonal_part(b: Builder, x: Any) -> Any:
    return b.call("triu", (b.call("tril", (x,), {"k": 0}),), {"k": 0})


def _real_diagonal(b: Builder, x: Any, y: Any) -> Any:
    """Return the real part of the diagonal of x^H y."""
    return _real_part(b, _total(b, mul(b, conj(b, x), y)))


def _imag_diagonal(b: Builder, x: Any, y: Any) -> Any:
    """Return the imaginary part of the diagonal of x^H y."""
    if y is b.zero:
        return y
    return b.call("imag", (_total(b, mul(b, conj(b, x), y)),))


def _pivot(b: Builder, vectors: Any, which: str) -> tuple[Any, Any]:
    """Return where the component stands that the gauge keeps real, and the component."""
    mask = b.call("gauge_pivot", (vectors,), {"which": which})
    return mask, _total(b, mul(b, mask, _real_part(b, vectors)))


def _phase_pull(b: Builder, vectors: Any, turned: Any, which: str) -> Any:
    """Return i turned / p at the pivots: the way back through the phase of the vectors."""
    mask, pivot = _pivot(b, vectors, which)
    share = b.call("div", (turned, pivot))
    return mul(b, mul(b, mask, expand(b, share, -2)), 1j)


def _in_gauge(b: Builder, vectors: Any, g: Any, which: str) -> Any:
    """Return the cotangent of complex vectors without its part along their phases."""
    if g is b.zero or not is_complex(b, vectors):
        return g
    return sub(b, g, _phase_pull(b, vectors, _imag_diagonal(b, vectors, g), which))


def _phase(b: Builder, vectors: Any, change: Any, which: str) -> Any:
    """Return how far `change` turns the pivots away from real."""
    mask, pivot = _pivot(b, vectors, which)
    return b.call("div", (_total(b, mul(b, mask, b.call("imag", (change,)))), pivot))


def _rephased(b: Builder, vectors: Any, change: Any, which: str) -> Any:
    """Return a change of complex vectors that keeps the pivots real."""
    if not is_complex(b, vectors):
        return change
    phase = mul(b, expand(b, _phase(b, vectors, change, which), -2), 1j)
    return sub(b, change, mul(b, vectors, phase))
