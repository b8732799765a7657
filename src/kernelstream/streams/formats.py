"""Formats of files that another package reads.

It enters its readers in :data:`READERS`, in a module that an entry point of the group ``kernelstream.parts`` names.
"""

from __future__ import annotations

from typing import Any

from ..extras import PAPERS
from ..registry import plugins

ARFF, MATLAB = "ARFF", "MATLAB"

# ARFF: a binary file and its name -> a binary file of a CSV with names of columns, separated by commas.
# MATLAB: a path, its name, and whether the first column stays one of the rows -> rows, target or None, orders or None.
READERS: dict[str, Any] = {}


def reader(format: str) -> Any:
    """The reader of a format; ValueError if the package that brings it is not installed."""
    if format not in READERS:
        plugins.load()
    if format not in READERS:
        raise ValueError(f"{format} files are read by another package: {PAPERS}")
    return READERS[format]
