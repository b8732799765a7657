"""Models inside models.

A model that wraps another one (an encoder in front of it, probabilities behind it, rows that wait for their targets)
says so by one property, ``model_inside``: the model that learns or, before the first row, the one whose copy will.
"""

from __future__ import annotations

from typing import Any, Protocol


class Wraps(Protocol):
    """A model with another one inside."""

    @property
    def model_inside(self) -> Any:
        """The model inside; None as long as there is none."""


def innermost(model: Any) -> Any:
    """The learner itself, without the wrappers around it.

    >>> from kernelstream import FeatureClassifier
    >>> from kernelstream.columns import Columns, make_stream
    >>> from kernelstream.trust import Calibrated
    >>> type(innermost(Calibrated(make_stream(Columns(), FeatureClassifier())))).__name__
    'FeatureClassifier'
    """
    while (inside := getattr(model, "model_inside", None)) is not None:
        model = inside
    return model
