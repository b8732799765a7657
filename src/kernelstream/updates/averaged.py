"""The mean of all iterates of another update."""

from __future__ import annotations

from typing import Any

from ..losses import Loss
from ._base import Update, get, register


@register
class Averaged(Update):
    r"""Predict with the mean of all iterates, ``(1/t) sum_s f_s``, while another update learns (Polyak, Juditsky 1992).

    Parameters
    ----------
    update : Update or str
        The update that learns.
    """

    name = "averaged"

    def __init__(self, update: Update | str = "ogd"):
        self.update = update

    def check(self, loss: Loss) -> None:
        if isinstance(self.update, Averaged):
            raise ValueError("Averaged(Averaged(...)) averages twice: give the inner update itself")
        get(self.update).check(loss)

    def step(self, loss: Any, y: Any, f: Any, k_xx: Any, t: Any, memory: Any) -> Any:
        return get(self.update).step(loss, y, f, k_xx, t, memory)


def unwrap(update: Update) -> tuple[Update, bool]:
    """The update that learns, and whether its iterates are averaged."""
    return (get(update.update), True) if isinstance(update, Averaged) else (update, False)
