"""Compiled twins of losses, updates and budget strategies, and the warning about a part that has none.

A part without a compiled version works with every engine: its model then uses the pass of the python engine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .caller import warn
from .names import home

try:
    from .. import _core
except ImportError:  # installed without the compiled core: there are no twins
    _core = None  # type: ignore[assignment, unused-ignore]

Twin = tuple[str, list[float]]  # name and parameters, as the core takes them

_WARNED: set[tuple[str, str]] = set()  # classes that have been warned about


def twins(loss: Any, update: Any = None, strategy: Any = None) -> tuple[Twin, ...] | None:
    """Names and parameters of the twins of the parts that are given, or None where one of them has none."""
    found: list[Twin] = []
    alone = []
    for part, kind in ((loss, "loss"), (update, "update"), (strategy, "budget")):
        if part is not None:
            own = twin(part, functools.partial(_known, kind))
            if own is None:
                alone.append(part)
            else:
                found.append(own)
    _warn_once(alone)
    return None if alone else tuple(found)


def twin(part: Any, known: Callable[[str], bool]) -> Twin | None:
    """Name and parameters of the twin of a part, or None; ``known`` says which names the core has.

    A class with a name of its own that inherits ``native`` may have other formulas: what it inherits is not its twin.
    """
    found = part.native()
    if found is None or found[0].partition(":")[0] != part.name or not known(found[0]):
        return None
    return found


def numbers_of(part: Any) -> Twin | None:
    """Name and parameters of a part, sorted by their names, "auto" as -1; None if they are not all numbers."""
    try:
        given = part.get_params(deep=False).values()
        return part.name, [-1.0 if isinstance(value, str) and value == "auto" else float(value) for value in given]
    except (TypeError, ValueError):
        return None


@functools.cache  # called for every block, and the core's names never change
def _known(kind: str, name: str) -> bool:
    """Whether the core has a loss, an update or a budget strategy of a name."""
    return getattr(_core, f"has_{kind}")(name)


def _warn_once(parts: list[Any]) -> None:
    """Warn, once for every class, that parts without a twin make their model slower."""
    own = [getattr(part, "inner", part) for part in parts]  # of one against the rest, the binary loss
    new = [part for part in own if home(type(part)) not in _WARNED]
    if not new:
        return
    _WARNED.update(home(type(part)) for part in new)
    warn(
        f"{', '.join(map(repr, new))}: no compiled version. Models with it use the python engine: same results, many "
        f"times slower",
        RuntimeWarning,
    )
