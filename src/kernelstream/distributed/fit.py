"""Fitting of models whose sums over rows add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.falkon.models import Falkon
from ..estimators.second_order.ridge import Ridge
from .falkon import fit_falkon
from .ridge import fit_ridge
from .sums import Parts


def fit(est: Any, X: Any, y: Any = None, *, client: Any = None, classes: Any = None) -> Any:
    """Fit an estimator to rows that are spread over the workers of a Dask cluster, or the executors of Spark.

    Ridge regression and classification on any feature map (:class:`~kernelstream.OnlineRidge`,
    :class:`~kernelstream.OnlineRidgeClassifier`): the result of ``est.fit`` on all rows, up to rounding.

    :class:`~kernelstream.FalkonClassifier` and :class:`~kernelstream.FalkonRegressor` with the squared loss: the result
    of ``est.fit``, up to its tolerance; choices that are left to the model are made on at most 50,000 rows.

    Parameters
    ----------
    est : estimator
        It is fitted in place; an error leaves it as it was.
    X : dask array, dask frame, DataFrame of Spark, or :func:`files`
    y : dask array or str
        Targets of an array, or the name of their column in a frame; None for files.
    client : distributed.Client, optional
        By default the current one.
    classes : array, optional
        All labels that can occur; any other is then an error.

    Returns
    -------
    est

    Raises
    ------
    BadPartitionError
        A ValueError that names the file (or partition) and the row that cannot be learned.
    """
    learner = getattr(est, "_learner", None)
    if not isinstance(learner, (Ridge, Falkon)):
        raise ValueError(
            f"{type(est).__name__} cannot be fitted on several machines, because it keeps no sums over rows that add "
            f"up: OnlineRidge, FalkonRegressor and their classifiers do; kernelstream.merge averages other models"
        )
    est._check_parameters()
    parts = parts_of(X, y, client)
    fitted: Any = fit_ridge if isinstance(learner, Ridge) else fit_falkon
    est.state_ = fitted(est, learner, parts, classes)
    if parts.columns is not None:
        est.feature_names_in_ = np.array(parts.columns, dtype=object)
    return est


def parts_of(X: Any, y: Any, client: Any) -> Parts:
    """The rows by the backend that has them."""
    if is_spark(X):
        from .spark import SparkParts

        return SparkParts(X, y)
    from .dask import DaskParts

    return DaskParts(X, y, client)


def is_spark(X: Any) -> bool:
    """Whether rows are a DataFrame of Spark."""
    return any(kind.__module__.startswith("pyspark.sql") for kind in type(X).__mro__)
