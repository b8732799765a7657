"""One pass over the rows, by a first-order update."""

from __future__ import annotations

from typing import Any, ClassVar

from ..updates import AdaGrad, Averaged, Update
from ..updates import get as get_update
from ._problem import Solver


class Online(Solver):
    r"""Row by row, on cells hashed into a bounded number of columns: for streams, with ``partial_fit``.

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

    def check(self) -> None:
        if isinstance(self.rule, Averaged):
            raise ValueError("the mean of all iterates changes every column at every row: no averaging on hashed cells")

    @property
    def rule(self) -> Update:
        """The update as an object."""
        return AdaGrad() if self.update == "auto" else get_update(self.update)

    def serves(self, loss: Any) -> None:
        self.rule.check(loss)
