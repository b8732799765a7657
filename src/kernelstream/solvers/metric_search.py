r"""The search for a metric: by many trials on few rows, and one round of gradients on more of them.

The kernel is solved again in the metrics that follow, a few times, as long as the error falls: from all columns alike
on, and from the columns that say something alone, each by as much as it says; then :math:`\rho` (how much of the part
off the diagonal counts), p and q, L, l, w, c and :math:`\lambda` are chosen by the same error, that at each row of a
function of all others. What was found on few rows is improved once on more of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .clock import Clock
from .metric import KernelMetric, Rows, root_of, scales_of, systems_of

SEARCHED = 4  # the search takes the fourth part of the rows, if that is neither too few nor too many,
MORE = 2  # and the improvement at its end so many times as many
FEWEST = 24  # rows: with fewer there is nothing to compare
ROUNDS, MOST_ROUNDS = 3, 8  # of gradients on the first rows, and on all rows, as long as the error falls
RHO, RHOS = 0.5, (0.0, 1.0)  # rho of the rounds, and the values that are tried beside it
POWERS, SHARPER = (1.0, 1.0), ((2.0, 2.0), (2.0, 1.0), (1.0, 2.0))  # p and q of the rounds, likewise
LENGTH, LEAST_LENGTH, MOST_LENGTH = 3.0, 0.1, 100.0  # of both kinds, next to the usual distance of two rows
SHARE, SHARES = 0.5, (0.2, 0.8)  # w, and the values that are tried beside it
RANKS, RANKINGS = 1.0, (0.0, 3.0)  # c, and the values that are tried beside it
LAM, LEAST_LAM, MOST_LAM = 0.03, 1e-4, 30.0  # the penalty
STEP, FINER = 3.0, 3.0**0.5  # factors by which lengths and penalty go up and down
DISTANCES_LAM, COARSER = 0.01, 10.0  # the penalty of distances alone on all rows, and the factor by which it goes down
BROAD = 1000  # columns up to which the part off the diagonal is tried


@dataclass(frozen=True)
class TriedMetric:
    """A metric with its error on held-out rows, and what it was made of."""

    metric: KernelMetric
    error: float
    alpha: Any  # (n, C), None where the matrix has no factor
    G: np.ndarray  # average gradient outer product, (d, d), and
    g: np.ndarray  # average squares of the slopes along ranks, (d,)
    rho: float
    powers: tuple[float, float]
    lengths: tuple[float, float]

    def made(self, **changes: Any) -> TriedMetric:
        """The same with other gradients, rho or powers; its error is not known."""
        new = replace(self, **changes)
        (p, q), (near, apart) = new.powers, new.lengths
        root, scales = root_of(new.G, new.rho, near, p), scales_of(new.g, apart, q)
        return replace(new, metric=replace(self.metric, root=root, scales=scales))

    def with_numbers(self, **changes: Any) -> TriedMetric:
        """The same with another share, factor of the ranks, penalty or the like; its error is not known."""
        return replace(self, metric=replace(self.metric, **changes))


class Trials:
    """Systems, solved as long as there is time."""

    def __init__(self, systems: Any, clock: Clock):
        self.systems, self.clock = systems, clock
        self.kept: tuple[tuple[Any, ...], Any] = (), None

    def of(self, *tried: TriedMetric) -> list[TriedMetric]:
        """The same with their errors and coefficients (n, C); where no time is left, errors are infinite."""
        if self.clock.cubed and self.clock.late():
            return [replace(one, error=np.inf, alpha=None) for one in tried]
        return [self._of(one) for one in tried]

    def _of(self, tried: TriedMetric) -> TriedMetric:
        begin = time.monotonic()
        error, alpha = self.systems.solved(self.table(tried.metric), tried.metric.lam)
        self.clock.measured(len(self.systems.Y), time.monotonic() - begin)
        self.clock.step(f"error {error:.4g}")
        return replace(tried, error=error, alpha=alpha)

    def table(self, metric: KernelMetric) -> Any:
        """Kernel values (n, n), those of before where the kernel is the same."""
        kernel = metric.root, metric.scales, metric.share, metric.ranks
        kept, K = self.kept
        if K is None or not all(a is b or (np.isscalar(a) and a == b) for a, b in zip(kernel, kept, strict=True)):
            K = self.systems.table(metric)
            self.kept = kernel, K
        return K


def learn_metric(
    rows: Rows,
    Y: np.ndarray,
    weight: np.ndarray | None,
    order: np.ndarray,
    ops: Any,
    clock: Clock,
    searched: tuple[int, int],
    fine: bool = False,
) -> KernelMetric:
    """The metric for rows, whose columns have the deviation 1, as have their ranks, and targets Y (n, C) of mean 0.

    ``order`` (k,) has the numbers of rows as they are taken, and ``searched`` how many are enough, and too many. With
    ``fine`` lengths and penalty are tuned again at the end, in smaller steps.
    """
    n, d = rows[0].shape
    first = _first(n, searched)
    a = np.ones(n) if weight is None else weight

    def trials(count: int) -> Trials:
        some = order[:count]
        return Trials(systems_of(ops, (rows[0][some], rows[1][some]), Y[some], a[some]), clock)

    if len(order) < FEWEST:
        return plain_metric(d)
    last = trials(first)
    best = from_few(last, plain_start(d, bool(rows[1].any())), SHARPER)
    if len(order) > first:
        last = trials(MORE * first)
        best = rounds_from(last, last.of(best)[0], most=1)
    return (tuned(last, best, FINER) if fine else best).metric


def _first(n: int, searched: tuple[int, int]) -> int:
    """Rows of n that the search begins with."""
    return int(np.clip(n // SEARCHED, *searched))


def sees_few(n: int, searched: tuple[int, int]) -> bool:
    """Whether n rows are more than the search has at its end."""
    return n > MORE * _first(n, searched)


def of_distances(trials: Any, metric: KernelMetric) -> KernelMetric:
    """The metric that was found, or one of distances alone from rounds on all rows of the trials, which has less error.

    Distances in a full metric are what many rows can teach and few cannot: where the penalty is small.
    """
    plain = plain_start(len(metric.scales), False).made(rho=1.0).with_numbers(share=1.0, lam=DISTANCES_LAM)
    found, start = trials.of(replace(plain, metric=metric), plain)
    return _best([found, _walked(trials, rounds_from(trials, start, MOST_ROUNDS), _penalty, COARSER)]).metric


def plain_metric(d: int, ranks: float = RANKS) -> KernelMetric:
    """All d columns alike."""
    return KernelMetric(root_of(np.eye(d), 0.0, LENGTH), scales_of(np.ones(d), LENGTH), SHARE, ranks, LAM)


def plain_start(d: int, ranked: bool, broad: int = BROAD) -> TriedMetric:
    """All d columns alike, to begin with; the part off the diagonal is tried with up to ``broad`` of them."""
    rho = RHO if 1 < d <= broad else 0.0
    plain = plain_metric(d, RANKS if ranked else 0.0)
    return TriedMetric(plain, np.inf, None, np.eye(d), np.ones(d), rho, POWERS, (LENGTH, LENGTH))


def from_few(trials: Trials, plain: TriedMetric, powers: tuple[tuple[float, float], ...] = ()) -> TriedMetric:
    """Rounds of gradients; then rho, the powers that are to be tried, lengths with their penalty, share and ranks.

    They begin with all columns alike and the penalty of least error. That one is large where most columns are noise,
    and so smooth a function does not tell which. So they also begin with a small penalty, where the function follows
    its rows, noise included, and with the columns that say something alone.
    """
    (plain,) = trials.of(plain)
    starts, walked, columns = [plain], _walked(trials, plain, _penalty), trials.systems.columns()
    if walked is not plain:
        starts.append(walked)
    if columns.any():
        starts.append(_walked(trials, trials.of(plain.made(G=np.diag(columns), g=columns))[0], _penalty))
    best = _best([rounds_from(trials, start) for start in starts])
    best = _least(trials, best, *(best.made(rho=rho) for rho in (RHOS if best.rho else ())))
    best = _least(trials, best, *(best.made(powers=pair) for pair in powers))
    best = tuned(trials, best)
    best = _least(trials, best, *(best.with_numbers(share=share) for share in SHARES))
    ranked = best.metric.ranks > 0
    return _least(trials, best, *(best.with_numbers(ranks=ranks) for ranks in (RANKINGS if ranked else ())))


def rounds_from(trials: Trials, last: TriedMetric, most: int = ROUNDS) -> TriedMetric:
    """The best of some metrics, each from the gradients in the one before; the second may be worse than the first."""
    best = last
    for number in range(most):
        last = _renewed(trials, last)
        if last.error < best.error:
            best = last
        elif number:
            break
    return best


def tuned(trials: Trials, best: TriedMetric, step: float = STEP) -> TriedMetric:
    """The same with other lengths and another penalty, as long as the error falls."""
    for move in (partial(_length, 0), partial(_length, 1), _penalty):
        best = _walked(trials, best, move, step)
    return best


def _renewed(trials: Trials, last: TriedMetric) -> TriedMetric:
    """The metric from the gradients of the function learned last; the same again where they say nothing."""
    if last.alpha is None:
        return last
    G, g = trials.systems.gradients(last.metric, last.alpha)
    if not (np.isfinite(G).all() and np.isfinite(g).all() and np.diag(G).max() > 0 and g.max() > 0):
        return last
    return trials.of(last.made(G=G, g=g))[0]


def _least(trials: Trials, best: TriedMetric, *others: TriedMetric) -> TriedMetric:
    """The one of least error: the best so far or, where they are better, one of the others."""
    return _best([best, *trials.of(*others)]) if others else best


def _best(tried: list[TriedMetric]) -> TriedMetric:
    return min(tried, key=lambda one: one.error)


def _walked(
    trials: Trials, best: TriedMetric, move: Callable[[TriedMetric, float], TriedMetric | None], step: float = STEP
) -> TriedMetric:
    """The best so far, moved up or down by a factor as long as the error falls."""
    factors: tuple[float, ...] = (step, 1 / step)
    while True:
        moved = {factor: new for factor in factors if (new := move(best, factor)) is not None}
        found = _least(trials, best, *moved.values())
        if found is best:
            return best
        factors = tuple(factor for factor, new in moved.items() if new.metric is found.metric)
        best = found


def _penalty(best: TriedMetric, factor: float) -> TriedMetric | None:
    lam = best.metric.lam * factor
    return best.with_numbers(lam=lam) if 0.99 * LEAST_LAM < lam < 1.01 * MOST_LAM else None


def _length(kind: int, best: TriedMetric, factor: float) -> TriedMetric | None:
    """The penalty goes with a length, as a short one takes more."""
    near, apart = best.lengths
    lengths = (near * factor, apart) if kind == 0 else (near, apart * factor)
    if not LEAST_LENGTH < lengths[kind] < MOST_LENGTH:
        return None
    name = ("root", "scales")[kind]
    shorter: dict[str, Any] = {name: getattr(best.metric, name) / factor, "lam": best.metric.lam / factor}
    return replace(best.with_numbers(**shorter), lengths=lengths)
