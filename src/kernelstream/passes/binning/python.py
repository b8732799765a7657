"""Solvers on random binning features: the readable specification.

The functions have twins of the same names in :mod:`.native`; only the twins use ``threads``. Cells and their matrix
are explained in :mod:`kernelstream.core.cells_python`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.cells_python import bucket_cells as bucket_cells
from ...core.cells_python import cell_hashes as cell_hashes
from ...core.cells_python import cell_table as cell_table
from ...core.cells_python import cells_times as cells_times
from ...core.cells_python import cells_transposed_times as cells_transposed_times
from ...core.cells_python import find_cells as find_cells
from ...core.cells_python import number_cells as number_cells
from ...core.cells_python import order_of_cells as order_of_cells
from ...losses import Loss


# ---------------------------------------------------------------- conjugate gradients, arrays (D, C)
def cg_dots(P: np.ndarray, Q: np.ndarray, threads: int = 1) -> np.ndarray:
    """``P'Q`` and ``P'P`` of every column, (2, C)."""
    return np.array([(P * Q).sum(axis=0, dtype=np.float64), (P * P).sum(axis=0, dtype=np.float64)])


def cg_step(step: np.ndarray, lam: float, arrays: dict[str, np.ndarray], threads: int = 1) -> np.ndarray:
    """``X += step P`` and ``R -= step (Q + lam P)`` in place; ``R'M R`` of every column, (C,)."""
    P, Q, M, X, R = (arrays[name] for name in "PQMXR")
    X += step * P
    R -= step * (Q + R.dtype.type(lam) * P)
    return (R * (M * R)).sum(axis=0, dtype=np.float64)


def cg_turn(turn: np.ndarray, M: np.ndarray, R: np.ndarray, P: np.ndarray, threads: int = 1) -> None:
    """``P = M R + turn P`` in place."""
    P *= turn
    P += M * R


# ---------------------------------------------------------------- coordinate descent
class Lasso(NamedTuple):
    """``sum_i a_i l(y_i, f_i) + lam |w|_1``."""

    y: np.ndarray  # (n,)
    weight: np.ndarray | None  # (n,), the factors a_i
    loss: Loss
    lam: float


Lists = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, first, starts


def cell_lists(cells: np.ndarray, starts: np.ndarray, threads: int = 1) -> Lists:
    """Rows of each grid sorted by cell, (R, n); where each cell begins among them, (D,); and ``starts``."""
    rows = np.argsort(cells, axis=1, kind="stable").astype(np.int32)
    first = np.empty(starts[-1], np.int32)
    for r, cell in enumerate(cells):
        counts = np.bincount(cell, minlength=starts[r + 1] - starts[r])
        first[starts[r] : starts[r + 1]] = np.cumsum(counts) - counts
    return rows, first, starts


def sweep_cells(
    lists: Lists, order: np.ndarray, lasso: Lasso, active: bool, f: np.ndarray, w: np.ndarray, threads: int = 1
) -> tuple[float, float]:
    r"""One pass of coordinate descent; w and ``f = Z w`` change in place.

    The cells of one grid have no row in common, so they may move in any order, or at once, with the same result.

    Parameters
    ----------
    lists
        From :func:`cell_lists`.
    order : (R,)
        The order of the grids.
    active : bool
        Visit only cells whose weight is not zero.

    Returns
    -------
    violation : float
        Largest distance of a derivative from where it must be at the minimum, each measured when its cell was visited.
    moved : float
        Largest change of a weight, times the root of its curvature.
    """
    (rows, first, starts), (y, weight, loss, lam) = lists, lasso
    n, z = rows.shape[1], 1.0 / np.sqrt(len(rows))
    violation = moved = 0.0
    for r in order:
        ends = np.append(first[starts[r] + 1 : starts[r + 1]], n)
        for j, end in zip(range(starts[r], starts[r + 1]), ends):
            if active and w[j] == 0.0:
                continue
            mine = rows[r, first[j] : end]
            a = 1.0 if weight is None else weight[mine]
            g = z * np.sum(a * loss.gradient(y[mine], f[mine]))
            H = max(z * z * np.sum(a * loss.curvature(y[mine], f[mine])), 1e-12)
            violation = max(violation, _violation(w[j], g, lam))
            d = _soft_step(w[j], g, H, lam)
            if d == 0.0:
                continue
            if loss.name != "squared":
                d = _halved(loss, y[mine], f[mine], a, z, w[j], g, d, lam)
            w[j] += d
            f[mine] += d * z
            moved = max(moved, abs(d) * np.sqrt(H))
    return violation, moved


def _violation(w: float, g: float, lam: float) -> float:
    """How far a weight is from its minimum, with derivative g of the loss."""
    return max(0.0, abs(g) - lam) if w == 0 else abs(g + np.sign(w) * lam)


def _soft_step(w: float, g: float, H: float, lam: float) -> float:
    """Minimum d of ``g d + H d^2/2 + lam |w + d|``."""
    if g + lam <= H * w:
        return -(g + lam) / H
    return -(g - lam) / H if g - lam >= H * w else -w


def _halved(loss: Loss, y: Any, f: Any, a: Any, z: float, w: float, g: float, d: float, lam: float) -> float:
    """The step halved until the objective falls by 1 % of what its slope promises; 0 after 30 halvings."""
    promised = g * d + lam * (abs(w + d) - abs(w))
    before = loss.value(y, f)
    for _ in range(31):
        change = lam * (abs(w + d) - abs(w)) + np.sum(a * (loss.value(y, f + d * z) - before))
        if change <= 0.01 * promised:
            return d
        d, promised = d / 2, promised / 2
    return 0.0


def sweep_columns(
    Z: np.ndarray, squares: np.ndarray, order: np.ndarray, lasso: Lasso, f: np.ndarray, w: np.ndarray
) -> tuple[float, float]:
    """The same for dense features ``Z'`` (P, n); ``squares = sum_i a_i z_ij^2`` bound the curvature."""
    violation = moved = 0.0
    y, weight, loss, lam = lasso
    a = 1.0 if weight is None else weight
    for j in order:
        g = float(np.sum(a * loss.gradient(y, f) * Z[j]))
        H = max(loss.smoothness * squares[j], 1e-12)
        violation = max(violation, _violation(w[j], g, lam))
        d = _soft_step(w[j], g, H, lam)
        if d != 0.0:
            w[j] += d
            f += d * Z[j]
            moved = max(moved, abs(d) * np.sqrt(H))
    return violation, moved
