"""Functions of a state as a whole: is it consistent, and the same for wider rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine._ranges import scaled
from ..rows import MODERATE, concat, dense, drop, pack, unpack
from ._units import check_moderate

State = dict[str, Any]

COLUMNS = ("x_mean", "x_m2", "x_low", "x_high", "x_doubt")  # what is known of every column, for scaling

# Entries that every state has: least value.
_COUNTS = {"n_features": 1, "seed": 0, "t": 0, "n_outputs": 1, "warm_rows": 0, "warm_count": 0}


def check_state(state: State, shapes: dict[str, tuple[tuple[int, ...], str]]) -> None:
    """ValueError unless all entries have the type and shape that the others imply.

    Parameters
    ----------
    state : dict
    shapes : dict
        Shape and type of the entries that belong to the family of the estimator.
    """
    seeds = {name: 0 for name in state if name.endswith("seed")}
    for name, least in (_COUNTS | seeds).items():
        check_count(state, name, least)
    if state.get("dtype") not in ("float32", "float64"):
        raise ValueError(f"state_['dtype'] must be float32 or float64, got {state.get('dtype')!r}")
    _check_classes(state)
    _check_kept(state)
    d = int(state["n_features"])
    own = {name: ((d,), "float64") for name in COLUMNS if "x_count" in state}
    for name, (shape, dtype) in (own | shapes).items():
        value = state.get(name)
        if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != dtype:
            found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)
            raise ValueError(f"state_[{name!r}] must be an array of {dtype} {shape}, got {found}")
    for name, value in state.items():
        if value is None or (isinstance(value, np.ndarray) and value.dtype.kind not in "biufUS"):
            raise ValueError(f"state_[{name!r}] is neither an array of numbers or strings, nor a number, nor a string")
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
            raise ValueError(f"state_[{name!r}] holds NaN")


def check_tensor(est: Any, X: Any, reset: bool) -> None:
    """What scikit-learn's ``validate_data`` does, for rows that are a torch tensor and stay where they are."""
    name = type(est).__name__
    kind = str(X.dtype).rpartition(".")[2]
    if X.ndim != 2:
        raise ValueError(f"Expected 2D rows, got a tensor with {X.ndim} dimensions")
    if 0 in X.shape:
        raise ValueError(f"Found an empty tensor of rows with shape {tuple(X.shape)}")
    if kind not in ("float32", "float64") or (not reset and kind != est._state["dtype"]):
        wanted = "float32 or float64" if reset else est._state["dtype"]
        raise ValueError(f"{name} takes tensors of {wanted}, got {kind}: convert them with .to()")
    if not bool((X.abs() < 2.0 ** MODERATE[kind]).all()):
        if not bool(X.isfinite().all()):
            raise ValueError(f"Input X contains NaN or infinity, which {name} does not accept")
        check_moderate(X.detach().cpu().numpy(), kind, "X")
    if reset:
        est.n_features_in_ = X.shape[1]
        est.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != est.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {est.n_features_in_} features as input")


def scaled_rows(X: np.ndarray, state: State) -> np.ndarray:
    """Rows scaled by the moments of the columns, in the type of the model."""
    mean, m2, low, high, _ = (state[name] for name in COLUMNS)
    return scaled(X, state["x_count"], mean, m2, low, high).astype(state["dtype"])


def check_count(state: State, name: str, least: int = 0) -> None:
    """ValueError unless an entry is an integer that is not below ``least``."""
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"state_[{name!r}] must be an integer >= {least}, got {value!r}")


def _check_classes(state: State) -> None:
    if "classes" not in state:
        return
    classes, counts = state["classes"], state.get("class_counts")
    labels = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUS"
    if not labels or not np.array_equal(np.unique(classes), classes):
        raise ValueError("state_['classes'] must be a sorted array of different labels")
    if not isinstance(counts, np.ndarray) or counts.shape != classes.shape or counts.dtype != np.float64:
        raise ValueError("state_['class_counts'] must have one number for each class")
    check_count(state, "classes_fixed")
    outputs = state["n_outputs"]
    if outputs != max(len(classes), 1) and not (outputs == 1 and len(classes) <= 2):
        raise ValueError(f"{outputs} outputs do not go with {len(classes)} classes")


def _check_kept(state: State) -> None:
    """The rows kept during the warm-up."""
    n = state["warm_count"]
    if n > state["warm_rows"]:
        raise ValueError(f"{n} rows kept of at most {state['warm_rows']}")
    if not n:
        return
    kept = unpack("warm_X", state)
    if kept is None or kept.shape != (n, state["n_features"]) or str(kept.dtype) != state["dtype"]:
        raise ValueError("state_['warm_X'] does not hold the rows that were kept")
    if hasattr(kept, "check_format"):
        kept.check_format(full_check=True)
    for name in ("warm_y", "warm_weight"):
        value = state.get(name)
        if not isinstance(value, np.ndarray) or value.shape != (n,):
            raise ValueError(f"state_[{name!r}] must have {n} values")
    if "classes" in state:
        if not np.isin(state["warm_y"], state["classes"]).all():
            raise ValueError("state_['warm_y'] holds labels outside the classes")
    elif state["warm_y"].dtype != np.float64:
        raise ValueError(f"state_['warm_y'] must hold numbers, got {state['warm_y'].dtype}")
    if state["warm_weight"].dtype != np.float64:
        raise ValueError(f"state_['warm_weight'] must hold numbers, got {state['warm_weight'].dtype}")


def widen_rows(state: State, d: int) -> None:
    """Entries that every family may have, for rows of width d: the moments of the columns and the rows kept."""
    for name in COLUMNS:
        if name in state:
            state[name] = pad_columns(state[name], d)  # as of a column of zeros
    widen_packed("warm_X", state, d)
    state["n_features"] = d


def widen_packed(name: str, state: State, d: int) -> None:
    """Rows that lie in a state, if there are any, with columns of zeros up to width d."""
    rows = unpack(name, state)
    if rows is None:
        return
    drop(name, state)
    if hasattr(rows, "indptr"):
        rows = concat([rows])
        rows.resize(rows.shape[0], d)
    else:
        rows = pad_columns(dense(rows), d)
    state |= pack(name, rows)


def pad_columns(A: np.ndarray, d: int) -> np.ndarray:
    """The array with zeros added at the end of its last axis, up to length d."""
    return np.pad(A, [(0, 0)] * (A.ndim - 1) + [(0, d - A.shape[-1])])
