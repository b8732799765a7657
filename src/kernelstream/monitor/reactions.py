"""What a learner can do about a change: give the past less weight, or start again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..checks import fraction
from ..innermost import innermost

Reaction = Callable[[Any, Any], None]


def forget(keep: float = 0.1) -> Reaction:
    """A reaction for :class:`Monitor`: what was learned loses weight, so that new rows change the model more.

    The learner, also one inside wrappers, does what its method ``forget`` says.

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

    return functools.partial(_forget, keep)


def restart() -> Reaction:
    """A reaction for :class:`Monitor`: the weights start from zero; labels, features and scales stay.

    In the default learner all members start from zero, and the way they are combined stays.

    Returns
    -------
    callable (model, mark)
    """
    return functools.partial(_forget, 0.0)


def _forget(keep: float, model: Any, mark: Any) -> None:
    learner = innermost(model)
    if not hasattr(learner, "forget"):
        raise ValueError(f"{type(learner).__name__} is not a learner of this library: it cannot forget")
    learner.forget(keep)
