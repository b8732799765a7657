"""Labels as passes take them: -1 and 1 where two classes share a score, else places among the sorted classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...state.nested import State


def sign_of_lone(classes: np.ndarray) -> float:
    """The side a lone class is put on until the second one appears."""
    return -1.0 if classes[0] in (0, -1) else 1.0


def encoded(state: State, y: np.ndarray, loss: Any) -> np.ndarray:
    """Codes of labels y (n,), all of them classes of the state, for a loss; of rows of weight 0 any number."""
    classes = state["classes"]
    codes = np.minimum(np.searchsorted(classes, y), max(len(classes) - 1, 0)).astype(np.float64)
    if state["n_outputs"] > 1 or loss.kind == "multiclass":
        return codes
    return np.full(len(y), sign_of_lone(classes)) if len(classes) == 1 else 2.0 * codes - 1.0


def decoded(state: State, codes: np.ndarray, loss: Any) -> np.ndarray:
    """Labels of codes (n,), which are others when a class appears."""
    classes = state["classes"]
    places = codes if state["n_outputs"] > 1 or loss.kind == "multiclass" else (codes > 0) & (len(classes) > 1)
    return classes[places.astype(np.intp)]
