"""The recursion with a diagonal A: the cost of a first-order step, with a separate step size for every feature."""

from __future__ import annotations

import numpy as np

from ..core.overflow import quiet, require_finite
from ..state.nested import State
from .rules import Rule


@quiet
def diagonal_pass(Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, rule: Rule) -> np.ndarray:
    """``s = sum z_i²/A_i``, ``w_i += tau z_i/A_i``, ``A_i += c z_i²``; returns the scores before each update, (n, k).

    Z (n, r), y (n, k), weight (n,) or None; ``A`` and ``w`` (k, r) of the state are updated in place. ``tau`` and ``c``
    as in :mod:`.rules`.
    """
    A, w = state["A"], state["w"]
    F = np.empty(y.shape)
    for i, z in enumerate(Z):
        for o in range(len(w)):
            s, f = float((z * z / A[o]).sum()), float(w[o] @ z)
            F[i, o] = f
            importance = 1.0 if weight is None else float(weight[i])
            if importance == 0.0:
                continue
            c, beta = rule.step(float(y[i, o]), f, s, importance)
            w[o] += (beta - c * f) / (1 + c * s) * z / A[o]
            A[o] += c * z * z
    require_finite(F, A, w)
    return F
