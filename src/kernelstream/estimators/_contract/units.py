"""Numbers that are too large to learn from: their squares would overflow."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arrays import all_below
from ...rows import MODERATE


def check_moderate(values: Any, dtype: str, what: str) -> None:
    """ValueError for finite numbers that a model of a float type cannot take.

    Parameters
    ----------
    values : array of floats, of any shape
    dtype : {"float64", "float32"}
        The type of the model's numbers.
    what : str
        What they are, for the message: "X", "y" or "sample_weight".
    """
    most = MODERATE[dtype]
    if values.size and not all_below(values, most):
        worst = float(values.flat[np.abs(values).argmax()])
        remedy = "" if dtype == "float64" else " or take float64 rows"
        raise ValueError(
            f"{what} holds {worst:g}: numbers beyond {2.0**most:.1g} are refused, because sums of their squares would "
            f"overflow in {dtype}. Scale {'the columns' if what == 'X' else 'it'}{remedy}"
        )
