"""The model that all workers start from: its features are fixed, and nothing is learned yet."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators._contract.scaled import wanted_scaling
from ..estimators._contract.scaling import extremes, units_differ
from ..rows import concat
from ..streams.base import Block
from .sums import Part, Parts


def begun(est: Any, wanted: int, parts: Parts, classes: Any) -> Any:
    """A copy of an estimator that has no weights yet, with the features that one machine would have.

    What a feature map estimates from rows, it estimates from the first ``wanted`` ones, as in ``est.learn``. Seeds are
    drawn here, once, so that all workers have the same random numbers.
    """
    blocks: list[Block] = []
    for i in range(len(parts)):
        blocks += parts.map(first_blocks, {i: (wanted,)})[0]
        if sum(X.shape[0] for X, _ in blocks) >= wanted:
            break
    if not blocks:
        raise ValueError("there are no rows")
    if blocks[0][1] is None:
        raise ValueError("the rows have no target: name its column with target=")
    X, y = concat([X for X, _ in blocks])[:wanted], np.concatenate([y for _, y in blocks])[:wanted]
    est = clone(est)
    X, y, _ = est._admit(X, y, classes, None, fresh=True, empty=True)  # memory is checked before weights are made
    if est._state["warm_rows"]:
        est._learner.estimate(est._state, X)
    est._state |= {"warm_rows": 0, "warm_count": 0}
    est._forget()
    if wanted_scaling(est._learner) is None and units_differ(X):
        warnings.warn(
            f"the columns have different units, {extremes(X, parts.columns)}, and one width compares them all: on one "
            f"machine standardize='auto' scales them, row by row, which partitions cannot. Scale them before a "
            f"distributed fit",
            UserWarning,
            stacklevel=4,
        )
    return est


def first_blocks(part: Part, n: int) -> list[Block]:
    """Blocks of the first n rows."""
    return list(part.blocks(lambda X, y: (X, y), n))
