"""What a model on explicit features has learned, apart from how it goes on learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._base import Mapping


@dataclass(frozen=True)
class LinearForm:
    r"""A model as weights of features: ``f(x) = W z(x) + b``, of rows in the units of the model.

    Attributes
    ----------
    mapping : Mapping
        z, with its random numbers.
    weights : (outputs, r) float64 array
    offset : (outputs,) float64 array
    """

    mapping: Mapping
    weights: np.ndarray
    offset: np.ndarray
