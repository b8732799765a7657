"""The operations of :mod:`.arrays`, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..rows import Rows
from .arrays import SQUASH
from .philox import SEED_MASK
from .workspace import on_lines
from .workspace import workspace as workspace

BLOCK = 128  # rows per call of a feature map: two blocks of projections stay in the second-level cache

all_below = _core.all_below
plain_rows = _core.plain_rows
remember = _core.remember  # see kernelstream.core.corrupt
standardize = _core.standardize  # see kernelstream.core.ranges
taylor = _core.taylor  # see kernelstream.features.taylor.taylor


def matmul(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """X W for dense or CSR X, (m, d) (d, D) -> (m, D). ``out`` may be used for the result."""
    if not sp.issparse(X):
        return np.dot(X, W, out=out)
    if out is None:
        out = np.empty((X.shape[0], W.shape[1]), W.dtype)
    _core.csr_matmul(X.data.astype(W.dtype, copy=False), X.indices, X.indptr, W, out)
    return out


def squashed(X: np.ndarray) -> np.ndarray:
    """Scaled rows whose far values are drawn in; a new array."""
    out = np.array(X, order="C")
    _core.squash(out, SQUASH)
    return out


def cleaned(X: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Rows (m, d) with gaps filled and far cells drawn in; see :mod:`.corrupt`."""
    out = np.array(X, order="C")
    _core.clean(out, usual)
    return out


def measured(kept: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """What columns (n, d) are like, (4, d); see :mod:`.corrupt`."""
    found = np.empty((4, kept.shape[1]))
    _core.measure(np.ascontiguousarray(kept), usual, found)
    return found


def scaled(X: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    """Rows (m, d) scaled by the moments of the columns, in float64; see :mod:`.ranges`."""
    out = np.empty(X.shape)
    _core.scale(state, np.ascontiguousarray(X, np.float64), out)
    return out


def ranks_of(X: np.ndarray, columns: np.ndarray, places: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Ranks (n, d) of rows X (n, d), 0 for columns that have none, in float32; see :mod:`.arrays`."""
    out = np.zeros(X.shape, np.float32)
    _core.ranks(np.ascontiguousarray(X), columns, places, heights, out)
    return out


def fourier(X: Rows, W: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """``[cos XW, sin XW] / sqrt(D)``, (m, d) (d, D) -> (m, 2D): unit-norm rows. ``out`` may be used for the result."""
    m, D = X.shape[0], W.shape[1]
    Z = np.empty((m, 2 * D), W.dtype) if out is None else out
    if m == 1 and type(X) is np.ndarray:
        _core.fourier_row(X, W, Z, 1.0 / math.sqrt(D))
    else:
        _core.trig(matmul(X, W, workspace("P", (m, D), W.dtype)), Z, 1.0 / math.sqrt(D))
    return Z


def exp_scaled(D: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma max(D, 0))`` in place: a Gaussian kernel from squared distances."""
    _core.exp_scaled(D, gamma)
    return D


def tiles(S: np.ndarray) -> np.ndarray:
    """Rows (m, d) side by side, 64 bytes of each column together, (tiles, d * 64 bytes)."""
    width = 64 // S.itemsize
    count, d = -(-len(S) // width), S.shape[1]
    padded = np.zeros((count * width, d), S.dtype)
    padded[: len(S)] = S
    out = on_lines((count, d, width), S.dtype)
    out[:] = padded.reshape(count, width, d).transpose(0, 2, 1)
    return out.reshape(count, width * d)


def exponential(X: np.ndarray, S: np.ndarray, m: int, norm: int, c: float) -> np.ndarray:
    """``exp(-c |x - s|)`` of rows X (n, d) and the m rows of ``tiles(S)``, (n, m), by the norm 1 or 2."""
    out = np.empty((len(X), m), X.dtype)
    _core.exponential(np.ascontiguousarray(X), S, out, norm, c)
    return out


def exponential_mixture(rows: Any, others: Any, m: int, share: float) -> np.ndarray:
    """``w exp(-|x - s|_2) + (1 - w) exp(-|u - v|_1)``, (n, m): rows are (X, U), others both ``tiles`` of m rows."""
    X, U = rows
    near, apart = others
    out: Any = np.empty((len(X), m), X.dtype)
    _core.exponential_mixture(np.ascontiguousarray(X), np.ascontiguousarray(U), near, apart, out, share)
    return out


def exponential_square(K: np.ndarray, rows: Any, tiled: Any, share: float, part: slice) -> None:
    """Rows of the mixture K (n, n) of rows (X, U) with themselves, up to the diagonal, and the same of its columns.

    ``tiled`` are both ``tiles`` of the n rows; ``part`` begins at a whole tile, and ends at one or at the last row.
    """
    X, U = (np.ascontiguousarray(S[part]) for S in rows)
    near, apart = tiled
    _core.exponential_square(X, U, near, apart, K, share, part.start)


def symmetric_product(K: np.ndarray, diagonal: np.ndarray, V: np.ndarray) -> np.ndarray:
    """A matrix (n, n) times V (n, C), in float64: K below its diagonal, symmetric, with another diagonal (n,)."""
    out = np.empty(V.T.shape)
    _core.symmetric_product(K, diagonal, np.ascontiguousarray(V.T), out)
    return out.T


def exponential_sums(X: np.ndarray, S: np.ndarray, A: np.ndarray, norm: int, c: float) -> np.ndarray:
    """Kernel values :func:`exponential` times coefficients A (C, m), summed in float64, (n, C)."""
    out = np.empty((len(X), len(A)))
    _core.exponential_sums(X, S, A, out, norm, c)
    return out


def exponential_slopes(X: np.ndarray, S: np.ndarray, A: np.ndarray, norm: int, near: float) -> np.ndarray:
    """Slopes at rows X (n, d), but for the sign, of kernel functions with coefficients A (C, m), (n, C, d)."""
    out = np.empty((len(X), len(A), X.shape[1]))
    _core.exponential_slopes(X, S, A, out, norm, near)
    return out


def normals(
    seed: int, block: int, rows: np.ndarray, D: int, stream: int = 0, scale: float = 1.0, dtype: Any = np.float32
) -> np.ndarray:
    """Rows of a block of an endless array of normal numbers; see :mod:`.philox`."""
    out = np.empty((len(rows), D), dtype)
    _core.philox_normals(seed & SEED_MASK, block, stream, np.ascontiguousarray(rows, np.int64), scale, out)
    return out


def take_targets(
    y: np.ndarray, weight: np.ndarray | None, seen: np.ndarray, last: np.ndarray, out: np.ndarray
) -> tuple[int, bool, int]:
    """Enter targets up to the next one after which a look is due; see :func:`kernelstream.core.targets.take`."""
    taken: tuple[int, bool, int] = _core.take_targets(y, weight, seen, last, out)
    return taken
