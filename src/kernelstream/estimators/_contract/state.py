"""What is true of the states of all families."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import dense, host
from ...state.nested import State
from ...state.schema import SEEDS, Array, Count, Schema, Text
from .learner import Learner

OUTPUTS = 10**6  # most targets or classes
COMMON: Schema = {  # entries that every state has
    "n_features": Count(1),
    "dtype": Text(("float32", "float64")),
    "seed": Count(0, SEEDS),
    "t": Count(),
    "n_outputs": Count(1, OUTPUTS),
    "warm_rows": Count(),
    "warm_count": Count(),
}
SCALE = (1e-6, 1e6)  # range of the factor that weights have in common; outside of it, it is multiplied into them


def is_trained(state: State) -> bool:
    """Whether there are weights."""
    return not state["warm_rows"] or state["warm_count"] > 0


def scales(state: State) -> Array:
    """The factor that the weights of each output have in common."""
    return Array((state["n_outputs"],), low=SCALE[0], high=SCALE[1])


def centres(learner: Learner, outputs: int = 1) -> Schema:
    """Count and running mean of the targets, where a regressor learns the differences from it."""
    return {"center": Array((2,) if outputs == 1 else (2, outputs))} if learner.parameters.get("center") else {}


def blank(schema: Schema) -> State:
    """Entries of an untrained model: zeros in the shapes and types that a schema says; of its other entries none."""
    return {name: np.zeros(entry.shape, entry.dtype) for name, entry in schema.items() if isinstance(entry, Array)}


def scaled_rows(ops: Any, X: Any, state: State) -> np.ndarray:
    """Rows of any kind, (n, d), scaled by the moments of the columns, in the type of the model."""
    X = dense(host(X))
    if "x_usual" in state:
        X = ops.cleaned(X, state["x_usual"])
    return ops.scaled(X, state).astype(state["dtype"])
