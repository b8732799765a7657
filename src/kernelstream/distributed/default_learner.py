"""The default learner on many machines: ``fit`` of a sample of the rows.

Its members follow rows one by one and its metric needs them in one place; neither is a sum over rows. At most 100,000
rows, as many as ``fit`` learns at once, are drawn from all partitions and fitted on one worker, or by Spark's driver.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators.stack.batch import MOST_ROWS
from ..estimators.stack.shell import StackShell
from ..random import seed_from
from ._client import compute, need
from ._data import Data
from .landmarks import AllRows


def fit_default_learner(est: StackShell, data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state of ``est.fit``: with at most 100,000 rows that of all of them, in the order of the partitions."""
    rows = AllRows(data, client)
    est = clone(est).set_params(random_state=seed_from(est._learner.seed_source()))
    some = rows.some(MOST_ROWS, est.random_state)
    if rows.n > MOST_ROWS:
        warnings.warn(
            f"{type(est).__name__} keeps no sums that add up: it learns {MOST_ROWS:,} of {rows.n:,} rows, drawn at "
            f"random from all partitions",
            stacklevel=4,
        )
    work = need("dask").delayed(_fitted, pure=False)
    return compute(client, work(est, rows.delayed(some), rows.delayed(some, target=True), classes))


def _fitted(est: StackShell, X: Any, y: np.ndarray, classes: Any) -> dict[str, Any]:
    if classes is not None and len(unknown := np.setdiff1d(y, classes)):
        raise ValueError(f"y has labels that are not in classes: {unknown.tolist()}")
    return est.fit(X, y).state_
