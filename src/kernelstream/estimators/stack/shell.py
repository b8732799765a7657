"""What a stack reads of the estimator that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._contract.base import StreamEstimator

if TYPE_CHECKING:
    from .base import Stack


class StackShell(StreamEstimator):
    """For type checkers: KernelClassifier and KernelRegressor are like this."""

    members: Any
    size: str
    recent: bool
    _learner: Stack
