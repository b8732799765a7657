"""The pass over the rows and the reader of dictionaries, by engine."""

from __future__ import annotations

import functools
from typing import Any

from .. import engine as engines
from ._parse import read_row
from ._pass import columns_pass


@functools.cache
def passes() -> dict[str, Any]:
    """The pass over the rows, by engine."""
    return _by_engine("columns_pass", columns_pass)


@functools.cache
def readers() -> dict[str, Any]:
    """The reader of dictionaries, by engine."""
    return _by_engine("columns_row", read_row)


def _by_engine(name: str, specification: Any) -> dict[str, Any]:
    """A function and its compiled twin ``name``."""
    native = specification
    if engines.has_native():
        from .. import _core

        native = getattr(_core, name)
    return {"auto": native, "native": native, "python": specification}
