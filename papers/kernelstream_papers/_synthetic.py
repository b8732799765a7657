"""Runs on generated rows, whose true function is known."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kernelstream.kernels import Gaussian

from ._experiment import Data
from .regret import greedy_adversary, regret

Curve = list[list[float]] | None
NOISE = 0.1
POINTS = 1024
BATCH = 1024


def play(kind: str, est: Any, data: Data, order: int) -> tuple[float, float, Curve]:
    """Value, seconds and curve of one run; ``data.values`` has what a kind needs."""
    return {"adversary": _adversary, "function": _function, "posterior": _posterior}[kind](est, data, order)


def _adversary(est: Any, data: Data, order: int) -> tuple[float, float, Curve]:
    """Regret over the rows of a game in ``d`` columns with the kernel's ``gamma``."""
    kernel, n = Gaussian(data.values["gamma"]), data.rows or 80
    start = time.perf_counter()
    X, y, predicted = greedy_adversary(est, n, data.values["d"], kernel, lam=1.0, random_state=order)
    seconds = time.perf_counter() - start
    curve = regret(X, y, predicted, kernel, lam=1.0)
    at = np.unique(np.linspace(1, n, min(n, 40)).astype(int))
    return float(curve[-1]), seconds, [at.tolist(), [round(float(v), 6) for v in curve[at - 1]]]


def hands(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Poker hands dealt at random: suit (1 to 4) and rank (1 to 13) of five cards, and what the hand is worth.

    0 nothing, 1 a pair, 2 two pairs, 3 three of a kind, 4 a straight, 5 a flush, 6 a full house, 7 four of a kind, 8 a
    straight flush, 9 a royal flush: the million rows of the set "poker" are drawn so.
    """
    cards = np.empty((n, 5), np.int64)
    for place in range(5):  # the card of rank r among those left: one more for each card before it, in order, up to r
        cards[:, place] = rng.integers(52 - place, size=n)
        for before in np.sort(cards[:, :place], axis=1).T:
            cards[:, place] += cards[:, place] >= before
    suits, ranks = np.divmod(cards, 13)
    X = np.stack([suits + 1, ranks + 1], axis=2).reshape(n, 10)
    return X.astype(np.float32), worth(X)


def worth(X: np.ndarray) -> np.ndarray:
    """What hands (n, 10) are worth, 0 to 9."""
    suits, ranks = X[:, ::2], np.sort(X[:, 1::2], axis=1)
    pairs = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=(1, 2))  # 5, and 2 for a pair, 6 for three, 12 for four
    kinds = np.array([0, 1, 2, 3, 6, 7])[np.searchsorted([5, 7, 9, 11, 13, 17], pairs)]
    royal = (ranks == [1, 10, 11, 12, 13]).all(axis=1)
    straight = (np.diff(ranks, axis=1) == 1).all(axis=1) | royal
    flush = (suits == suits[:, :1]).all(axis=1)
    rest = np.select([flush & royal, flush & straight, flush, straight], [9, 8, 5, 4], 0)
    return np.where(rest > 0, rest, kinds).astype(np.int8)


def truth(X: np.ndarray) -> np.ndarray:
    """cos(pi/2 |x|) exp(-pi/10 |x|), of rows X (n, 2)."""
    r = np.linalg.norm(X, axis=1)
    return np.cos(0.5 * np.pi * r) * np.exp(-0.1 * np.pi * r)


def _draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-5, 5, (n, 2)).astype(np.float32)
    return X, truth(X) + NOISE * rng.standard_normal(n)


def _function(est: Any, data: Data, order: int) -> tuple[float, float, Curve]:
    """Squared distance to the true function at every doubling of the rows; learners of all rows are fitted then."""
    rng = np.random.default_rng(order)
    points = rng.uniform(-5, 5, (POINTS, 2)).astype(np.float32)
    goal, n = truth(points), data.rows or 2**16
    seen, told, seconds, drawn = 0, [], 0.0, []
    by_rows = hasattr(est, "partial_fit")
    while seen < n:
        X, y = _draw(rng, min(BATCH, n - seen))
        seen += len(y)
        ask = seen == n or (batches := seen // BATCH) & (batches - 1) == 0
        start = time.perf_counter()
        if by_rows:
            est.partial_fit(X, y)
            seconds += time.perf_counter() - start
        else:
            drawn.append((X, y))
            if ask:
                est.fit(*map(np.concatenate, zip(*drawn, strict=True)))
                seconds = time.perf_counter() - start
        if ask:
            told.append((seen, float(f"{np.mean((est.predict(points) - goal) ** 2):.4g}")))
    return told[-1][1], seconds, [[t for t, _ in told], [e for _, e in told]]


def _posterior(est: Any, data: Data, order: int) -> tuple[float, float, Curve]:
    """Distance to the closed-form posterior of a Gaussian process, of the mean or the deviation (``of``).

    The error of the mean is relative to the mean's root mean square, that of the deviation to the mean deviation.
    """
    rng = np.random.default_rng(order)
    X, y = _draw(rng, data.rows or 2**11)
    points, _ = _draw(rng, POINTS)
    kernel = Gaussian(data.values["gamma"])
    factor = cho_factor(kernel.pairwise(X, X).astype(float) + NOISE * np.eye(len(y)))
    across = kernel.pairwise(points, X).astype(float)
    start = time.perf_counter()
    est.fit(X, y)
    seconds = time.perf_counter() - start
    if data.values["of"] == "mean":
        exact, got = across @ cho_solve(factor, y), est.predict(points)
        scale = np.sqrt(np.mean(exact**2))
    else:
        exact = np.sqrt(1 - np.einsum("ij,ji->i", across, cho_solve(factor, across.T)))
        got, scale = est.predict(points, return_std=True)[1], exact.mean()
    return float(np.sqrt(np.mean((got - exact) ** 2)) / scale), seconds, None
