"""The line of the user's program that a warning points to."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning


def caller() -> int:
    """The ``stacklevel`` of a warning in the calling function that points to the user's line."""
    frame, level, own = sys._getframe(1), 1, (__name__.partition(".")[0], "sklearn")  # which wraps ``fit``
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        frame, level = frame.f_back, level + 1
    return level


def warn_unsolved(message: str) -> None:
    """Warn that a solver has not reached its tolerance, and what to do about it."""
    warnings.warn(message, ConvergenceWarning, stacklevel=caller())
