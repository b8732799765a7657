"""Rows that a state keeps for later, with targets and weights: ``warm_X``, ``warm_y``, ``warm_weight``, …"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import Rows, concat, drop, pack, padded, unpack
from ...state.nested import State
from ...state.schema import POSITIVE, Anything, Array, Count, Schema, check, length


def add(prefix: str, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> int:
    """Keep rows of positive weight in addition to those kept already; returns how many were added."""
    weight = np.ones(len(y)) if weight is None else weight
    if not weight.all():
        counted = weight > 0
        X, y, weight = X[counted], y[counted], weight[counted]
    added = len(y)
    if added:
        before = unpack(f"{prefix}_X", state)
        if before is not None:
            X = concat([before, X])
            y = np.concatenate([state[f"{prefix}_y"], y])
            weight = np.concatenate([state[f"{prefix}_weight"], weight])
        drop(f"{prefix}_X", state)
        state |= pack(f"{prefix}_X", X) | {f"{prefix}_y": np.array(y), f"{prefix}_weight": np.array(weight)}
    return added


def take(prefix: str, state: State) -> tuple[Any, Any, Any]:
    """Rows, targets and weights, which are removed from the state; None if there are none."""
    rows = unpack(f"{prefix}_X", state)
    drop(f"{prefix}_X", state)
    return rows, state.pop(f"{prefix}_y", None), state.pop(f"{prefix}_weight", None)


def schema(prefix: str, state: State, n: int) -> Schema:
    """What n such rows may be."""
    own = _targets(f"{prefix}_y", state, n) | {f"{prefix}_weight": Array((n,), low=POSITIVE)}
    return own | packed(f"{prefix}_X", state, n)


def packed(prefix: str, state: State, n: int) -> Schema:
    """Rows in a state (see ``rows.pack``), n of them; sparse ones with sorted columns, none of them twice.

    Their cells are finite, or gaps where the model fills these.
    """
    d, dtype, gaps = state["n_features"], state["dtype"], "x_usual" in state
    if prefix in state:
        return {prefix: Array((n, d), dtype, gaps=gaps)}
    size, types = length(state, f"{prefix}_data"), ("int32", "int64")
    parts: Schema = {
        f"{prefix}_data": Array((size,), dtype, gaps=gaps),
        f"{prefix}_indices": Array((size,), types, low=0, high=d - 1),
        f"{prefix}_indptr": Array((n + 1,), types, low=0, high=size, rising=True),
        f"{prefix}_width": Count(d, d),
    }
    check({name: state[name] for name in parts if name in state}, parts)
    indptr = state[f"{prefix}_indptr"]
    rows: Any = unpack(prefix, state)
    if indptr[0] != 0 or indptr[-1] != size or not rows.has_canonical_format:
        raise ValueError(f"state_[{prefix + '_indptr'!r}] and the columns do not make sparse rows")
    return parts


def _targets(name: str, state: State, n: int) -> Schema:
    """Targets of n rows that are kept: labels among the classes, or numbers."""
    value: Any = state.get(name)
    if "classes" not in state:
        outputs = state["n_outputs"]
        return {name: Array((n,) if outputs == 1 else (n, outputs))}
    labels = isinstance(value, np.ndarray) and value.shape == (n,) and value.dtype.kind in "biufUS"
    if not labels or not np.isin(value, state["classes"]).all():
        raise ValueError(f"state_[{name!r}] must be {n} labels among the classes")
    return {name: Anything()}


def widen(name: str, state: State, d: int) -> None:
    """Pad rows that are kept in a state, if there are any, with columns of zeros up to width d."""
    rows = unpack(name, state)
    if rows is not None:
        drop(name, state)
        state |= pack(name, padded(rows, d))
