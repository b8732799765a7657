"""What a user, or a monitor, may do about a change of the stream: give the past less weight, or none."""

from __future__ import annotations

from typing import Any

from ...checks import fraction
from ...state.turns import in_turn


@in_turn
def forget(est: Any, keep: float = 0.0) -> Any:
    """Let what was learned lose weight, so that new rows change the model more.

    Parameters
    ----------
    keep : float, default=0.0
        At least 0, less than 1. AdaGrad's sums of squares are multiplied by it (its steps become 1/√keep times as
        long), and so are the sums of least squares; of the default learner, those of its members and of their
        combination. 0 sets the weights to zero; labels, features and scales stay, and how members are combined.

    Returns
    -------
    self
    """
    keep = fraction("keep", keep) if keep else 0.0
    if not est.__sklearn_is_fitted__() or est._state["warm_rows"]:
        return est  # nothing has been learned yet
    est._sync()
    learner, state = est._learner, est._state
    if not (learner.fade(state, keep) if keep else learner.restart(state)):
        raise ValueError(f"{type(est).__name__} has no way to forget: give a monitor a function of your own as react")
    est._forget()
    return est
