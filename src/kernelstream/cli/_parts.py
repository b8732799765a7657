"""``--import MODULE``: a user's own parts, found by name."""

from __future__ import annotations

import importlib
import sys

from ._base import UsageError


def import_parts(module: str, folder: str) -> None:
    """Import a module, which is looked for in a folder too; UsageError where that fails."""
    if module.endswith(".py"):
        raise UsageError(f"--import takes the name of a module, not of a file: --import {module.removesuffix('.py')}")
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"--import: {module!r} is not the name of a module")
    if folder not in sys.path:
        sys.path.append(folder)  # at the end, so that a file here cannot replace a library
    try:
        importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"--import: the module {module!r} cannot be imported ({reason})") from error
