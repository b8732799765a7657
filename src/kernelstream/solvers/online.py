"""The solver that is now an estimator of its own, for the old spelling of one version."""

from __future__ import annotations

from typing import ClassVar

from ..updates import Update
from ._problem import Solver


class Online(Solver):
    r"""Row by row, on cells hashed into columns: now :class:`~kernelstream.OnlineBinningClassifier` and its sister.

    Parameters
    ----------
    update : Update or str, default "auto"
        How a row changes the weights; "auto" is :class:`~kernelstream.updates.AdaGrad`, which needs no step size.
    n_columns : int, default 2**20
        Columns of all grids together.
    """

    name: ClassVar[str] = "online"

    def __init__(self, update: Update | str = "auto", n_columns: int = 2**20):
        self.update = update
        self.n_columns = n_columns
