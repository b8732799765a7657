"""What a pass does to a row, in the form the native passes take."""

from __future__ import annotations

from typing import Any, NamedTuple


class Spec(NamedTuple):
    """Loss and update of a pass; made once for a model, used for many blocks.

    Attributes
    ----------
    core : _core.Spec or None
        The compiled twins, found by their names; None where a part has none: the python engine's pass is used then.
    parts : tuple
        The same for the python engine's pass.
    """

    core: Any
    parts: Any
