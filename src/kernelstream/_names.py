"""What to say about a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """``"did you mean 'x'? "`` for the known name that is closest, in any case, or nothing when none is close.

    >>> did_you_mean("Hing", ["hinge", "huber"]) + "known are hinge, huber"
    "did you mean 'hinge'? known are hinge, huber"
    """
    lower = {word.lower(): word for word in known}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f"did you mean {lower[close[0]]!r}? " if close else ""


def unknown(kind: str, name: Any, known: Iterable[str], meant: str | None = None) -> ValueError:
    """The error about an unknown name of a registry; ``meant`` is a better hint than the closest name."""
    known = sorted(known)
    hint = did_you_mean(name, known) if meant is None else f"did you mean {meant!r}? "
    return ValueError(f"unknown {kind} {name!r}: {hint}known are {', '.join(known)}")
