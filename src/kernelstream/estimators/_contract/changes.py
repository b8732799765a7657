"""What a user, or a monitor, may do about a change of the stream: give the past less weight, or start again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...checks import fraction
from ...state.nested import State
from ...state.turns import in_turn

if TYPE_CHECKING:
    from .base import StreamEstimator


@in_turn
def fade(est: StreamEstimator, keep: float = 0.1) -> StreamEstimator:
    """Let what was learned lose weight, so that new rows change the model more.

    AdaGrad's sums of squares are multiplied by ``keep`` (its steps become 1/√keep times as long), and so are the sums
    of least squares; of the default learner, those of its members and of their combination.

    Parameters
    ----------
    keep : float, default=0.1
        More than 0, less than 1.

    Returns
    -------
    self
    """
    keep = fraction("keep", keep)
    return _changed(est, "forget", lambda state: est._learner.fade(state, keep))


@in_turn
def restart(est: StreamEstimator) -> StreamEstimator:
    """Let the weights start from zero; labels, features and scales stay, and how members are combined.

    Returns
    -------
    self
    """
    return _changed(est, "restart", lambda state: est._learner.restart(state))


def _changed(est: StreamEstimator, what: str, change: Callable[[State], bool]) -> StreamEstimator:
    state = est.__dict__.get("_state")
    if state is None or state["warm_rows"]:
        return est  # nothing has been learned yet
    est._sync()
    if not change(state):
        raise ValueError(f"{type(est).__name__} has no way to {what}: give the monitor a function of your own as react")
    est._forget()
    return est
