"""Functions of a whole state: checks of its entries, and widening."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import engine as engines
from ...core import corrupt
from ...core.ranges import COLUMNS
from ...core.targets import ABOVE, BELOW, BLOCK, HIGH, LOW, PLACE, SIGNED, no_targets
from ...rows import dense, host, padded
from ...state.nested import State
from ...state.schema import SEEDS, Anything, Array, Count, Number, Schema, Text, check, length
from . import kept, link, weights
from .codes import outputs_of
from .learner import Learner, solves
from .scaling import fills_gaps, scales_columns

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


def check_model(est: Any, trained: bool | None = None) -> None:
    """Raise ValueError when the state (of a file, say) does not fit the parameters, or itself.

    Only compares entries: nothing is computed or drawn. ``trained`` says whether there are weights; None finds out.
    """
    est._check_parameters()
    if hasattr(type(est), "classes_"):
        est._check_class_weight()
    check_entries(est._learner, est._state, trained, partial(_moments, est))
    engines.get(est.engine if engines.usable(est.engine) else "auto")  # raises for an unknown engine


def check_entries(
    learner: Learner, state: State, trained: bool | None = None, further: Callable[[State], Schema] = lambda state: {}
) -> None:
    """Raise ValueError when a state does not fit a learner, or itself; ``further`` tells what else there may be."""
    check({name: value for name, value in state.items() if name in COMMON}, COMMON)
    trained = is_trained(state) if trained is None else trained
    schema = COMMON | further(state) | _classes(learner, state) | _targets(learner, state) | _kept(state)
    if learner.relative_weights:
        schema |= weights.schema(state)
    check(state, schema | learner.schema(state, trained))
    learner.verify(state)


def is_trained(state: State) -> bool:
    """Whether there are weights."""
    return not state["warm_rows"] or state["warm_count"] > 0


def scales(state: State) -> Array:
    """The factor that the weights of each output have in common."""
    return Array((state["n_outputs"],), low=SCALE[0], high=SCALE[1])


def centres(learner: Learner, outputs: int = 1) -> Schema:
    """Count and running mean of the targets, where a regressor learns the differences from it."""
    return {"center": Array((2,) if outputs == 1 else (2, outputs))} if learner.parameters.get("center") else {}


def no_centres(learner: Learner, outputs: int = 1) -> State:
    """The same before the first row."""
    return {"center": np.zeros((2,) if outputs == 1 else (2, outputs))} if centres(learner) else {}


def _targets(learner: Learner, state: State) -> Schema:
    """The range of a regressor's targets so far, unless all rows come at once."""
    if not learner.regression or solves(learner):
        return {}
    schema: Schema = {name: Array(value.shape) for name, value in no_targets(state["n_outputs"]).items()}
    check({name: state[name] for name in schema if name in state}, schema)
    seen = state["target_range"]
    upside_down = (seen[LOW] > seen[HIGH]).any() or (seen[BELOW] > seen[ABOVE]).any()
    if np.delete(seen, SIGNED, axis=0).min() < 0 or upside_down or seen[PLACE].max() >= BLOCK:
        raise ValueError("state_['target_range'] must be counts and ranges of the targets")
    return schema


def scaled_rows(ops: Any, X: Any, state: State) -> np.ndarray:
    """Rows of any kind, (n, d), scaled by the moments of the columns, in the type of the model."""
    X = dense(host(X))
    if "x_usual" in state:
        X = ops.cleaned(X, state["x_usual"])
    return ops.scaled(X, state).astype(state["dtype"])


def _moments(est: Any, state: State) -> Schema:
    """Running mean and deviation of the columns."""
    if not (scales_columns(state) if est._scaling() is None else est._scaling()):
        return {}
    d = state["n_features"]
    schema: Schema = {name: Array((d,)) for name in COLUMNS}
    counts: Schema = {name: Array((d,), low=0.0) for name in ("x_m2", "x_doubt", "x_since", "x_unit")}
    if fills_gaps(est):
        places = min(max(length(state, "x_recent"), 1), corrupt.PLACES)
        schema |= {
            "x_usual": Array((7, d), low=-corrupt.NONE, high=corrupt.NONE),
            "x_recent": Array((places, d), low=-corrupt.NONE, high=corrupt.NONE),
        }
    return schema | counts | {"x_tailed": Array((d,), low=0.0, high=1.0), "x_count": Number(0.0)}


def _classes(learner: Learner, state: State) -> Schema:
    """The labels of a classifier, and how many outputs they make."""
    outputs = state["n_outputs"]
    kind: Any = learner.context.kind
    if not hasattr(kind, "classes_"):
        if outputs > 1 and not kind._several_targets:
            raise ValueError(f"{kind.__name__} has one output, not {outputs}")
        return {}
    classes: Any = state.get("classes")
    labels = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUS"
    if not labels or not (classes == classes).all() or not (classes[1:] > classes[:-1]).all():
        raise ValueError("state_['classes'] must be a sorted array of different labels")
    if outputs != outputs_of(learner, len(classes)):
        raise ValueError(f"{outputs} outputs do not match {len(classes)} classes")
    own: Schema = {
        "classes": Anything(),
        "class_counts": Array(classes.shape, low=0.0),
        "classes_fixed": Count(0, 1),
    }
    return own | link.schema(state)


def _kept(state: State) -> Schema:
    """The rows kept during the warm-up."""
    n, most = state["warm_count"], state["warm_rows"]
    if n and n >= most:
        raise ValueError(f"{n} rows are kept until there are {most}")
    if not n and "warm_y" not in state:
        return {}
    return kept.schema("warm", state, n)


def widen_rows(state: State, d: int) -> None:
    """Entries that every family may have, for rows of width d: the moments of the columns and the rows kept."""
    for name in COLUMNS:
        if name in state:
            state[name] = padded(state[name], d)  # as of a column of zeros
    if "x_usual" in state:
        new = corrupt.nothing_usual(d - state["x_usual"].shape[1])
        new[[corrupt.LOW, corrupt.HIGH]] = 0.0
        state["x_usual"] = np.concatenate([state["x_usual"], new], axis=1)
        state["x_recent"] = padded(state["x_recent"], d)
    kept.widen("warm_X", state, d)
    state["n_features"] = d
