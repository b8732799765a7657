"""Warnings that point to the line of the user's program."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line from which the library was called."""
    frame, level, own = sys._getframe(), 1, (__name__.partition(".")[0], "sklearn")  # which wraps ``fit``
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def warn_unsolved(message: str) -> None:
    """Warn that a solver has not reached its tolerance, and what to do about it."""
    warn(message, ConvergenceWarning)
