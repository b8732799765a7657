r"""Targets in units of their deviation, so that step sizes and tubes mean the same for every target."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.ranges import FAR
from .first_rows import outlying_values

STANDARD = "standard"
UNIT = "unit"  # the entry of a state


def deviation(y: np.ndarray) -> float:
    """Standard deviation of targets (n,) without those far outside; their size where they are all the same."""
    usual = y[~outlying_values(y, FAR)]
    return float(np.std(usual)) or float(abs(usual[0])) or 1.0


def check_center(center: Any) -> None:
    """ValueError unless it is True, False or "standard"."""
    if not (isinstance(center, (bool, np.bool_)) or (isinstance(center, str) and center == STANDARD)):
        raise ValueError(f"center must be True, False or 'standard', got {center!r}")
