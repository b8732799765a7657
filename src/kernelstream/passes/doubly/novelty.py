r"""Novelty detection and log density ratios: the two recursions whose rows have no target.

Novelty, for a share nu of rows below the threshold tau::

    min over f, tau:  E[max(0, tau - f(x))] + nu/2 ||f||^2 - nu tau
    alpha_t = gamma_t <1[f(x) < tau] phi_t(x)>,   tau += gamma_t <nu - 1[f(x) < tau]>,   lam = nu

Density ratio, for rows x of density q and z of density p::

    min over f:  E_p[exp f(z)] - E_q[f(x)] + lam/2 ||f||^2,   whose minimum without lam is f = log q/p

Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014, section 4
(where the names p and q of the two densities are interchanged).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ...losses import Loss
from ...rows import Rows
from ...state.nested import State
from .descent import Descent


def threshold(state: State) -> float:
    """The threshold tau in use: its average, if there is one."""
    return float(state["tau_mean"] if "tau_mean" in state else state.get("tau", 0.0))


@dataclass
class NoveltyDescent(Descent):
    """Adds the threshold: ``tau``, and its average ``tau_mean`` if ``average``. The share nu is ``lam``."""

    def level(self, state: State) -> float:
        return super().level(state) - threshold(state)

    def reset(self, state: State, n_outputs: int) -> None:
        super().reset(state, n_outputs)
        state["tau"] = 0.0
        if self.average:
            state["tau_mean"] = 0.0

    def learn_batch(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, F: np.ndarray) -> Any:
        weight = np.ones(len(F)) if weight is None else weight
        below = state["tau"] > F  # (b, 1)
        done = self.descend(state, X, -weight[:, None] * below, F)
        t = state["t"]
        state["tau"] += self.rate(t) * float(np.mean(weight * (self.lam - below[:, 0])))
        if self.average:
            state["tau_mean"] += self.share(t) * (state["tau"] - state["tau_mean"])
        return done


class RatioLoss(Loss):
    r"""``2 exp(f)`` for rows of p (y = -1), ``-2 f`` for rows of q (y = +1).

    With as many rows of one kind as of the other its mean is :math:`E_p[\exp f] - E_q[f]`. Above ``LIMIT`` the
    exponential is continued by its tangent, so that no score overflows and no single row takes an unbounded step.
    """

    name = "density_ratio"
    kind = "binary"
    bound = None

    LIMIT = 10.0

    def value(self, y: Any, f: Any) -> Any:
        """The loss."""
        capped = np.minimum(f, self.LIMIT)
        return 2.0 * np.where(np.asarray(y) > 0, -np.asarray(f), np.exp(capped) * (1.0 + f - capped))

    def probability(self, f: Any) -> Any:
        """Of q against p, where a row comes from either as often."""
        return expit(f)

    def gradient(self, y: Any, f: Any) -> Any:
        """Its derivative."""
        return 2.0 * np.where(np.asarray(y) > 0, -1.0, np.exp(np.minimum(f, self.LIMIT)))
