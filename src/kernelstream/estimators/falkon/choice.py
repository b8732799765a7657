r"""Widths of the columns, bandwidth and penalty by short trials on held-out rows, for models that were given none.

A column that the learned function f does not depend on should be wide, one that it turns on narrow:

.. math:: 1 / w_j \propto \sqrt{E\, (\partial f / \partial x_j)^2}

is the diagonal of the average gradient outer product. f is learned, the widths follow from it, f is learned again, as
long as the error on held-out rows falls.

Trials have a part of the rows and centres of the solution that they are made for, so that all of them together cost
about as much as it does, or less.

References
----------
Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 383, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...kernels import Gaussian, Kernel
from ...kernels.bandwidth import median_rows
from ...losses import Loss
from ...random import SeedStream, generator
from ...rows import Rows, bounds, divided, width_between
from ...solvers import best_constant
from ...solvers.falkon import CenterMatrix, falkon, kernel_blocks
from ...solvers.search import Fold, Sample, Tried, downhill, folds, least, path, tried
from .trials import RidgeTrials

LAMS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
USUAL = 0.1  # best or next to it on nearly all sets that were tried
FIRST_FRACTION = 0.5  # of the median distance: where the search of the bandwidth begins,
NARROWER, WIDER = tuple(2.0**-k for k in range(2, 8)), tuple(2.0**k for k in range(6))  # and where it goes on
LEAST_ROWS = 24  # with fewer there is nothing to compare
FOLDED = 2_000  # fewer rows than this are cut into four folds
MOST_HELD_OUT = 2_000  # rows that the others are tested on, at most
ROUNDS = 4  # of widths from gradients, at most
SLOPE_ROWS = 500  # rows that gradients are taken at; for kernels that are no function of the distance
SLOPES = 20_000  # differences along single columns, at most
FLATTEST = 1e-3  # a column that does not matter is so much wider than the one that matters most


@dataclass(frozen=True)
class Size:
    """Of trials: a part of the centres of the solution, within bounds, and some rows for each."""

    part: float
    least: int
    most: int  # where the processor makes the trials
    most_on_device: int
    each: int  # rows for a centre

    def of(self, n_centers: int, on_device: bool) -> tuple[int, int]:
        """Rows and centres."""
        most = self.most_on_device if on_device else self.most
        m = min(max(int(self.part * n_centers), self.least), most, n_centers)
        return self.each * m, m


FIRST_TRIALS = Size(0.3, 150, 400, 1000, 8)  # the first trials
LAST_TRIALS = Size(1 / 2, 400, 1000, 4000, 6)  # and the last ones


def scaled(kernel: Kernel, fraction: float) -> Kernel:
    """The same kernel with its width multiplied by ``fraction``."""
    name = kernel.bandwidth
    if name is None or fraction == 1.0:
        return kernel
    power = 1.0 if name == "length" else -2.0 if isinstance(kernel, Gaussian) else -1.0
    values = kernel.get_params(deep=False)
    return type(kernel)(**{**values, name: values[name] * fraction**power})


def widths(X: Rows, some: np.ndarray) -> dict[str, np.ndarray]:
    """Ways to divide columns, (d,) each: by their range, by the deviation of some rows, or all by one number."""
    part, (low, high) = X[some], bounds(X)
    if sp.issparse(X):
        mean = np.asarray(part.mean(axis=0, dtype=np.float64)).ravel()
        variance = np.asarray(part.multiply(part).mean(axis=0, dtype=np.float64)).ravel() - mean**2
    else:
        variance = part.var(axis=0, dtype=np.float64)
    spread = width_between(low, high)
    deviation = np.where(high <= low, 0.0, np.sqrt(np.maximum(variance, 0.0)))
    common = float(np.sqrt(np.mean(deviation**2))) or 1.0
    return {
        "range": spread,
        "deviation": np.where(deviation == 0, spread, deviation),
        "one": np.full(X.shape[1], common),
    }


@dataclass(frozen=True)
class Widths:
    """Trials on columns divided by widths (d,), and the kernel whose bandwidth is the median distance there."""

    width: np.ndarray
    kernel: Kernel
    trials: list[Any]  # one for each fold

    def tried(self, fraction: float) -> Tried:
        """The kernel scaled by a fraction; what was found are its coefficients (m, penalties, C) in the first fold."""
        kernel = scaled(self.kernel, fraction)
        return tried((self, fraction), (trial.path(kernel) for trial in self.trials))


@dataclass
class FalkonSearch:
    """The rows and everything that stays the same while widths, bandwidth and penalty vary."""

    sample: Sample
    loss: Loss
    seed: int
    ops: Any
    n_centers: int

    def widths_and_kernel(self, kernel_on: Any) -> tuple[np.ndarray, Kernel, float]:
        """Widths (d,), the kernel and the penalty with the least squared error on held-out rows.

        ``kernel_on(X)`` is the kernel whose bandwidth is the median distance of rows. The widths are compared at half
        of it; then the bandwidth goes down and up by halves from there as long as the error falls, with few rows
        and centres, and once more down with more of them: the more centres, the narrower a kernel may be.
        """
        X = self.sample.X
        few, more = (size.of(self.n_centers, self._on_device) for size in (FIRST_TRIALS, LAST_TRIALS))
        order = self._order(more[0])
        ways = widths(X, order)
        if X.shape[0] < LEAST_ROWS:
            return ways["range"], scaled(kernel_on(divided(X, ways["range"])), FIRST_FRACTION), USUAL
        seen = X[order[: few[0]]]
        seen = seen[median_rows(seen.shape[0])]

        def trials(rows: int, m: int) -> Callable[[np.ndarray], Widths]:
            samples = self._samples(kernel_on(divided(seen, ways["range"])), rows, m)
            return lambda width: Widths(width, kernel_on(divided(seen, width)), [s.at(width) for s in samples])

        at = trials(*few)
        first = least([at(width).tried(FIRST_FRACTION) for width in ways.values()])
        start, _ = first.value
        best = downhill(start.tried, NARROWER, first)
        if best is first:
            best = downhill(start.tried, WIDER, first)
        (chosen, fraction), at = self._by_slopes(at, start.width, best).value, trials(*more)
        chosen = at(chosen.width)
        finer = [chosen.tried(fraction), chosen.tried(0.7 * fraction)]
        finer.append(chosen.tried((0.5 if finer[1].error < finer[0].error else 1.4) * fraction))
        best = least(finer)
        new = self._sloped(start.width, best)
        if new is not None:  # gradients of a better function than those before
            best = downhill(at(new).tried, [best.value[1]], best)
        chosen, fraction = best.value
        return chosen.width, scaled(chosen.kernel, fraction), LAMS[best.penalty]

    def _by_slopes(self, at: Callable[[np.ndarray], Widths], start: np.ndarray, best: Tried) -> Tried:
        """The best so far, or better widths from gradients; ``start`` (d,) are the first widths."""
        for _ in range(ROUNDS):
            new = self._sloped(start, best)
            if new is None:
                break
            there, fraction = at(new), best.value[1]
            last, best = best, least([best, *(there.tried(f) for f in (fraction / 2, fraction, 2 * fraction))])
            if best is last:
                break
        return best

    def _sloped(self, start: np.ndarray, last: Tried) -> np.ndarray | None:
        """Widths (d,) from the gradients of the function that was tried last; None if they say nothing."""
        d, (at, fraction) = len(start), last.value
        if sp.issparse(self.sample.X) or d < 2:
            return None
        kernel = scaled(at.kernel, fraction)
        some = SLOPE_ROWS if getattr(kernel, "radial", False) else max(1, min(SLOPE_ROWS, SLOPES // d))
        # of the columns at the start
        slopes = at.trials[0].slopes(kernel, last.found[:, last.penalty], some) * (start / at.width)
        if not (np.isfinite(slopes).all() and slopes.max() > 0):
            return None
        return start / np.maximum(slopes / slopes.max(), FLATTEST)

    def penalty(self, kernel: Kernel) -> float:
        """The best of a few penalties; rows must be divided already."""
        if self.sample.X.shape[0] < LEAST_ROWS:
            return USUAL
        rows, m = LAST_TRIALS.of(self.n_centers, self._on_device)
        if self.loss.name == "squared":
            width = np.ones(self.sample.X.shape[1])
            trials = (s.at(width).path(kernel) for s in self._samples(kernel, rows, m))
        else:
            m = FIRST_TRIALS.of(self.n_centers, self._on_device)[1]
            trials = (self._smooth_path(kernel, fold, m) for fold in self._folds(rows))
        return LAMS[tried(kernel, trials).penalty]

    def _smooth_path(self, kernel: Kernel, fold: Fold, m: int) -> tuple[np.ndarray, Any]:
        """Mean losses of the held-out rows, of a loss that is not squared."""
        (X, Y, weight), held, loss = fold.learned, fold.held, self.loss
        offset, centers = best_constant(Y, weight, loss), np.arange(min(m, len(Y)))
        Z = CenterMatrix(kernel, X, centers, self.ops)
        K = kernel_blocks(kernel, held.X, X[centers], self.ops)

        def step(lam: float, start: Any) -> tuple[Any, float]:
            W = falkon(Z, Y, loss, lam, self.ops, weight=weight, offset=offset, start=start, tol=1e-2).W
            values = loss.value(held.Y, K.dot(Z.coefficients(W)) + offset)
            return W, float(np.average(values.sum(axis=1), weights=held.weight))

        return path(LAMS, step)

    @property
    def _on_device(self) -> bool:
        return getattr(self.ops, "cuda", False)

    def _samples(self, kernel: Kernel, rows: int, m: int) -> list[Any]:
        """What trials with a kernel of this kind are made on, one for each fold."""
        found = [RidgeTrials(fold, m, LAMS) for fold in self._folds(rows)]
        own = getattr(self.ops, "ridge_trials", None)
        return found if own is None else [own(kernel, sample) for sample in found]

    def _order(self, rows: int) -> np.ndarray:
        """Some rows in random order."""
        return generator(self.seed, SeedStream.FALKON_TRIALS).permutation(self.sample.X.shape[0])[:rows]

    def _folds(self, rows: int) -> list[Fold]:
        """So many rows to learn from, in random order, and some to test on."""
        order = self._order(rows + MOST_HELD_OUT)
        return folds(self.sample, order, FOLDED, min(rows, 3 * len(order) // 4))
