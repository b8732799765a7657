"""Operations on arrays that maps, passes and checks are made of, in plain numpy; :mod:`.arrays_native` has the twins.

Each function has a twin of the same name and signature there; tests pair them by name.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..rows import Rows

SQUASH = 3.0  # deviations beyond which a value counts by its logarithm


def matmul(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """X W for dense or CSR X, (m, d) (d, D) -> (m, D). ``out`` may be used for the result."""
    return np.asarray(X @ W)


def fourier(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``[cos XW, sin XW] / sqrt(D)``, (m, d) (d, D) -> (m, 2D): unit-norm rows. ``out`` may be used for the result."""
    return cos_sin(matmul(X, W))


def cos_sin(P: np.ndarray) -> np.ndarray:
    """``[cos P, sin P] / sqrt(D)``, (m, D) -> (m, 2D)."""
    return np.concatenate([np.cos(P), np.sin(P)], axis=1) / np.asarray(math.sqrt(P.shape[1]), P.dtype)


def squashed(X: np.ndarray) -> np.ndarray:
    """Scaled rows whose far values are drawn in: ``sign(z) (3 + log(1 + |z| - 3))`` beyond 3 deviations."""
    far = np.abs(X)
    if far.max(initial=0.0) <= SQUASH:
        return X
    drawn = np.copysign(SQUASH + np.log1p(np.maximum(far - SQUASH, 0.0)), X)
    return np.where(far > SQUASH, drawn, X).astype(X.dtype)


def ranks_of(X: np.ndarray, columns: np.ndarray, places: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Ranks (n, d) of rows X (n, d), 0 for columns that have none, in float32; see :mod:`kernelstream.solvers.ranks`.

    The k ``columns`` (k,) have them, along straight lines between knots: ``places`` and ``heights`` (k, knots).
    """
    out = np.zeros(X.shape, np.float32)
    for i, j in enumerate(columns):
        out[:, j] = np.interp(X[:, j], places[i], heights[i])
    return out


def tiles(S: np.ndarray) -> np.ndarray:
    """Rows (m, d) as :func:`exponential` takes them."""
    return S


def exponential(X: np.ndarray, S: np.ndarray, m: int, norm: int, c: float) -> np.ndarray:
    """``exp(-c |x - s|)`` of rows X (n, d) and the m rows of ``tiles(S)``, (n, m), by the norm 1 or 2."""
    out = np.empty((len(X), m), X.dtype)
    for i, x in enumerate(X):
        away = np.abs(x - S)
        out[i] = np.exp(-c * (away.sum(axis=1) if norm == 1 else np.sqrt((away * away).sum(axis=1))))
    return out


def exponential_mixture(rows: Any, others: Any, m: int, share: float) -> np.ndarray:
    """``w exp(-|x - s|_2) + (1 - w) exp(-|u - v|_1)``, (n, m): rows are (X, U), others both ``tiles`` of m rows."""
    near, apart = (exponential(X, S, m, norm, 1.0) for X, S, norm in zip(rows, others, (2, 1), strict=True))
    near *= near.dtype.type(share)
    apart *= near.dtype.type(1 - share)
    near += apart
    return near


def exponential_square(K: np.ndarray, rows: Any, tiled: Any, share: float, part: slice) -> None:
    """Rows of the mixture K (n, n) of rows (X, U) with themselves, up to the diagonal, and the same of its columns.

    ``tiled`` are both ``tiles`` of the n rows; ``part`` begins at a whole tile, and ends at one or at the last row.
    """
    before = slice(part.stop)
    K[part, before] = exponential_mixture([S[part] for S in rows], [S[before] for S in tiled], part.stop, share)
    K[: part.start, part] = K[part, : part.start].T


def symmetric_product(K: np.ndarray, diagonal: np.ndarray, V: np.ndarray) -> np.ndarray:
    """A matrix (n, n) times V (n, C), in float64: K below its diagonal, symmetric, with another diagonal (n,)."""
    out = diagonal[:, None] * V
    for i, row in enumerate(K):
        before = row[:i].astype(np.float64)
        out[i] += before @ V[:i]
        out[:i] += before[:, None] * V[i]
    return out


def exponential_sums(X: np.ndarray, S: np.ndarray, A: np.ndarray, norm: int, c: float) -> np.ndarray:
    """Kernel values :func:`exponential` times coefficients A (C, m), summed in float64, (n, C)."""
    K = exponential(X, S, A.shape[1], norm, c).astype(np.float64)
    return np.array([A @ k for k in K]).reshape(len(X), len(A))


def exponential_slopes(X: np.ndarray, S: np.ndarray, A: np.ndarray, norm: int, near: float) -> np.ndarray:
    r"""Slopes at rows X (n, d), but for the sign, of kernel functions with coefficients A (C, m), (n, C, d).

    .. math:: \sum_i a_i \frac{e^{-r_i}}{r_i} (x - s_i), \quad \sum_i a_i e^{-r_i} \operatorname{sign}(x - s_i), \quad
              r_i = |x - s_i|

    by the norm 2, where terms with a distance up to ``near`` are 0, or the norm 1.
    """
    K, out = exponential(X, S, A.shape[1], norm, 1.0), np.empty((len(X), *A.shape[:1], X.shape[1]))
    for x, k, slopes in zip(X, K, out, strict=True):
        away = x - S
        if norm == 1:
            slopes[:] = (A * k) @ np.sign(away)
        else:
            r = np.sqrt((away * away).sum(axis=1))
            slopes[:] = (A * np.where(r > near, k / np.maximum(r, near), 0.0)) @ away
    return out


def workspace(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
    """An array that the next call with the same name may reuse, or None: the python engine has no use for it."""
    return None


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    np.maximum(D, 0, out=D)
    D *= -gamma
    return np.exp(D, out=D)


def plain_rows(X: np.ndarray, single: bool, d: int, exponent: int) -> bool:
    """Whether X is a contiguous (n, d) array of float32 (``single``) or float64, n > 0, all ``|X| < 2^exponent``."""
    plain = X.ndim == 2 and X.flags.c_contiguous and X.dtype == (np.float32 if single else np.float64)
    return plain and X.shape[1] == d and X.shape[0] > 0 and all_below(X, exponent)


def all_below(X: np.ndarray, exponent: int) -> bool:
    """Whether ``|X| < 2^exponent`` for every entry; False for NaN. The largest exponent asks for finite ones."""
    with np.errstate(over="ignore"):
        limit = X.dtype.type(2.0) ** exponent
    # one after the other without a copy of X: NaN is neither
    return bool(X.size == 0 or (X.max() < limit and X.min() > -limit))
