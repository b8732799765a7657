"""Bandwidth and penalty by a quick held-out search, for models that were given none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import grids as _grids
from ...core.cell_matrix import CellMatrix
from ...features.binning import most_threads
from ...losses import Loss, Squared
from ...random import SeedStream, generator
from ...solvers import ConjugateGradient, Solver, best_constant
from ...solvers.search import Fold, Sample, Tried, downhill, folds, least, mistakes, path, squares, tried
from ...state.nested import State
from .fit import largest_penalty, make_features, solve

GAMMAS = tuple(2.0**k for k in range(-2, 5))  # on columns divided by their range
FEW_ROWS, MORE_ROWS = 30_000, 120_000
FEW_GRIDS, MORE_GRIDS = 32, 64
RIDGES = (10.0, 1.0, 0.1, 0.01)
SHARES = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the penalty above which all weights are zero
_FOLDED = 5_000  # fewer rows than this are cut into four folds
_QUICK = ConjugateGradient(tol=1e-2, max_iter=30)


@dataclass
class Search:
    """A learner, what its state knows already, and the rows on which bandwidths and penalties are compared."""

    learner: Any  # Binning
    state: State
    sample: Sample

    def bandwidth(self, median: float) -> float:
        """gamma among 2^-2 … 2^4 on few rows and grids, then against 2 gamma on more of both.

        Where the median rule lies below 2^-2, as it does with many columns, the search begins there; it ends when
        two values in a row have been worse than the best.
        """
        if self.sample.X.shape[0] < 8:
            return 1.0
        few = self._folds(FEW_ROWS)
        gammas = (*_powers_between(median, GAMMAS[0]), *GAMMAS)
        best = downhill(lambda gamma: self._ridge(gamma, few, FEW_GRIDS), gammas, patience=2).value
        more = self._folds(MORE_ROWS)
        return float(least(self._ridge(gamma, more, MORE_GRIDS) for gamma in (best, 2 * best)).value)

    def penalty(self, kernel: Any, relative: bool) -> float:
        """The best of a few penalties with a kernel; with ``relative``, as a share of the largest useful one."""
        choices, learner = SHARES if relative else RIDGES, self.learner
        if self.sample.X.shape[0] < 8:
            return choices[2]
        how = MORE_GRIDS, learner.solver, learner.context.loss_for(2), choices, relative
        return choices[tried(kernel, (self._path(fold, kernel, *how) for fold in self._folds(MORE_ROWS))).penalty]

    def _ridge(self, gamma: float, some: list[Fold], grids: int) -> Tried:
        kernel = self.learner.kernel({"gamma": gamma})
        return tried(gamma, (self._path(fold, kernel, grids, _QUICK, Squared(), (0.1,), False) for fold in some))

    def _path(
        self, fold: Fold, kernel: Any, R: int, solver: Solver, loss: Loss, choices: Sequence[float], relative: bool
    ) -> tuple[np.ndarray, Any]:
        """Errors on the held-out rows of models with R grids, one for each penalty."""
        ops, threads, state, (X, Y, weight) = self.learner.ops, most_threads(), self.state, fold.learned
        grids = _grids.draw(kernel, state["seed"], X.shape[1], R, X.dtype, state.get("width"))
        features = make_features(X, grids, ops, threads)
        starts, offset = features.Z.starts, best_constant(Y, weight, loss)
        table = ops.binning.cell_table(features.keys, starts)
        cells = ops.binning.find_cells(fold.held.X, grids, table, threads)
        held = CellMatrix(cells, starts, ops.binning, threads, missing=True)
        unit = largest_penalty(features, Y, weight, loss, offset) if relative else 1.0
        given = {"offset": offset, "dtype": np.dtype(state["dtype"]), "seed": state["seed"]}
        error = squares if self.learner.regression else mistakes

        def step(choice: float, start: Any) -> tuple[Any, float]:
            lam = max(choice * unit, 1e-12)
            W = solve(features, solver, Y, loss, lam, ops, weight, start=start, **given).W
            return W, error(held.dot(W) + offset, fold.held.Y, fold.held.weight)

        return path(choices, step)

    def _folds(self, rows: int) -> list[Fold]:
        """Some rows in random order, cut: the first quarter is held out, or each of few rows."""
        order = generator(self.state["seed"], SeedStream.GRID_ROWS).permutation(self.sample.X.shape[0])[:rows]
        held = -(-len(order) // 4)
        if len(order) >= _FOLDED:
            order = np.concatenate([order[held:], order[:held]])
        return folds(self.sample, order, _FOLDED, len(order) - held)


def _powers_between(low: float, high: float) -> list[float]:
    """Powers of two from the last one not above ``low`` up to ``high``, without it."""
    powers = []
    while high > low:
        high /= 2
        powers.append(high)
    return powers[::-1]
