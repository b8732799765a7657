r"""The search for a metric: on few rows by many trials, what comes close again on more, and one round on most.

The kernel is solved again in the metrics that follow, a few times, as long as the error falls: from all columns alike
on, and from the columns that say something alone, each by as much as it says; then :math:`\rho` (how much of the part
off the diagonal counts), p and q, L, l, w, c and :math:`\lambda` are chosen by the same error, that at each row of a
function of all others. What was found on few rows is improved once on more of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core import threads
from .clock import Clock
from .metric import KernelMetric, Rows, root_of, scales_of, systems_of

OF_ALL = 0.4  # of the rows the last stage takes so many, if they are neither too few nor too many
FEWEST = 24  # rows: with fewer there is nothing to compare
ROUNDS, MOST_ROUNDS = 3, 8  # of gradients on the first rows, and on all rows, as long as the error falls
RHO, RHOS = 0.5, (0.0, 1.0)  # rho of the rounds, and the values that are tried beside it
POWERS, SHARPER = (1.0, 1.0), ((2.0, 2.0), (2.0, 1.0), (1.0, 2.0))  # p and q of the rounds, likewise
LENGTH, LEAST_LENGTH, MOST_LENGTH = 3.0, 0.1, 100.0  # of both kinds, next to the usual distance of two rows
SHARE, SHARES = 0.5, (0.2, 0.8)  # w, and the values that are tried beside it
RANKS, RANKINGS = 1.0, (0.0, 3.0)  # c, and the values that are tried beside it
LAM, LEAST_LAM, MOST_LAM = 0.03, 1e-4, 30.0  # the penalty
MARGIN = 1.1  # errors of candidates, next to the least, up to which they are tried again on more rows
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

    def choice(self, name: str) -> Any:
        """Its value of a number by its name: rho, powers, share or ranks."""
        return getattr(self if name in ("rho", "powers") else self.metric, name)

    def with_choice(self, name: str, value: Any) -> TriedMetric:
        """The same with another value of such a number; its error is not known."""
        return self.made(**{name: value}) if name in ("rho", "powers") else self.with_numbers(**{name: value})

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
        solved, begin = list(tried), time.monotonic()

        def work(i: int) -> None:
            error, alpha = self.systems.solved(self.table(tried[i].metric), tried[i].metric.lam)
            solved[i] = replace(tried[i], error=error, alpha=alpha)

        threads.each(work, range(len(tried)), self.systems.side_by_side)
        if tried:
            self.clock.measured(len(self.systems.Y), (time.monotonic() - begin) / len(tried), self.systems.products)
        for one in solved:
            self.clock.step(f"error {one.error:.4g}")
        return solved

    def table(self, metric: KernelMetric) -> Any:
        """Kernel values (n, n), those of before where the kernel is the same."""
        kernel = metric.root, metric.scales, metric.share, metric.ranks
        kept, K = self.kept
        if K is None or not all(a is b or (np.isscalar(a) and a == b) for a, b in zip(kernel, kept, strict=True)):
            K = self.systems.table(metric)
            self.kept = kernel, K
        return K


class Searched(NamedTuple):
    """Rows of the stages of a search: the first two, and the least and most of the last."""

    first: int
    second: int
    least: int
    most: int

    def of(self, n: int) -> tuple[int, int, int]:
        """Rows of each stage, where there are n."""
        return self.first, self.second, int(np.clip(OF_ALL * n, self.least, self.most))


def learn_metric(
    rows: Rows,
    Y: np.ndarray,
    weight: np.ndarray | None,
    order: np.ndarray,
    ops: Any,
    clock: Clock,
    searched: Searched,
    fine: bool = False,
) -> KernelMetric:
    """The metric for rows, whose columns have the deviation 1, as have their ranks, and targets Y (n, C) of mean 0.

    ``order`` (k,) has the numbers of rows as they are taken. What is found on few rows, and what came close to it, is
    tried again on more. With ``fine`` lengths and penalty are tuned again at the end, in smaller steps.
    """
    n, d = rows[0].shape
    a = np.ones(n) if weight is None else weight

    def trials(count: int) -> Trials:
        some = order[:count]
        return Trials(systems_of(ops, (rows[0][some], rows[1][some]), Y[some], a[some]), clock)

    if len(order) < FEWEST:
        return plain_metric(d)
    first, second, most = searched.of(n)
    last = trials(first)
    found = from_few(last, plain_start(d, bool(rows[1].any())), SHARPER)
    best = found.best
    if first < second and first < len(order):
        last = trials(second)
        best = _settled(last, found)
    if second < len(order):
        last = trials(most)
        best = rounds_from(last, last.of(best)[0], most=1)
    return (tuned(last, best, FINER) if fine else best).metric


def sees_few(n: int, searched: Searched) -> bool:
    """Whether n rows are more than the search has at its end."""
    return n > searched.of(n)[-1]


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


class Found(NamedTuple):
    """What few rows tell."""

    best: TriedMetric
    start: TriedMetric  # the best of those that the search began with
    choices: list[tuple[str, Any]]  # numbers of the kernel with values of about the same error


def from_few(trials: Trials, plain: TriedMetric, powers: tuple[tuple[float, float], ...] = ()) -> Found:
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
    ends = list(starts)

    def work(i: int) -> None:
        ends[i] = rounds_from(trials, starts[i])

    threads.each(work, range(len(starts)), trials.systems.side_by_side)
    best, choices = _best(ends), []
    for name, values in (
        ("rho", RHOS if best.rho else ()),
        ("powers", powers),
        ("", ()),
        ("share", SHARES),
        ("ranks", RANKINGS if best.metric.ranks > 0 else ()),
    ):
        if not name:
            best = tuned(trials, best)
            continue
        tried = [best, *trials.of(*(best.with_choice(name, value) for value in values))]
        best = _best(tried)
        choices += [(name, one.choice(name)) for one in tried if one is not best and one.error < MARGIN * best.error]
    return Found(best, _best(starts), choices)


def _settled(trials: Trials, found: Found) -> TriedMetric:
    """The best on more rows, after more rounds: choices once more, and lengths; or the beginning, if it is better."""
    start, best = trials.of(found.start, found.best)
    best = rounds_from(trials, best)
    for _, choices in itertools.groupby(found.choices, key=lambda choice: choice[0]):
        best = _least(trials, best, *(best.with_choice(*choice) for choice in choices))
    return _best([tuned(trials, best), start])


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
