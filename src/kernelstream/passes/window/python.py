r"""Smoothing over the last rows (Nadaraya and Watson, 1964, with the width of the k-th neighbour).

.. math:: \hat y(x) = \frac{\sum_i w_i y_i}{\sum_i w_i}, \qquad w_i = v_i \exp(-\|x - x_i\|^2 / h^2)

over the rows of the window within 2 h, h being the distance to the k-th nearest and v the rows' weights. Labels: the
log-odds of the sums of weights of each class, with a little added to each. The compiled twin is cpp/passes/window.hpp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...state.nested import State

DOUBT = 0.3  # weight that each of two labels starts with
NUMBERS, TWO, MANY = range(3)  # what is smoothed


def window_pass(
    X: np.ndarray,
    y: np.ndarray | None,
    weight: np.ndarray | None,
    state: State,
    spec: tuple[int, int],
    outputs: int,
) -> np.ndarray:
    """Scores (n, C) before each row, which then joins the window; with y None nothing is learned.

    Parameters
    ----------
    X : (n, d) float64
    y : (n,) or None
        BlockTargets, or codes of labels.
    weight : (n,) or None
    state : dict
        ``window_rows`` (d, W), ``window_value`` (W,), ``window_weight`` (W,), ``window_numbers`` (3,): rows so far,
        mean of the targets, sum of the weights. Changed in place.
    spec : (kind, neighbours)
    outputs : int
        C.
    """
    rows, value, mass, numbers = (state[f"window_{name}"] for name in ("rows", "value", "weight", "numbers"))
    room = rows.shape[1]
    scores = np.empty((len(X), outputs))
    for t, x in enumerate(X):
        seen = int(numbers[0])
        m = min(seen, room)
        scores[t] = _forecast(x, rows[:, :m], value[:m], mass[:m], numbers, spec, outputs)
        importance = 1.0 if weight is None else float(weight[t])
        if y is None or importance == 0.0:
            continue
        place = seen % room
        rows[:, place], value[place], mass[place] = x, y[t], importance
        numbers[0] += 1
        numbers[2] += importance
        if spec[0] == NUMBERS:
            numbers[1] += importance / numbers[2] * (float(y[t]) - numbers[1])
    return scores


def _forecast(
    x: np.ndarray,
    rows: np.ndarray,
    value: np.ndarray,
    mass: np.ndarray,
    numbers: np.ndarray,
    spec: tuple[int, int],
    outputs: int,
) -> Any:
    kind, neighbours = spec
    m = rows.shape[1]
    if not m:
        return 0.0
    far = ((x[:, None] - rows) ** 2).sum(axis=0)
    k = min(neighbours, m)
    h2 = np.partition(far, k - 1)[k - 1] + 1e-12
    w = np.where(far <= 4 * h2, mass * np.exp(-far / h2), 0.0)
    if kind == NUMBERS:
        return w @ value / w.sum() if w.sum() > 0 else numbers[1]
    share = np.bincount(value.astype(np.intp), w, minlength=2 if kind == TWO else outputs)
    if kind == TWO:
        return np.log((share[1] + DOUBT) / (share[0] + DOUBT))
    f = np.log(share + 0.5 / outputs)
    return f - f.mean()
