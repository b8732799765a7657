"""Bandwidth and penalty by a quick held-out search, for models that were given none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import grids as _grids
from ...core.cell_matrix import CellMatrix
from ...features.binning import most_threads
from ...losses import Loss, Squared
from ...random import SeedStream, generator
from ...rows import Rows
from ...solvers import ConjugateGradient, Solver
from ...state.nested import State
from .fit import Features, best_constant, largest_penalty, make_features, solve

GAMMAS = tuple(2.0**k for k in range(-2, 5))  # on columns divided by their range
FEW_ROWS, MORE_ROWS = 30_000, 120_000
FEW_GRIDS, MORE_GRIDS = 32, 64
RIDGES = (10.0, 1.0, 0.1, 0.01)
SHARES = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the penalty above which all weights are zero
_FOLDED = 5_000  # fewer rows than this are cut into four folds, each held out once
_QUICK = ConjugateGradient(tol=1e-2, max_iter=30)


def mistakes(F: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """Share of wrong labels, and a little of the squared error, for scores F and targets ±1, (n, C)."""
    wrong = (F >= 0) != (Y > 0) if Y.shape[1] == 1 else F.argmax(axis=1) != Y.argmax(axis=1)
    return float(np.average(wrong.ravel(), weights=weight) + 1e-6 * np.square(F - Y).mean())


def squares(F: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """Mean squared error."""
    return float(np.average(np.square(F - Y).sum(axis=1), weights=weight))


@dataclass
class Search:
    """A learner, what its state knows already, and the rows on which bandwidths and penalties are compared."""

    learner: Any  # Binning
    state: State
    X: Rows  # (n, d)
    Y: np.ndarray  # (n, C)
    weight: np.ndarray | None

    def bandwidth(self, median: float) -> float:
        """gamma among 2^-2 … 2^4 on few rows and grids, then against 2 gamma on more of both.

        Where the median rule lies below 2^-2, as it does with many columns, the search begins there; it ends when
        two values in a row have been worse than the best.
        """
        if self.X.shape[0] < 8:
            return 1.0
        errors: dict[float, float] = {}
        for gamma in (*_powers_between(median, GAMMAS[0]), *GAMMAS):
            errors[gamma] = self._ridge_error(gamma, FEW_ROWS, FEW_GRIDS)
            if list(errors).index(min(errors, key=errors.__getitem__)) < len(errors) - 2:
                break
        best = min(errors, key=errors.__getitem__)
        pair = (best, 2 * best)
        return pair[int(np.argmin([self._ridge_error(gamma, MORE_ROWS, MORE_GRIDS) for gamma in pair]))]

    def penalty(self, kernel: Any, relative: bool) -> float:
        """The best of a few penalties with a kernel; with ``relative``, as a share of the largest useful one."""
        choices, loss = SHARES if relative else RIDGES, self.learner.context.loss_for(2)
        if self.X.shape[0] < 8:
            return choices[2]
        totals = np.zeros(len(choices))
        for train, test in self._cuts(MORE_ROWS):
            features, held = self._cells(kernel, train, test, MORE_GRIDS)
            Y, weight = self.Y[train], self._weights(train)
            offset = best_constant(Y, weight, loss)
            unit = largest_penalty(features, Y, weight, loss, offset) if relative else 1.0
            start = None
            for k, choice in enumerate(choices):
                lam = max(choice * unit, 1e-12)
                start = self._solve(features, self.learner.solver, Y, loss, lam, weight, offset, start)
                totals[k] += self._error(held.dot(start) + offset, test)
        return choices[int(np.argmin(totals))]

    def _ridge_error(self, gamma: float, rows: int, grids: int) -> float:
        total = 0.0
        for train, test in self._cuts(rows):
            features, held = self._cells(self.learner.kernel({"gamma": gamma}), train, test, grids)
            Y, weight = self.Y[train], self._weights(train)
            offset = best_constant(Y, weight, Squared())
            W = self._solve(features, _QUICK, Y, Squared(), 0.1, weight, offset, None)
            total += self._error(held.dot(W) + offset, test)
        return total

    def _solve(
        self, features: Features, solver: Solver, Y: Any, loss: Loss, lam: float, weight: Any, offset: Any, start: Any
    ) -> Any:
        given = {"offset": offset, "start": start, "dtype": np.dtype(self.state["dtype"]), "seed": self.state["seed"]}
        return solve(features, solver, Y, loss, lam, self.learner.ops, weight, **given).W

    def _error(self, F: np.ndarray, rows: np.ndarray) -> float:
        """Of scores F of some rows."""
        return (squares if self.learner.regression else mistakes)(F, self.Y[rows], self._weights(rows))

    def _cells(self, kernel: Any, train: np.ndarray, test: np.ndarray, R: int) -> tuple[Features, CellMatrix]:
        ops, threads, state = self.learner.ops, most_threads(), self.state
        grids = _grids.draw(kernel, state["seed"], self.X.shape[1], R, self.X.dtype, state.get("width"))
        features = make_features(self.X[train], grids, ops, threads)
        table = ops.binning.cell_table(features.keys, features.Z.starts)
        cells = ops.binning.find_cells(self.X[test], grids, table, threads)
        return features, CellMatrix(cells, features.Z.starts, ops.binning, threads, missing=True)

    def _cuts(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and rows to test on: one cut of many rows, four of few."""
        order = generator(self.state["seed"], SeedStream.GRID_ROWS).permutation(self.X.shape[0])[:rows]
        quarters = np.array_split(order, 4)
        for k in range(4 if len(order) < _FOLDED else 1):
            yield np.sort(np.concatenate(quarters[:k] + quarters[k + 1 :])), np.sort(quarters[k])

    def _weights(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.weight is None else self.weight[rows]


def _powers_between(low: float, high: float) -> list[float]:
    """Powers of two from the last one not above ``low`` up to ``high``, without it."""
    powers = []
    while high > low:
        high /= 2
        powers.append(high)
    return powers[::-1]
