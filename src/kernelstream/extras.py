"""Packages that only some modules need: an error that says how to install them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

PAPERS = "run 'pip install . ./papers' in a clone of the repository"  # how to get what only the papers' tables need


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Imports inside name the extra that brings the package, if it is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'kernelstream[{extra}]'", name=error.name) from error
