r"""Learning on cells: ``f_c(x) = b_c + sum_r w[cell_r(x), c]``, AdaGrad with a separate step for every cell.

.. math:: G \leftarrow \mu G + g^2, \qquad w \leftarrow w - \eta\, u\, g / \sqrt{(R + 1)(G + u^2)}

g is the derivative of the loss by the score, R the number of grids, u the unit of the target: 1 for labels, the running
deviation for numbers, whose residuals count for at most ``REACH`` deviations. From the first number, which may be far
from 0, only the mean is learned. The cells of a row are found by :func:`by_levels` (grids over few columns, edges at
quantiles) or :func:`by_hashing` (grids over many columns, cells in one table by hashing). The compiled twin is
cpp/passes/cell_tables.hpp.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.overflow import require_finite
from ...state.nested import State

REACH = 5.0  # deviations of the target up to which a residual counts, after
SETTLED = 10  # rows
OUTSIDE = 20.0  # most deviations that a target counts for in the mean and the deviation, after
KNOWN = 30  # rows
TINY = 1e-12
LARGEST = 3e38  # that a table can hold
KEPT = 32  # numbers in which the derivatives of a row are kept
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def deviation(target: np.ndarray) -> float:
    """Deviation of the targets so far, from (rows, mean, sum of squared deviations)."""
    return math.sqrt(target[2] / target[0]) if target[0] > 1 else 1.0


def follow(target: np.ndarray, y: float) -> None:
    """Update mean and deviation of the target, (3,); a single outlier does not move them far."""
    if target[0] >= KNOWN:
        most = OUTSIDE * deviation(target)
        if most > 0:
            y = float(np.clip(y, target[1] - most, target[1] + most))
    delta = y - target[1]
    target[0] += 1
    target[1] += delta / target[0]
    target[2] += delta * (y - target[1])


def gradient(regression: bool, f: np.ndarray, y: float, target: np.ndarray) -> np.ndarray:
    """Derivative of the loss by the scores f (C,): squared, logistic (y = ±1) or softmax (y a class)."""
    if regression:
        most = REACH * deviation(target) if target[0] > SETTLED else math.inf if target[0] else 0.0
        return np.clip(f - y, -most, most)
    if len(f) == 1:
        with np.errstate(over="ignore"):
            return -y / (1.0 + np.exp(y * f))
    p = np.exp(f - f.max())
    p /= p.sum()
    p[int(y)] -= 1.0
    return p


def sketched(v: np.ndarray) -> np.ndarray:
    """A vector (C,) of more than ``KEPT`` numbers as ``KEPT`` signed sums, which preserve its length on average.

    Number c is added to sum ``c mod KEPT``, with the sign of the leading bit of ``c GOLDEN``; fewer stay as they are.
    """
    if len(v) <= KEPT:
        return v
    c = np.arange(len(v), dtype=np.uint64)
    return np.bincount(c % np.uint64(KEPT), np.where(c * GOLDEN >> np.uint64(63), -v, v))


def cells_pass(
    index: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, spec: tuple[bool, float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Learn rows in order; returns scores before each (n, C) and :func:`sketched` what would lower the loss there.

    Parameters
    ----------
    index : (n, R) int32
        The cells of the rows.
    y : (n,) float64
    weight : (n,) or None
    state : dict
        ``tables`` (cells, 2, at least C) float32, weights and sums of squares; ``bias`` (2, C); ``target`` (3,);
        ``use`` (R,), how much each grid has lowered the loss, to first order. Changed in place.
    spec : (regression, eta, fade)
    """
    regression, eta, fade = spec
    tables, bias, target, use = (state[name] for name in ("tables", "bias", "target", "use"))
    C = bias.shape[1]
    scores, downhill = np.empty((len(index), C)), np.zeros((len(index), min(C, KEPT)))
    for t, cells in enumerate(index):
        w, G = tables[cells, 0, :C].astype(float), tables[cells, 1, :C].astype(float)
        f = bias[0] + w.sum(axis=0)
        mean = target[1] if regression else 0.0
        scores[t] = f + mean
        importance = 1.0 if weight is None else float(weight[t])
        if importance == 0.0:
            continue
        g = gradient(regression, f, float(y[t]) - mean, target)
        downhill[t] = sketched(-g)
        g = g * importance
        unit = deviation(target) if regression else 1.0
        step, floor = eta * unit / math.sqrt(len(cells) + 1.0), unit * unit + TINY
        bias[1] = fade * bias[1] + g * g
        bias[0] -= step * g / np.sqrt(bias[1] + floor)
        use -= w @ g
        G = fade * G + g * g
        tables[cells, 0, :C] = np.clip(w - step * g / np.sqrt(G + floor), -LARGEST, LARGEST)
        tables[cells, 1, :C] = np.minimum(G, LARGEST)
        if regression:
            follow(target, float(y[t]))
    require_finite(scores, bias, target)
    return scores, downhill


def cells_score(index: np.ndarray, state: State, regression: bool) -> np.ndarray:
    """Scores (n, C) of rows with these cells, (n, R)."""
    scores = state["bias"][0] + state["tables"][index, 0, : state["bias"].shape[1]].astype(float).sum(axis=1)
    return scores + state["target"][1] if regression else scores


def by_levels(
    X: np.ndarray, levels: np.ndarray, n_levels: np.ndarray, columns: np.ndarray, maps: np.ndarray, cells: int
) -> np.ndarray:
    """Cells (n, R) of rows in grids over few columns.

    A value becomes the number of the column's levels that are not above it, and ``maps`` says what that number adds to
    the number of the cell. Grid r begins at cell ``r * cells``.

    Parameters
    ----------
    X : (n, d) float64
    levels : (d, L)
        Ascending, of which the first ``n_levels[j]`` count.
    n_levels : (d,) int32
    columns : (R, K) int32
    maps : (R, K, L + 1) int32
    cells : int
    """
    codes = np.empty(X.shape, np.intp)
    for j, x in enumerate(X.T):
        codes[:, j] = np.searchsorted(levels[j, : n_levels[j]], x, side="right")
    out = np.tile(np.arange(len(columns)) * cells, (len(X), 1))
    for k in range(columns.shape[1]):
        out += maps[np.arange(len(columns)), k, codes[:, columns[:, k]]]
    return out.astype(np.int32)


def grid_maps(
    columns: np.ndarray, edges: np.ndarray, n_edges: np.ndarray, levels: np.ndarray, n_levels: np.ndarray
) -> np.ndarray:
    """What each code of a column adds to the number of a grid's cell, (R, K, L + 1) int32; see :func:`by_levels`.

    Parameters
    ----------
    columns : (R, K) int32
    edges : (R, K, L)
        Ascending, of which the first ``n_edges`` count.
    n_edges : (R, K) int32
        0 for a column that the grid does not cut.
    levels : (d, L)
    n_levels : (d,) int32
    """
    maps = np.zeros((*columns.shape, levels.shape[1] + 1), np.int32)
    for r in range(len(columns)):
        stride = 1
        for k, (j, size) in enumerate(zip(columns[r], n_edges[r], strict=True)):
            if size:
                bins = np.searchsorted(edges[r, k, :size], levels[j, : n_levels[j]], side="right")
                maps[r, k, 1 : len(bins) + 1] = bins * stride
                stride *= int(size) + 1
    return maps


def by_hashing(
    X: np.ndarray, columns: np.ndarray, offset: np.ndarray, density: np.ndarray, salt: np.ndarray, bits: int
) -> np.ndarray:
    """Cells (n, R) of rows in grids over many columns: the numbers of the bins, hashed into 2^bits cells.

    Parameters
    ----------
    X : (n, d) float64
    columns : (R, K) int32
        -1 for none.
    offset, density : (R, K)
        Bin of a value x: ``floor((x + offset) * density)``.
    salt : (R,) uint64
    bits : int
    """
    h = np.tile(salt, (len(X), 1))
    for k, j in enumerate(columns.T):
        bins = np.floor((X[:, j] + offset[:, k]) * density[:, k])
        number = np.clip(bins, -1e15, 1e15).astype(np.int64) + 12345
        mixed = (h ^ number.astype(np.uint64)) * GOLDEN
        h = np.where(j >= 0, mixed ^ (mixed >> np.uint64(31)), h)
    return ((h >> np.uint64(7)) & np.uint64((1 << bits) - 1)).astype(np.int32)


def cells_gains(index: np.ndarray, v: np.ndarray, cells: int) -> np.ndarray:
    """What grids would explain of vectors v (n, C), (R,): ``sum over cells (|sum v|^2 - V c) / (c + 2)``.

    c is the number of rows in the cell, V the mean of ``|v|^2``; ``index`` (n, R) is from :func:`by_levels`.
    """
    mean = float((v * v).sum() / max(len(v), 1))
    out = np.empty(index.shape[1])
    for r, cell in enumerate((index - np.arange(index.shape[1]) * cells).T):
        count = np.bincount(cell, minlength=cells)
        size = sum(np.bincount(cell, column, cells) ** 2 for column in v.T)
        out[r] = ((size - mean * count) / (count + 2.0))[count > 0].sum()
    return out
