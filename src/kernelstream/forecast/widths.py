r"""How far off forecasts may be, at each horizon and place in the season.

.. math:: \hat y_{t+h} \pm u_t\, s_h\, p_{t+h} \exp(a_h + b_t), \qquad
          a_h \leftarrow a_h + \frac{[\text{missed}] - \alpha}{10 + h},

with the unit u of a series, the usual error s at a horizon and p at the place in the season that is forecast; a follows
the misses of the intervals that were said once the truth has come, and b those of all forecasts from a place in the
season. Over n rows the share of misses differs from :math:`\alpha` by the change of a, times (10 + h)/n: adaptive
conformal inference, with steps that fall with h as rows are judged h rows late. Every coverage has its own a and b.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from ..state.nested import State
from ..trust.intervals import LEVELS

ENTRIES = ("sizes", "judged", "phases", "factors", "origins")
MEMORY, PHASE_MEMORY = 100.0, 30.0  # rows over which s is averaged, and seasons over which p is
FAR, FAR_PHASE = 3.0, 10.0  # times the usual error that one counts for in s and in p
FIRST = 3.0  # seasons that p = 1 stands for at the beginning
DELAY, ORIGIN = 10.0, 0.1  # steps: 1 / (DELAY + h) of a, and of b, in sum over the horizons
WIDEST = 5.0  # largest |a| and |b|


def start(horizon: int, targets: int, season: int) -> State:
    """Normal errors, of one size, and as wide as that of the first; ``judged`` are the rows that count in ``sizes``."""
    usual = np.log(special.ndtri(0.5 + 0.5 * np.array(LEVELS)) * np.sqrt(np.pi / 2))  # by the mean error
    each, places = np.zeros((horizon, targets)), np.zeros((season, targets))
    levels = [usual[:, None, None] + each, 0 * usual[:, None, None] + places]
    return dict(zip(ENTRIES, (each, each.copy(), 1.0 + places, *levels), strict=True))


def halves(state: State, phases: np.ndarray, origin: int) -> np.ndarray:
    """Half-widths (L, H, m), in units of a series, at places (H,) in the season, from the place ``origin``."""
    factors = np.exp(state["factors"] + state["origins"][:, origin][:, None])
    return np.maximum.accumulate(state["sizes"] * state["phases"][phases] * factors, axis=0)


def judge(
    state: State, errors: np.ndarray, said: np.ndarray, counted: np.ndarray, phase: int, origins: np.ndarray, K: int
) -> None:
    """The truth has come: errors (H, m), in units, of what was said of it from the places ``origins`` (H,).

    Some of them count, and ``said`` (L, H, m) are the half-widths. The state of K series has new arrays then.
    """
    state |= {name: state[name].copy() for name in ENTRIES}
    usual, place = state["sizes"], state["phases"][phase]
    misses = (counted & (said > 0)) * ((errors > said) - 1.0 + np.array(LEVELS)[:, None, None])
    state["factors"] += misses / (DELAY + K * np.arange(1.0, len(errors) + 1))[:, None]
    for h, origin in enumerate(origins):
        state["origins"][:, origin] += ORIGIN / (len(errors) * K) * misses[:, h]
    for name in ("factors", "origins"):
        np.clip(state[name], -WIDEST, WIDEST, out=state[name])
    ratio = np.divide(errors, usual, out=np.ones_like(errors), where=usual > 0)
    now = np.minimum(errors / np.where(place > 0, place, 1.0), np.where(usual > 0, FAR * usual, np.inf))
    state["judged"] += counted
    rows = np.clip(state["judged"], 1.0, MEMORY * K)
    state["sizes"] = np.where(counted, usual + (now - usual) / rows, usual)
    mean = (counted * np.minimum(ratio, FAR_PHASE)).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    if (season := len(state["phases"])) > 1:
        visits = np.minimum(FIRST + state["judged"][0] / season, PHASE_MEMORY * K)
        state["phases"][phase] += counted.any(axis=0) * (mean - place) / visits
