"""The recursion with a diagonal A, compiled."""

from __future__ import annotations

import numpy as np

from .. import _core
from ..state.nested import State
from . import diagonal
from .rules import Rule


def diagonal_pass(Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None, state: State, rule: Rule) -> np.ndarray:
    """See :mod:`.diagonal`; a rule without a compiled version goes through its loop."""
    native = rule.native()
    if native is None:
        return diagonal.diagonal_pass(Z, y, weight, state, rule)
    F = np.empty(y.shape)
    _core.diagonal_pass(state, Z, y, weight, _core.Act(*native), F)
    return F
