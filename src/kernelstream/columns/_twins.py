"""What an engine has for the encoder."""

from __future__ import annotations

import functools
from typing import Any

from .. import engine as engines
from ._pass import columns_pass


@functools.cache
def twins(engine: str) -> tuple[Any, Any]:
    """The pass over the rows, and the reader of one dictionary, or None: then a dictionary is a block of one row."""
    if engine == "python" or not engines.has_native():
        return columns_pass, None
    from .. import _core

    return _core.columns_pass, _core.columns_row
