r"""Quantiles of the targets of rows, around their forecasts, row by row; cpp/passes/quantiles.hpp is the compiled twin.

.. math:: Q_\tau(x) = f + s(x)\, q_\tau(f), \qquad s(x) = m \exp\Big(a(f) + \sum_j b_j(x_j)\Big)

f is the forecast, m the recent mean size of errors, and a, b and q are piecewise linear: a and q between knots at
quantiles of recent forecasts, b between five knots from -1.5 to 1.5 deviations of a column.

**The spread** s is that of a Laplace distribution, :math:`-\log p = \log s + |y - f|/s`, whose derivative with respect
to log s is 1 - u, where u = |y - f|/s. With the weights z of all knots at the row, the coefficients c of a and b take
normalised steps [1]_ of a length that falls with the rows t,

.. math:: c \leftarrow c + \max\left(\tfrac{100}{200 + t}, 0.005\right) (\min(u, 5) - 1)\, D z / z' D z,

where D is 1, but for the knots of the forecast, which have half as much of a step as all d columns together.

**The quantiles** q of the scaled errors follow the rows as in adaptive conformal inference [2]_: with weights
:math:`\varphi_k(f)` of the knots, which sum to one,

.. math:: q_{\tau k} \leftarrow q_{\tau k} + (0.05\, \varphi_k(f) + 0.02) \left(\tau - [y \le Q_\tau(x)]\right).

So their sum over K knots changes by :math:`(0.05 + 0.02 K) (\tau n - \#\{y \le Q_\tau\})` in n rows, whatever the rows
do, and each knot corrects the share of the rows whose forecasts are near it. Quantiles that cross are sorted [3]_. They
move with every row. For rows that are not the next of a stream, q is replaced by quantiles of the last 4,096 scaled
errors, each of which counts by :math:`\varphi_k(f)` and a little (:func:`settled`).

.. [1] Nagumo, Noda: A learning method for system identification, IEEE Transactions on Automatic Control 12 (1967).
.. [2] Gibbs, Candès: Adaptive conformal inference under distribution shift, NeurIPS 2021.
.. [3] Chernozhukov, Fernández-Val, Galichon: Quantile and probability curves without crossing, Econometrica 78 (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

KNOTS = 11  # of the forecast
RECENT = 4096  # rows whose forecasts and scaled errors are kept
SAMPLE = 128  # of them, the knots are drawn from,
FIRST_KNOTS, RENEWED = 16, 256  # rows before the first knots, which are drawn again when these double, then every 256
CELLS, REACH = 5, 1.5  # knots of a column, from -1.5 to 1.5 deviations
STEP, COMMON = 0.05, 0.02  # of the quantiles at the knots near by, and of those at all
SHARED = 30.0  # rows' weight at each knot that belongs to all rows alike
MEMORY = 300.0  # rows over which the size of errors is averaged
FAR = 10.0  # most times the mean error that an error counts for in this mean
CAP = 5.0  # most times the spread that one counts for in the spread
FIRST, EARLY, LEAST = 0.5, 200.0, 0.005  # lengths of the steps of the spread
WIDEST = 8.0  # largest |log s/m|
LARGEST = 1e6  # most times the spread that an error is


def start(first: np.ndarray, columns: int) -> dict[str, np.ndarray]:
    """A state that has learned nothing; ``first`` (L,) are the quantiles of u before there are any rows."""
    return {
        "size": np.zeros(2),
        "recent": np.zeros((2, RECENT)),
        "knots": np.zeros(KNOTS),
        "spread": np.zeros(KNOTS),
        "columns": np.zeros((columns, CELLS)),
        "quantiles": np.tile(first[:, None], KNOTS),
    }


def quantiles(
    state: dict[str, np.ndarray],
    forecast: np.ndarray,
    X: np.ndarray | None,
    y: np.ndarray | None,
    weight: np.ndarray | None,
    levels: np.ndarray,
    out: np.ndarray,
) -> None:
    """Quantiles of the target of each row; with targets, each row is then learned.

    Parameters
    ----------
    state : dict
        ``size`` (2,), the rows counted and their mean error; ``recent`` (2, R), forecasts and scaled errors of the last
        rows; ``knots`` (K,), quantiles of forecasts; ``spread`` (K,) and ``columns`` (d, C), a and b at their knots;
        ``quantiles`` (L, K), the q. Changed in place where there are targets.
    forecast : (n,) array
    X : (n, d) array or None
        Rows with columns of about unit deviation; None where d = 0.
    y, weight : (n,) array or None
        Rows of weight 0 are answered and skipped, others count alike.
    levels : (L,) array
        The tau, rising.
    out : (n, L) array
        Infinite before the first row, but for the median.
    """
    size, q, a, b = (state[name] for name in ("size", "quantiles", "spread", "columns"))
    for i, f in enumerate(forecast):
        k, part = _between(f, state["knots"])
        cell, parts = _in_columns(np.empty(0) if X is None else X[i])
        column = np.arange(len(b))[:, None]
        unit = size[1] * np.exp(np.clip(part @ a[k] + (parts * b[column, cell]).sum(), -WIDEST, WIDEST))
        values = q[:, k] @ part
        if size[0] > 0:
            out[i] = f + unit * np.sort(values)
        else:
            out[i] = np.where(levels < 0.5, -np.inf, np.where(levels > 0.5, np.inf, f))
        if y is None or (weight is not None and weight[i] == 0):
            continue
        error = float(y[i] - f)
        u = min(max(error / unit, -LARGEST), LARGEST) if unit > 0 else np.sign(error)
        if unit > 0:
            change = levels - (u <= values)
            q += COMMON * change[:, None]
            q[:, k] += STEP * part * change[:, None]
            own = max(1.0, len(b) / 2)
            step = max(FIRST * EARLY / (EARLY + size[0]), LEAST) * (min(abs(u), CAP) - 1.0)
            step /= own * (part @ part) + (parts**2).sum()
            a[k] += step * own * part
            b[column, cell] += step * parts
        _count(state, f, error, u)


def settled(state: dict[str, np.ndarray], levels: np.ndarray) -> np.ndarray:
    """Quantiles (L, K) of the scaled errors of the last rows, whose order means nothing.

    At each knot a row counts by its weight there and by 30/n; of W rows in sum, the quantile is the (W + 1) tau-th.
    """
    n = int(min(state["size"][0], RECENT))
    if n == 0:
        return state["quantiles"]
    forecast, u = state["recent"][:, :n]
    order = np.argsort(u, kind="stable")
    k, part = _between(forecast[order], state["knots"])
    weight = np.zeros((n, KNOTS))
    np.put_along_axis(weight, k, part, 1)
    total = np.cumsum(weight + SHARED / n, axis=0)
    places = [np.searchsorted(knot, levels * (knot[-1] + 1.0)) for knot in total.T]
    return u[order][np.minimum(places, n - 1)].T


def _between(f: Any, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two knots that numbers (...) lie between, and how much each of them counts, (..., 2) both."""
    k = np.clip(np.searchsorted(knots, f, side="right") - 1, 0, len(knots) - 2)
    width = knots[k + 1] - knots[k]
    part = np.clip((f - knots[k]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    part = np.where(f >= knots[k + 1], 1.0, part)
    return np.stack([k, k + 1], axis=-1), np.stack([1.0 - part, part], axis=-1)


def _in_columns(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for the columns of rows (..., d), (..., d, 2) both."""
    place = np.clip((np.asarray(x, np.float64) + REACH) * ((CELLS - 1) / (2 * REACH)), 0.0, CELLS - 1.0)
    cell = np.minimum(place.astype(np.intp), CELLS - 2)
    return np.stack([cell, cell + 1], axis=-1), np.stack([1.0 - (place - cell), place - cell], axis=-1)


def _count(state: dict[str, np.ndarray], f: float, error: float, u: float) -> None:
    """Enter a row into the mean error and the rows kept, and draw the knots again where it is time."""
    size, recent = state["size"], state["recent"]
    t = int(size[0])
    recent[:, t % RECENT] = f, u
    size[0] += 1.0
    counted = min(abs(error), FAR * size[1]) if size[1] > 0 else abs(error)
    size[1] += (counted - size[1]) / min(size[0], MEMORY)
    t += 1
    if t % RENEWED == 0 or (t < RENEWED and t >= FIRST_KNOTS and t & (t - 1) == 0):
        n = min(t, RECENT)
        known = np.sort(recent[0, : n : max(1, n // SAMPLE)])
        place = np.arange(KNOTS) * (len(known) - 1) / (KNOTS - 1)
        at = np.minimum(place.astype(np.intp), len(known) - 2)
        state["knots"][:] = known[at] + (place - at) * (known[at + 1] - known[at])
