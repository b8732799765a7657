"""Streams whose concept is nonlinear and changes: moving hills.

Rows are standard normal. A landscape of Gaussian hills and hollows stands over them, and the label is the sign of the
height under the row. Each hill has a twin on the other side of the origin and a hollow a quarter turn away, so the two
classes are equally frequent and a linear model can do little better than guess. The rows always look the same; what
changes is the landscape, either at once (another landscape) or slowly (it turns around the origin).

>>> from kernelstream import drift
>>> sum(len(X) for X, y in drift.generate(2500, block=1000, random_state=0))
2500
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelstream.checks import one_of
from kernelstream.random import SeedStream, generator, seed_from

__all__ = ["KINDS", "generate"]

KINDS = ("abrupt", "gradual", "none")
_HILLS = 3  # each with its twin, and as many hollows
_RADIUS = 0.8  # standard deviation of the hills' shape, in units of the rows'


def generate(
    n_rows: int = 200_000,
    block: int = 1000,
    kind: str = "abrupt",
    random_state: Any = 0,
    *,
    n_features: int = 4,
    n_concepts: int = 4,
    noise: float = 0.02,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of rows of a drifting, nonlinear, two-class stream.

    Parameters
    ----------
    n_rows : int, default=200_000
    block : int, default=1000
        Rows per block; the rows themselves do not depend on it.
    kind : {"abrupt", "gradual", "none"}, default="abrupt"
        Jump to a new landscape ``n_concepts - 1`` times, at equal distances; or turn one landscape by a quarter circle
        ``n_concepts`` times over; or stay.
    random_state : int, RandomState, Generator or None
    n_features : int, default=4
        At least 2. Gradual drift turns the coordinates in pairs; an odd last one stays.
    n_concepts : int, default=4
    noise : float, default=0.02
        Fraction of labels that are flipped: no learner can err less.

    Yields
    ------
    X : ndarray (block, n_features), float32
    y : ndarray (block,), int8
        Labels -1 and +1.

    Examples
    --------
    >>> from kernelstream import drift
    >>> X, y = next(drift.generate(kind="gradual", block=500, random_state=1))
    >>> X.shape
    (500, 4)
    """
    one_of("kind", kind, KINDS)
    if n_rows < 0 or block < 1 or n_concepts < 1:
        raise ValueError("n_rows must be at least 0, block and n_concepts at least 1")
    if n_features < 2:
        raise ValueError(f"n_features must be at least 2, got {n_features}")
    if not 0 <= noise < 0.5:
        raise ValueError(f"noise must be at least 0 and below 0.5, got {noise}")
    # checked here and not in the generator below, so that errors are raised at the call and not at the first block
    return _blocks(n_rows, block, kind, seed_from(random_state), n_features, n_concepts, noise)


def _blocks(
    n_rows: int, block: int, kind: str, seed: int, d: int, n_concepts: int, noise: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    # a seed of data and not of a model: the rows, the noise and each landscape take the place of a map's columns
    rows, flips = generator(seed, SeedStream.MAP), generator(seed, SeedStream.MAP, 1)
    landscapes = [_landscape(seed, c, d) for c in range(n_concepts if kind == "abrupt" else 1)]
    for start in range(0, n_rows, block):
        m = min(block, n_rows - start)
        time = np.arange(start, start + m) / n_rows * n_concepts  # in concepts
        X = rows.standard_normal((m, d))
        flip = np.where(flips.random(m) < noise, -1, 1)
        if kind == "abrupt":
            height = np.empty(m)
            for c in np.unique(time.astype(int)):
                now = time.astype(int) == c
                height[now] = _height(landscapes[c], X[now])
        else:
            angle = 0.5 * np.pi * time if kind == "gradual" else np.zeros(m)
            height = _height(landscapes[0], _turn(X, -angle))  # turning the rows back = turning the landscape
        y = np.where(height >= 0.0, flip, -flip)
        yield X.astype(np.float32), y.astype(np.int8)


def _landscape(seed: int, concept: int, d: int) -> np.ndarray:
    """Centres (4 _HILLS, d): the hills, then the hollows."""
    hills = generator(seed, SeedStream.MAP, 2 + concept).standard_normal((_HILLS, d))
    hills = np.concatenate([hills, -hills])
    return np.concatenate([hills, _turn(hills, np.full(len(hills), 0.5 * np.pi))])


def _height(centres: np.ndarray, X: np.ndarray) -> np.ndarray:
    squares = (X**2).sum(axis=1)[:, None] - 2.0 * X @ centres.T + (centres**2).sum(axis=1)
    bumps = np.exp(-squares / (2.0 * _RADIUS**2))
    return bumps[:, : 2 * _HILLS].sum(axis=1) - bumps[:, 2 * _HILLS :].sum(axis=1)


def _turn(X: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Row i turned by angle i in the planes of the coordinates (0, 1), (2, 3), ..."""
    turned = X.copy()
    cos, sin = np.cos(angle), np.sin(angle)
    for a in range(0, X.shape[1] - 1, 2):
        turned[:, a] = cos * X[:, a] - sin * X[:, a + 1]
        turned[:, a + 1] = sin * X[:, a] + cos * X[:, a + 1]
    return turned
