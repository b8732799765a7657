"""The pass over the rows by engine, and the compiled reader of single dictionaries."""

from __future__ import annotations

import functools
from typing import Any

from .. import engine as engines
from ._pass import columns_pass


@functools.cache
def passes() -> dict[str, Any]:
    """The pass over the rows, by engine."""
    if not engines.has_native():
        return dict.fromkeys(("auto", "native", "python"), columns_pass)
    from .. import _core

    return {"auto": _core.columns_pass, "native": _core.columns_pass, "python": columns_pass}


@functools.cache
def row_reader(engine: str) -> Any:
    """The reader of one dictionary, or None: then a dictionary is a block of one row."""
    if engine == "python" or not engines.has_native():
        return None
    from .. import _core

    return _core.columns_row
