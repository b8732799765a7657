"""How the checks compare arrays, and look for errors that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def close(actual: Any, expected: Any, tolerance: float, problem: str, least: float = 1e-300) -> None:
    """Compare relative to the largest expected entry, or to ``least``."""
    assert np.shape(actual) == np.shape(expected), f"{problem}: shape {np.shape(actual)}, not {np.shape(expected)}"
    error = np.abs(np.asarray(actual, float) - np.asarray(expected, float)).max(initial=0)
    assert error <= tolerance * max(least, np.abs(expected).max(initial=0)), f"{problem}: by {error:.3g}"


def rejects(call: Callable[[], Any], word: str) -> None:
    """A call raises a ValueError that mentions a word."""
    try:
        call()
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"invalid input is accepted ({word})")
    assert word in message, f"the error does not mention {word!r}: {message}"
