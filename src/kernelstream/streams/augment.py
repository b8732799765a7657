"""Virtual examples: rows changed in ways that do not change their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..checks import whole


def augment(
    blocks: Iterable[tuple[Any, Any]], change: Callable[[Any, np.random.Generator], Any], copies: int = 1, seed: int = 0
) -> Iterator[tuple[Any, Any]]:
    """Every block of a stream, each followed by ``copies`` changed copies of it.

    Parameters
    ----------
    blocks : iterable of (X, y)
    change : callable
        ``change(X, rng)`` gives rows that belong to the same labels: shifted or bent images, sentences with a synonym.
    copies : int
    seed : int
        Of the generator that ``change`` draws from.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = augment([(np.zeros((2, 3)), np.array([0, 1]))], lambda X, rng: X + rng.normal(size=X.shape), copies=2)
    >>> [(X.shape, y.tolist()) for X, y in noisy]
    [((2, 3), [0, 1]), ((2, 3), [0, 1]), ((2, 3), [0, 1])]
    """
    whole("copies", copies, least=0)
    rng = np.random.default_rng(seed)
    for X, y in blocks:
        yield X, y
        for _ in range(copies):
            yield change(X, rng), y
