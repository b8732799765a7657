"""Errors about models that learning would take out of the range of floats."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

#: The compiled passes use the same words (cpp/base/arrays.hpp).
LEARNING = (
    "learning these rows takes the model beyond the range of floats: scale the columns, the target or the weights, "
    "or take smaller steps"
)
SCORING = "the scores of these rows lie beyond the range of floats: scale the rows as those that were learned"


def require_finite(*arrays: Any) -> None:
    """ValueError unless all numbers of the arrays are finite; None is skipped."""
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise ValueError(LEARNING)


def reword(error: BaseException) -> None:
    """Raise our own ValueError where LAPACK found a matrix singular while rows were learned; else do nothing.

    Every call that learns comes here when it fails (``StreamEstimator``), so that no family needs its own handling. A
    matrix that is positive definite on paper is not so in floats where its regularisation is lost beside the rows.
    """
    if isinstance(error, np.linalg.LinAlgError):
        raise ValueError(LEARNING) from error


def quiet(passing: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a pass that checks its results itself: numpy's warnings on the way are switched off."""

    @wraps(passing)
    def run(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return passing(*args, **kwargs)

    return run
