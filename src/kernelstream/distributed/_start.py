"""The model that all workers start from: its features are fixed, and nothing is learned yet."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ..estimators._contract.scaling import extremes, units_differ
from ..estimators.feature import MAP
from ..features import Nystroem
from ..rows import concat
from ..streams.base import Block
from ._client import compute, need
from ._data import Data, Piece
from .landmarks import chosen


def begin(est: Any, data: Data, client: Any, classes: Any = None) -> Any:
    """A copy of an estimator on features that has no weights yet, with the map that one machine would have.

    What a map estimates from rows, it estimates from the first ones, as in ``est.learn``; only landmarks that a Nyström
    map chooses by itself come from all partitions, as in ``Nystroem.fit``. Seeds are drawn here, once, so that all
    workers have the same random numbers.
    """
    features = getattr(est._learner, "map", None)
    wanted = 1 if features is None else max(1, est._learner.warm_up_rows())
    seed, map_entries = None, None
    if isinstance(features, Nystroem) and isinstance(features.landmarks, str):
        seed, map_entries = chosen(features, data, client, est._learner.seed_source())
        wanted = 1
    heads: list[Any] = []
    work = need("dask").delayed(_settled, pure=False)
    for i in range(len(data)):
        heads += data.some(_head, {i: (wanted,)})
        made, found, message = compute(client, work(clone(est), heads, wanted, seed, map_entries, classes))
        if found >= wanted or i + 1 == len(data):
            break
    if made is None:
        raise ValueError("there are no rows")
    if message:
        warnings.warn(message, UserWarning, stacklevel=2)
    return made


def _units_warning(est: Any, X: Any) -> str:
    """What to say about columns that one machine would scale, by some rows X (n, d); "" where they share a unit."""
    if est._scaling() is not None or not units_differ(X):
        return ""
    names = getattr(est, "feature_names_in_", None)
    return (
        f"the columns have different units, {extremes(X, names)}, and one width compares them all: on one machine "
        f"standardize='auto' scales them, row by row, which partitions cannot. Scale them before a distributed fit"
    )


def _head(piece: Piece, n: int) -> list[Block]:
    """Blocks of the first n rows."""
    return list(piece.blocks(lambda X, y: (X, y), n))


def _settled(
    est: Any, heads: list[list[Block]], wanted: int, seed: int | None, entries: Any, classes: Any
) -> tuple[Any, int, str]:
    """The estimator with a fresh state that lacks the weights, the number of rows it was estimated from, a warning."""
    blocks = [block for head in heads for block in head]
    if not blocks:
        return None, 0, ""
    if blocks[0][1] is None:
        raise ValueError("the rows have no target: give y, or target= for files")
    X = concat([X for X, _ in blocks])[:wanted]
    y = np.concatenate([y for _, y in blocks])[:wanted]
    X, y, _ = est._admit(X, y, classes, None, fresh=True, empty=True)  # memory is checked before weights are made
    state = est._state
    if seed is not None:
        state["seed"] = seed
    if entries is not None:
        state |= {MAP + key: value for key, value in entries.items()}
    elif state["warm_rows"]:
        est._learner.estimate(state, X)
    state |= {"warm_rows": 0, "warm_count": 0}
    est._forget()
    return est, X.shape[0], _units_warning(est, X)


def refuse(est: Any) -> None:
    """ValueError for what makes the result depend on the order in which workers see the rows."""
    if est._scaling():
        raise ValueError("standardize=True follows the rows one by one: scale the columns before a distributed fit")
    if is_classifier(est) and getattr(est, "class_weight", None) == "balanced":
        raise ValueError("class_weight='balanced' follows the rows one by one: give a dict of weights instead")
    features = getattr(est._learner, "map", None)
    if getattr(features, "grows", False):
        raise ValueError(f"{features!r} grows with the rows it has seen: give it a fixed size")
