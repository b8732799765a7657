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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...kernels import Gaussian, Kernel
from ...kernels.bandwidth import median_rows
from ...losses import Loss
from ...random import SeedStream, generator
from ...rows import Rows, bounds, divided, width_between
from ...solvers.falkon import CenterMatrix, falkon, kernel_blocks
from ...solvers.ridge_trials import RidgeTrials
from ..binning.fit import best_constant

LAMS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
USUAL = 0.1  # best or next to it on nearly all sets that were tried
FIRST_FRACTION = 0.5  # of the median distance: where the search of the bandwidth begins
LEAST_ROWS = 24  # with fewer there is nothing to compare
FOLDED = 2_000  # fewer rows than this are cut into four folds, each held out once
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


@dataclass
class TriedKernel:
    """A kernel on columns divided by widths, with what its trials have found."""

    error: float  # the least over the penalties
    lam: int  # the penalty that has it
    kernel: Kernel
    trials: list[Any]  # one for each fold
    alpha: Any  # coefficients (m, penalties, C) of the first fold


@dataclass
class FalkonSearch:
    """The rows and everything that stays the same while widths, bandwidth and penalty vary."""

    X: Rows  # (n, d)
    Y: np.ndarray  # (n, C)
    weight: np.ndarray | None
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
        n = self.X.shape[0]
        few, more = (size.of(self.n_centers, self._on_device) for size in (FIRST_TRIALS, LAST_TRIALS))
        order = self._order(more[0])
        ways = widths(self.X, order)
        if n < LEAST_ROWS:
            kernel = scaled(kernel_on(divided(self.X, ways["range"])), FIRST_FRACTION)
            return ways["range"], kernel, USUAL
        seen = self.X[order[: few[0]]]
        seen = seen[median_rows(seen.shape[0])]

        def base(width: np.ndarray) -> Kernel:
            return kernel_on(divided(seen, width))

        samples = self._samples(base(ways["range"]), *few)
        first = {name: _try([s.at(w) for s in samples], scaled(base(w), FIRST_FRACTION)) for name, w in ways.items()}
        best = min(first, key=lambda name: first[name].error)
        start, kernel = ways[best], base(ways[best])
        tried = {FIRST_FRACTION: first[best]}
        for factor in (0.5, 2.0):
            fraction = FIRST_FRACTION
            while tried[fraction].error == min(t.error for t in tried.values()) and 2.0**-6 <= fraction <= 2.0**4:
                fraction *= factor
                tried[fraction] = _try(tried[FIRST_FRACTION].trials, scaled(kernel, fraction))
        fraction = min(tried, key=lambda f: tried[f].error)
        width, fraction = self._by_slopes(samples, start, fraction, tried[fraction], base)
        kernel, samples = base(width), self._samples(kernel, *more)
        trials = [s.at(width) for s in samples]
        finer = {f: _try(trials, scaled(kernel, f)) for f in (fraction, 0.7 * fraction)}
        other = 0.5 * fraction if finer[0.7 * fraction].error < finer[fraction].error else 1.4 * fraction
        finer[other] = _try(trials, scaled(kernel, other))
        fraction = min(finer, key=lambda f: finer[f].error)
        found, new = finer[fraction], self._sloped(start, width, finer[fraction])
        if new is not None:  # gradients of a better function than those before
            last = _try([s.at(new) for s in samples], scaled(base(new), fraction))
            width, found = (new, last) if last.error < found.error else (width, found)
        return width, found.kernel, LAMS[found.lam]

    def _by_slopes(
        self, samples: list[Any], start: np.ndarray, fraction: float, last: TriedKernel, base: Any
    ) -> tuple[np.ndarray, float]:
        """Widths (d,) from gradients, and the fraction of the kernel ``base(width)`` there.

        ``start`` are the first widths, ``last`` what was tried with them and the kernel scaled by ``fraction``.
        """
        width = start
        for _ in range(ROUNDS):
            new = self._sloped(start, width, last)
            if new is None:
                break
            trials, kernel = [s.at(new) for s in samples], base(new)
            tried = {f: _try(trials, scaled(kernel, f)) for f in (fraction / 2, fraction, 2 * fraction)}
            best = min(tried, key=lambda f: tried[f].error)
            if not tried[best].error < last.error:
                break
            width, fraction, last = new, best, tried[best]
        return width, fraction

    def _sloped(self, start: np.ndarray, width: np.ndarray, last: TriedKernel) -> np.ndarray | None:
        """Widths (d,) from the gradients of the function learned last, with ``width``; None if they say nothing."""
        d = len(start)
        if sp.issparse(self.X) or d < 2:
            return None
        some = SLOPE_ROWS if getattr(last.kernel, "radial", False) else max(1, min(SLOPE_ROWS, SLOPES // d))
        alpha = last.alpha[:, last.lam]
        slopes = last.trials[0].slopes(last.kernel, alpha, some) * (start / width)  # of the columns at the start
        if not (np.isfinite(slopes).all() and slopes.max() > 0):
            return None
        return start / np.maximum(slopes / slopes.max(), FLATTEST)

    def penalty(self, kernel: Kernel) -> float:
        """The best of a few penalties; rows must be divided already."""
        if self.X.shape[0] < LEAST_ROWS:
            return USUAL
        rows, m = LAST_TRIALS.of(self.n_centers, self._on_device)
        if self.loss.name == "squared":
            width = np.ones(self.X.shape[1])
            return LAMS[_try([s.at(width) for s in self._samples(kernel, rows, m)], kernel).lam]
        total = np.zeros(len(LAMS))
        for train, test in self._cuts(rows):
            Y, weight = self.Y[train], self._at(train)
            offset = best_constant(Y, weight, self.loss)
            centers = np.arange(min(FIRST_TRIALS.of(self.n_centers, self._on_device)[1], len(train)))
            Z = CenterMatrix(kernel, self.X[train], centers, self.ops)
            held = kernel_blocks(kernel, self.X[test], self.X[train[centers]], self.ops)
            start = None
            for k, lam in enumerate(LAMS):
                start = falkon(Z, Y, self.loss, lam, self.ops, weight=weight, offset=offset, start=start, tol=1e-2).W
                values = self.loss.value(self.Y[test], held.dot(Z.coefficients(start)) + offset)
                total[k] += np.average(values.sum(axis=1), weights=self._at(test))
        return LAMS[int(np.argmin(total))]

    @property
    def _on_device(self) -> bool:
        return getattr(self.ops, "cuda", False)

    def _samples(self, kernel: Kernel, rows: int, m: int) -> list[Any]:
        """What trials with a kernel of this kind are made on, one for each fold."""
        found = []
        for train, test in self._cuts(rows):
            held = self.X[test], self.Y[test], self._at(test)
            found.append(RidgeTrials(self.X[train], self.Y[train], self._at(train), held, m, LAMS))
        own = getattr(self.ops, "ridge_trials", None)
        return found if own is None else [own(kernel, sample) for sample in found]

    def _order(self, rows: int) -> np.ndarray:
        """Some rows in random order."""
        return generator(self.seed, SeedStream.FALKON_TRIALS).permutation(self.X.shape[0])[:rows]

    def _cuts(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from, in random order, and rows to test on: one cut of many rows, four of few.

        To be tested costs a row little, and steadies the choice.
        """
        order = self._order(rows + MOST_HELD_OUT)
        if len(order) < FOLDED:
            quarters = np.array_split(order, 4)
            for k in range(4):
                yield np.concatenate(quarters[:k] + quarters[k + 1 :]), quarters[k]
        else:
            learned = min(rows, 3 * len(order) // 4)
            yield order[:learned], order[learned:]

    def _at(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.weight is None else self.weight[rows]


def _try(trials: list[Any], kernel: Kernel) -> TriedKernel:
    """Squared errors on the held-out rows of all folds."""
    paths = [trial.path(kernel) for trial in trials]
    errors = np.sum([errors for errors, _ in paths], axis=0)
    lam = int(np.argmin(errors))
    return TriedKernel(float(errors[lam]), lam, kernel, trials, paths[0][1])
