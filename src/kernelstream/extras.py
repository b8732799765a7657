"""Packages that only some modules need: an error that says how to install them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# How to get the other two packages of the repository.
PAPERS = "run 'pip install . ./papers' in a clone of the repository"
SERVICE = "run 'pip install . ./service' in a clone of the repository"


@contextlib.contextmanager
def needs(extra: str, package: str = "kernelstream") -> Iterator[None]:
    """Imports inside name the extra of a package that brings the module, if it is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}: pip install '{package}[{extra}]'", name=error.name) from error
