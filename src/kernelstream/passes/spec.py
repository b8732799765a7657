"""What a pass does to a row: the parts, and their compiled twins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..budgets import Budget
from ..losses import Loss
from ..updates import Update, unwrap


@dataclass(slots=True)
class Spec:
    """Loss and update of a pass, and the strategy of a support set; made once for a model, used for many blocks.

    Attributes
    ----------
    update : Update
        Without averaging.
    average : bool
        Whether the mean of the iterates predicts.
    strategy : Budget or None
        For ``expansion_pass`` a Growing one, or None: every row that acts joins.
    core : _core.Spec or None
        The compiled twins, found by their names; None where a part has none: the python engine's pass is used then.
    """

    loss: Loss
    update: Update
    average: bool
    strategy: Any = None
    core: Any = None


class Told(NamedTuple):
    """What a pass is told of the rows of a block, besides the rows."""

    y: np.ndarray  # (m,) float64: ±1, class codes or targets
    weight: np.ndarray | None = None  # (m,), factors of tau; a row of weight 0 is scored and skipped
    u: np.ndarray | None = None  # uniform random numbers; the j-th belongs to the j-th row of positive weight


def spec(loss: Loss, update: Update, strategy: Budget | None = None) -> Spec:
    """What a pass of the python engine does to a row."""
    return Spec(loss, *unwrap(update), strategy)
