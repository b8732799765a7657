"""Fitting of all learners: the kind of the estimator decides how the workers share the work."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from ..estimators.binning.base import Binning
from ..estimators.falkon.models import Falkon
from ..estimators.second_order.ridge import Ridge
from ..estimators.stack.batch import MOST_ROWS
from ..estimators.stack.models import KernelClassifier, KernelRegressor
from ..estimators.stack.shell import StackShell
from ..random import seed_from
from ..streams.base import BLOCK_ROWS
from ._client import compute, connect, need
from ._data import Data, partitions
from .binning import fit_binning
from .falkon import fit_falkon
from .landmarks import AllRows
from .ridge import fit_ridge


def fit(
    est: Any,
    X: Any,
    y: Any = None,
    *,
    client: Any = None,
    classes: Any = None,
    block: int = BLOCK_ROWS,
    labels: Callable[[Any], Any] | None = None,
    **reader: Any,
) -> Any:
    """Fit an estimator to rows that are spread over the workers of a dask cluster, or the executors of Spark.

    Ridge regression and classification on any feature map (:class:`~kernelstream.OnlineRidge`,
    :class:`~kernelstream.OnlineRidgeClassifier`): the result of ``est.fit`` on all rows, up to rounding.

    :class:`~kernelstream.BinningClassifier` and :class:`~kernelstream.BinningRegressor` with ``solver="cg"``: the same,
    by conjugate gradients; gamma and lam, if not given, are searched for on at most 120,000 rows.

    :class:`~kernelstream.FalkonClassifier` and :class:`~kernelstream.FalkonRegressor` with the squared loss: the result
    of ``est.fit``, up to its tolerance; choices that are left to the model are made on at most 50,000 rows.

    :class:`~kernelstream.KernelClassifier` and :class:`~kernelstream.KernelRegressor`: the result of ``est.fit``, with
    more than 100,000 rows on that many of them, drawn from all partitions (a warning says so).

    Parameters
    ----------
    est : estimator
        It is fitted in place; an error leaves it as it was.
    X : dask array, dask frame, Spark DataFrame, path, glob or list of paths
        See :func:`partitions`. Files are read by the workers.
    y : dask array, dask series or str
        Targets, or the name of their column in a frame; None for files.
    client : distributed.Client, str or None
        A client, the address of a scheduler, or None for processes of this machine; see :func:`connect`.
    classes : array, optional
        All labels that can occur; any other is then an error.
    block : int, default=1024
        Rows a worker handles at a time.
    labels : callable, optional
        Applied to the targets of files.
    **reader
        How files are read: ``target``, ``format``, ``n_features``, …; see :func:`kernelstream.streams.open`.

    Returns
    -------
    est

    Raises
    ------
    BadPartitionError
        A ValueError that names the file (or partition) and the row that cannot be learned.
    """
    solve = _solver(est)
    est._check_parameters()
    with connect(client, X) as client:
        data = partitions(X, y, block=block, client=client, labels=labels, **reader)
        try:
            state = solve(est, data, client, classes)
        finally:
            data.close()
    est.state_ = state
    if data.feature_names is not None:
        est.feature_names_in_ = np.array(data.feature_names, dtype=object)
    return est


def _solver(est: Any) -> Callable[..., dict[str, Any]]:
    if isinstance(est, (KernelClassifier, KernelRegressor)):
        return _fit_default_learner
    if isinstance(est._learner, Ridge):
        return fit_ridge
    if isinstance(est._learner, Falkon):
        return fit_falkon
    if isinstance(est._learner, Binning):
        return fit_binning
    raise ValueError(
        f"{type(est).__name__} cannot be fitted on several machines: its model depends on the order of the rows. "
        f"OnlineRidge, BinningClassifier, FalkonClassifier and their relatives can: see "
        f"help(kernelstream.distributed.fit)"
    )


def _fit_default_learner(est: StackShell, data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state of ``est.fit``: with at most 100,000 rows that of all of them, in the order of the partitions.

    The members of the default learner follow rows one by one, and its metric needs them in one place: neither is a sum
    over rows. So as many rows as ``fit`` learns at once are drawn from all partitions and fitted by one worker, or by
    Spark's driver.
    """
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
