r"""The level of forecasts of a table, where labels are rare.

Members with a short memory raise all forecasts after a rare label and lower them again until the next one. On average
this is right for the next row, but not for a table, whose rows may be of any time. Scores f of a table are therefore
shifted by b towards a level estimated from kept rows. These have scores :math:`f_i` now and had labels :math:`y_i`; the
shift :math:`\hat b` makes their mean probability the share T of the label,

.. math:: \frac1n \sum_i \sigma(f_i + \hat b) = T, \quad T = a \bar y + (1 - a) r

with r the recent share among all rows. Both are estimates of the mean of :math:`p_i = \sigma(f_i + \hat b)`: with v the
mean of :math:`p_i (1 - p_i)` and V the variance of :math:`p_i`, the labels of the kept rows err by :math:`s_1 = v/n`
(in variance), those of m rows by :math:`s_2 = V (1/n - 1/m) + v/m`, and :math:`a = s_2/(s_1 + s_2)`. The level now is
known from about 150 rows, which is an error of :math:`\tau = 1/(150 v)`; the level of the kept rows may have changed
since, by 0.3 in deviation. So

.. math:: b = \hat b\, \frac{\tau}{\tau + 0.3^2 + s_1 s_2/(s_1 + s_2)/v^2}

is the mean of the two levels, weighted by their precisions: nearly all of :math:`\hat b` for one label in a hundred, a
quarter of it for labels that are equally frequent. If the kept rows tell too little, no row is shifted.
"""

from __future__ import annotations

import numpy as np

from ...losses import Logistic
from ...state.nested import State
from .._contract import weights

KNOWN = 150  # rows from which the members know the level now
DRIFT = 0.3  # deviation by which the level of the kept rows may have changed
MOST_NOISE = 0.5  # of the variance of the level now
FIRST_ROWS = 1000  # rows before there is a shift
ASKED_OF = 2  # one in ASKED_OF kept rows is scored
LEAST_VARIATION = 2.0  # n v: with less, the rows that were kept do not know the level

_sigmoid = Logistic().probability


def known(state: State) -> tuple[np.ndarray, np.ndarray, float, float] | None:
    """Rows kept, whether each had the second label, (n,), the share of that label lately, and among how many rows.

    None where they tell nothing: of few rows, of more labels than two, of weighted rows, and after ``fit``.
    """
    if state["t"] < FIRST_ROWS or len(state["classes"]) != 2 or weights.SUMS in state or "batch" in state:
        return None
    kept = next((part for part in state["members"] if "sample_down" in part), None)
    if kept is None:
        return None
    places = np.arange(0, min(kept["t"], len(kept["sample_rows"])), ASKED_OF)
    down = kept["sample_down"][places, 0]  # y - p of the row when it came; 0 where the labels were others
    places, labels = places[down != 0], down[down != 0] > 0
    if not len(places):
        return None
    m, ones = state["o0"]["label_counts"]
    return kept["sample_rows"][places].astype(state["dtype"]), labels, ones / m, m


def towards(f: np.ndarray, y: np.ndarray, share: float, m: float) -> float:
    """The shift b of the formula, from scores and labels (n,) of kept rows and the share of the label in m rows."""
    n, b = len(f), 0.0
    for _ in range(2):  # the second time with the spread at the level that was found
        p = _sigmoid(f + b)
        v = float(np.mean(p * (1 - p)))
        if n * v < LEAST_VARIATION:
            return 0.0
        s1, s2 = v / n, float(p.var()) * max(1 / n - 1 / m, 0.0) + v / m
        a = s2 / (s1 + s2)
        b = _matching(f, a * float(y.mean()) + (1 - a) * share)
    p = _sigmoid(f + b)
    v = float(np.mean(p * (1 - p)))
    now = min(1 / (KNOWN * v), MOST_NOISE)
    return b * now / (now + DRIFT**2 + s1 * s2 / (s1 + s2) / v**2)


def _matching(f: np.ndarray, mean: float) -> float:
    """The b of -4 to 4 at which the mean of sigmoid(f + b) is the given one, by bisection."""
    low, high = -4.0, 4.0
    for _ in range(40):
        b = 0.5 * (low + high)
        low, high = (low, b) if _sigmoid(f + b).mean() > mean else (b, high)
    return 0.5 * (low + high)
