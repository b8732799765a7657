"""What a pass does to a row, in the form the native passes take."""

from __future__ import annotations

from typing import Any, NamedTuple


class Spec(NamedTuple):
    """Loss and update of a pass.

    Attributes
    ----------
    twins : tuple or None
        Names and parameters of the compiled twins; None where a part has none, and the python engine's pass serves.
    average : bool
        Whether the iterates are averaged.
    parts : tuple
        The same for the python engine's pass.
    """

    twins: tuple[Any, ...] | None
    average: bool
    parts: Any
