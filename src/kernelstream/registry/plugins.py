"""Parts of installed packages: modules that the entry points of the group ``kernelstream.parts`` name.

A package that brings a loss, a kernel or a recipe says so in its ``pyproject.toml``::

    [project.entry-points."kernelstream.parts"]
    mine = "mine.parts"

The module is imported when a name is looked up that the library itself does not have. A model file that names such a
part leads to an import on the command line only (:data:`serve_files`).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

GROUP = "kernelstream.parts"

serve_files = False  # whether parts that a model file lacks may come from installed packages

_asked = False


def load() -> None:
    """Import the modules, the first time; one that fails is a warning that names it."""
    global _asked
    if _asked:
        return
    _asked = True  # before the imports: a module that looks up a name must not start this again
    from importlib import metadata  # slow to import, and needed only here

    for point in metadata.entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            warnings.warn(
                f"the parts of {point.value} ({GROUP}: {point.name}) cannot be used: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=3,
            )


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """Context in which no name, known or not, leads to an import."""
    global _asked
    before, _asked = _asked, True
    try:
        yield
    finally:
        _asked = before
