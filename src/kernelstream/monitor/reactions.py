"""What a learner can do about a change: give the past less weight, or start again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks import fraction

Reaction = Callable[[Any, Any], None]


def forget(keep: float = 0.1) -> Reaction:
    """A reaction for :class:`Monitor`: what was learned loses weight, so that new rows change the model more.

    AdaGrad's sums of squares are multiplied by ``keep`` (its steps become 1/√keep times as long), and so are the sums
    of least squares; of the default learner, those of its members and of their combination.

    Parameters
    ----------
    keep : float, default=0.1
        More than 0, less than 1.

    Returns
    -------
    callable (model, mark)

    Examples
    --------
    >>> from kernelstream import FeatureClassifier, drift
    >>> from kernelstream.evaluate import prequential
    >>> from kernelstream.monitor import Monitor, forget
    >>> stream = drift.generate(8000, block=250, random_state=0, n_concepts=2)
    >>> watch = Monitor(inputs=False, react=forget())
    >>> result = prequential(FeatureClassifier(random_state=0), stream, classes=[-1, 1], monitor=watch)
    >>> len(result.marks)
    1
    """
    keep = fraction("keep", keep)

    def react(model: Any, mark: Any) -> None:
        _change(model, lambda learner: learner._learner.fade(learner._state, keep), "forget")

    return react


def restart() -> Reaction:
    """A reaction for :class:`Monitor`: the weights start from zero; labels, features and scales stay.

    In the default learner all members start from zero, and the way they are combined stays.

    Returns
    -------
    callable (model, mark)
    """

    def react(model: Any, mark: Any) -> None:
        _change(model, lambda learner: learner._learner.restart(learner._state), "restart")

    return react


def _change(model: Any, change: Callable[[Any], bool], what: str) -> None:
    while hasattr(model, "model_"):  # wrappers
        model = model.model_
    if not hasattr(model, "_learner"):
        raise ValueError(f"{type(model).__name__} is not a learner of this library: it cannot {what}")
    with model._turns:
        if model.__dict__.get("_state") is None or model._state["warm_rows"]:
            return  # nothing has been learned yet
        model._sync()
        if not change(model):
            raise ValueError(f"{type(model).__name__} has no way to {what}: pass a function of your own as react")
        model._forget()
