"""Kernel functions at all rows in a learned metric: what the estimators of :mod:`.metric` learn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..checks import one_of, positive
from ..core import threads
from ..passes.metric.python import leaf_of, logarithms
from ..random import SeedStream, generator
from ..rows import Rows, merged
from ..solvers.clock import Clock
from ..solvers.kernel_ridge import RowMatrix, addition, by_products, descend
from ..solvers.metric import KernelMetric, between, systems_of, table
from ..solvers.metric import Rows as Pair
from ..solvers.metric_search import BROAD, TriedMetric, learn_metric, of_distances, sees_few
from ..solvers.ranks import KNOTS, rank_knots
from ..state.schema import POSITIVE, Array, Number, Schema, check, length
from . import _leaves
from ._contract.base import State
from ._contract.learner import Learner
from ._metric_rows import RANKS, dense_rows, pair_of, scaled_targets, standard_rows, units_of
from ._steepness import STEEPEST, labels, steepness

EXACT_ON_GPU = 80_000  # rows up to which one system of a GPU has all of them
AGAIN_ON_GPU = 40_000  # rows up to which it also learns a metric of distances from all of them
ON_GPU = 1 << 22  # kernel values of a call from which a GPU has them before the processor
WIDE = 2000  # columns up to which sparse rows are made dense
ROWS_A_THREAD = 64  # rows that one thread scores at once
ROWS_AT_ONCE = 1024  # rows whose variances are computed at once: each has kernel values with all rows of a leaf
TOLERANCE, COARSE = 1e-6, 1e-4  # relative residuals of the solution by a factor, and by products
LEFT = 0.2  # part of the rows whose forecasts by the others teach probabilities,
MOST_LEFT = 4000  # and how many at most


class Effort(NamedTuple):
    """How many rows a size takes."""

    searched: tuple[int, int]  # enough for the search of the metric, and too many
    exact: int  # up to which one system has all rows
    leaf: int  # largest number in a leaf if there are very many
    fine: bool = False  # whether the search is finer: where it costs little


SIZES = {
    "small": Effort((1000, 1000), 5_000, 2_500),
    "medium": Effort((2500, 5000), 20_000, 10_000),
    "large": Effort((5000, 10_000), 20_000, 20_000),
}

ROWS_FOR_A_COLUMN = 10  # with fewer a metric fits the rows that it was learned from


class LeftOut(NamedTuple):
    """Rows that were forecast by all others."""

    forecasts: np.ndarray  # (m, outputs)
    targets: np.ndarray  # (m, outputs)
    weight: np.ndarray | None
    rows: np.ndarray  # (m, d)
    first: np.ndarray  # numbers of those among the first rows, with which these begin


class LearnedMetric(Learner):
    """Kernel functions at all rows, in a metric that is learned from them."""

    has_probabilities = True
    keeps_rows = True
    lam: float | None
    size: str

    def check_parameters(self) -> None:
        if self.lam is not None:
            positive("lam", self.lam)
        one_of("size", self.size, SIZES)

    def solve(
        self,
        state: State,
        X: Rows,
        Y: np.ndarray,
        weight: np.ndarray | None,
        apart: int = 0,
        clock: Clock | None = None,
    ) -> LeftOut:
        """The same as long as the clock allows; forecasts of the first ``apart`` rows and some others by the rest."""
        clock = clock or Clock()
        if X.shape[1] > WIDE and sp.issparse(X):
            raise ValueError(
                f"{self.context.name} makes sparse rows dense, and {X.shape[1]} columns are more than {WIDE}: "
                f"hash them first (scikit-learn's FeatureHasher)"
            )
        X, apart = dense_rows(X), min(apart, MOST_LEFT)
        held = _some(len(Y), apart, state["seed"])
        targets, offset, unit = scaled_targets(Y, weight, self.regression)
        # The metric is judged by rows that are unlike all others: equal ones are one, with the sum of their weights.
        one, mean, total, _ = merged(X, targets, weight)
        state |= units_of(X[one], total)
        rows = standard_rows(state, X[one], self.ops)
        state |= dict(zip(RANKS, rank_knots(rows, total), strict=True))
        effort = self._effort()
        order = self._searched(held[one], rows.shape[1], state["seed"])
        pair = pair_of(state, rows, self.ops)
        metric = learn_metric(pair, mean, total, order, self.ops, clock, effort.searched, effort.fine)
        # A row that is held out is another one than its equals: they take part in its forecast, as in those to come.
        one, mean, total, place = merged(X, targets, weight, also=held)
        again = effort.fine and sees_few(len(one), effort.searched) and len(one) <= AGAIN_ON_GPU
        if again and X.shape[1] <= BROAD:
            pair = pair_of(state, standard_rows(state, X[one], self.ops), self.ops)
            metric = of_distances(HeldOut(self, pair, mean, total, held[one], offset, clock), metric)
        n = clock.rows(len(one), 2 ** _depth(len(one), effort), effort.exact)
        some = np.arange(len(one))
        if n < len(one):  # there is no time for more
            some = np.sort(generator(state["seed"], SeedStream.METRIC_ROWS).permutation(len(one))[:n])
            one, mean, total = one[some], mean[some], None if total is None else total[some]
        leave = held[one]
        lam = float(metric.lam if self.lam is None else self.lam)
        state |= vars(metric) | {"lam": lam}
        X_one = standard_rows(state, X[one], self.ops)
        Z, W = metric.rows(pair_of(state, X_one, self.ops))
        tree, parts = _leaves.cut(Z, _depth(len(Z), effort), effort.leaf)
        parts = [np.concatenate([rows[~leave[rows]], rows[leave[rows]]]) for rows in parts]  # those left out are last
        tree["leaves"], order = _leaves.starts(parts), np.concatenate(parts)
        alpha, forecast = np.empty_like(mean), mean.copy()
        for part in filter(len, parts):
            own = (Z[part], W[part])
            more = addition(lam, len(part), None if total is None else total[part])
            last = int(np.count_nonzero(leave[part]))
            alpha[part], away = self._solved(own, metric.share, more, mean[part], last)
            forecast[part[len(part) - last :]] -= away
        left = np.flatnonzero(held & np.isin(place, some))
        F = forecast[np.searchsorted(some, place[left])] * unit + offset
        weights = None if weight is None else weight[left]
        if not self.regression:
            state["steepness"] = steepness(logarithms(F), Y[left], weights)
        state |= tree | {"rows": X_one[order], "alpha": alpha[order] * unit, "offset": offset}
        if self.regression:
            state["amplitude"] = np.maximum((mean * alpha).mean(axis=0), 0.0) * unit**2
            state["weight"] = (np.ones(len(order)) if total is None else total[order]).astype(np.float32)
        self.derived.drop("leaves", "leaves of a GPU", "factors")
        return LeftOut(F, Y[left], weights, X[left], left[left < apart])

    def _searched(self, held: np.ndarray, d: int, seed: int) -> np.ndarray:
        """Numbers of the rows, of d columns, for the search of the metric, in the order in which they are taken.

        Rows that are held out, (n,) bool, come last; and never those with labels, or with many columns: they are to
        tell how sure the model may be, and there a metric that has seen them is too sure.
        """
        order = generator(seed, SeedStream.METRIC_ROWS).permutation(len(held))
        first = order[~held[order]]
        seen = self.regression and d * ROWS_FOR_A_COLUMN <= len(held)
        return np.concatenate([first, order[held[order]]]) if seen else first

    def _effort(self) -> Effort:
        """How many rows the size takes: a GPU may have room for larger systems."""
        room, own = getattr(self.ops, "room_for_rows", None), SIZES[self.size]
        exact = 0 if room is None else min(EXACT_ON_GPU, room(4))
        if exact <= own.exact:
            return own
        least, most = own.searched
        return Effort((2 * least, 2 * most), exact, exact, fine=True)

    def _solved(
        self, rows: Pair, share: float, more: np.ndarray, Y: np.ndarray, last: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n, C) of rows in the metric, and residuals (last, C) where the last ones are left out."""
        own = getattr(self.ops, "metric_matrix", None)
        if own is not None:  # on a GPU, where factors take little time
            matrix = own(rows, share, more)
        else:
            K = table(rows, share, self.ops)
            found = by_products(K, more, Y, last, COARSE)
            if found is not None:
                return found
            matrix = RowMatrix(K, 1 + more, self.ops)
        alpha = descend(matrix, Y, TOLERANCE).W
        return alpha, matrix.left_out(alpha, last) if last else np.empty((0, Y.shape[1]))

    def score(self, state: State, X: Rows) -> np.ndarray:
        Z, W = self._metric(state).rows(pair_of(state, standard_rows(state, X, self.ops), self.ops), one_by_one=True)
        leaves = self._functions(state, len(Z))
        if len(leaves) == 1:
            return leaves[0]((Z, W)) + state["offset"]
        leaf = leaf_of(Z, state["directions"], state["thresholds"])
        out = np.empty((len(Z), state["n_outputs"]))
        for number in np.unique(leaf):
            own = leaf == number
            out[own] = leaves[number]((Z[own], W[own]))
        return out + state["offset"]

    def variance(self, state: State, X: Rows) -> np.ndarray:
        r"""Variances (n, outputs) of new targets at rows X (n, d), if f is a Gaussian process with the kernel a k.

        .. math:: a\, (1 + \lambda - k' (K + \lambda A^{-1})^{-1} k), \qquad a = (y - b)'\alpha / n

        a is the most likely one. In float64, as the difference may be small.
        """
        metric, starts = self._metric(state), state["leaves"]
        asked, rows = (
            metric.rows(pair_of(state, S.astype(np.float64), self.ops))
            for S in (standard_rows(state, X, self.ops), state["rows"])
        )
        leaf = leaf_of(asked[0], state["directions"], state["thresholds"])
        factors = self.derived.cached("factors", dict)
        known = np.zeros(len(leaf))
        for number in np.unique(leaf):
            part = slice(*starts[number : number + 2])
            own: Pair = (rows[0][part], rows[1][part])
            if not len(own[0]):  # a leaf without rows knows nothing
                continue
            if number not in factors:
                weight = np.maximum(state["weight"][part].astype(np.float64), np.finfo(np.float32).tiny)
                more = addition(state["lam"], len(own[0]), weight)
                factors[number] = RowMatrix(table(own, state["share"], self.ops), 1 + more, self.ops)
            which = np.flatnonzero(leaf == number)
            for at in (which[piece] for piece in threads.cuts(len(which), ROWS_AT_ONCE)):
                k = between((asked[0][at], asked[1][at]), own, state["share"], self.ops)
                known[at] = (k * factors[number].divide(k.T).T).sum(axis=1)
        return np.maximum(1 + state["lam"] - known, state["lam"])[:, None] * state["amplitude"]

    def _functions(self, state: State, n: int) -> list[Callable[[Pair], np.ndarray]]:
        """The kernel functions of every leaf, for n rows at a time; for many rows on a GPU, if there is one."""
        make = self._maker(n * len(state["rows"]))

        def made() -> list[Callable[[Pair], np.ndarray]]:
            Z, W = self._metric(state).rows(pair_of(state, state["rows"], self.ops))
            parts = (slice(*ends) for ends in itertools.pairwise(state["leaves"]))
            return [make((Z[part], W[part]), state["share"], state["alpha"][part]) for part in parts]

        return self.derived.cached("leaves" if make == self._function else "leaves of a GPU", made)

    def _maker(self, values: int) -> Callable[..., Callable[[Pair], np.ndarray]]:
        """What makes kernel functions for calls of this many kernel values: a GPU for many, if there is one."""
        many = getattr(self.ops, "cuda", False) and values >= ON_GPU
        return self.ops.metric_function if many else self._function

    def _function(self, rows: Pair, share: float, alpha: np.ndarray) -> Callable[[Pair], np.ndarray]:
        """``sum_i alpha_i k(x, x_i)`` for rows in a metric, with coefficients alpha (m, C), on all threads."""
        kinds = [
            (norm, self.ops.tiles(S), np.ascontiguousarray(w * alpha.T))
            for norm, S, w in zip((2, 1), rows, (share, 1 - share), strict=True)
        ]

        def function(asked: Pair) -> np.ndarray:
            out = np.empty((len(asked[0]), alpha.shape[1]))

            def work(part: slice) -> None:
                near, apart = (
                    self.ops.exponential_sums(S[part], tiles, A, norm, 1.0)
                    for S, (norm, tiles, A) in zip(asked, kinds, strict=True)
                )
                out[part] = near + apart

            if len(out) <= ROWS_A_THREAD:
                work(slice(None))
            else:
                threads.each(work, threads.cuts(len(out), ROWS_A_THREAD))
            return out

        return function

    def schema(self, state: State, trained: bool) -> Schema:
        n, d, outputs = length(state, "alpha"), state["n_features"], state["n_outputs"]
        k = length(state, "ranked")
        full = isinstance(state.get("root"), np.ndarray) and state["root"].ndim == 2
        own: Schema = {
            "middle": Array((d,)),
            "unit": Array((d,), low=POSITIVE),
            "ranked": Array((k,), "int64", low=0, high=d - 1),
            "places": Array((k, KNOTS), "float32"),
            "heights": Array((k, KNOTS), "float32"),
            "root": Array((d, d) if full else (d,)),
            "scales": Array((d,)),
            "share": Number(0.0, 1.0),
            "ranks": Number(0.0),
            "lam": Number(POSITIVE),
            "rows": Array((n, d), "float32"),
            "alpha": Array((n, outputs)),
            "offset": Array((outputs,)),
        }
        if self.regression:
            own |= {"amplitude": Array((outputs,), low=0), "weight": Array((n,), "float32", low=0)}
        else:
            own["steepness"] = Number(POSITIVE, STEEPEST)
        own |= _leaves.schema(state, d, n)
        check({name: state[name] for name in own if name in state}, own)
        if state["leaves"][0] != 0 or state["leaves"][-1] != n:
            raise ValueError("state_['leaves'] must begin with 0 and end with the number of centres")
        if (np.diff(state["places"], axis=1) < 0).any():
            raise ValueError("state_['places'] must not decrease along a column")
        return own

    def _metric(self, state: State) -> KernelMetric:
        return KernelMetric(state["root"], state["scales"], state["share"], state["ranks"], state["lam"])


class HeldOut:
    """Rows X, with targets Y (n, C) about ``offset`` and weights, of which some are held out to judge functions by."""

    def __init__(
        self,
        learner: LearnedMetric,
        X: Pair,
        Y: np.ndarray,
        weight: Any,
        held: np.ndarray,
        offset: np.ndarray,
        clock: Clock,
    ):
        a = np.ones(len(Y)) if weight is None else weight
        self.learner, self.targets, self.Y, self.offset, self.clock = learner, Y[~held], Y[held], offset, clock
        self.rows, self.asked = ((X[0][part], X[1][part]) for part in (~held, held))
        self.a, self.asked_a = a[~held], a[held]
        self.systems = systems_of(learner.ops, self.rows, self.targets, self.a)

    def of(self, *tried: TriedMetric) -> list[TriedMetric]:
        """The same with coefficients of the rows that are not held out, and their errors at those that are.

        Where no time is left, errors are infinite.
        """
        return [self._judged(one) for one in tried]

    def _judged(self, one: TriedMetric) -> TriedMetric:
        n = len(self.targets)
        if self.clock.late(n):
            return replace(one, error=np.inf, alpha=None)
        begin, metric, learner = time.monotonic(), one.metric, self.learner
        rows = metric.rows(self.rows)
        more = addition(metric.lam, len(self.a), self.a)
        alpha, _ = learner._solved(rows, metric.share, more, self.targets, 0)
        make = learner._maker(len(self.Y) * len(self.targets))
        F = make(rows, metric.share, alpha)(metric.rows(self.asked))
        if learner.regression:
            errors = np.square(F - self.Y).sum(axis=1)
        else:
            errors = (labels(F + self.offset) != labels(self.Y + self.offset)).astype(float)
        error = float(np.average(errors, weights=self.asked_a))
        self.clock.measured(n, time.monotonic() - begin)
        self.clock.step(f"error {error:.4g}")
        return replace(one, error=error, alpha=alpha)


def _some(n: int, first: int, seed: int) -> np.ndarray:
    """Which of n rows are left out for the link, (n,): the first ones, and others."""
    leave = np.arange(n) < first
    more = max(min(int(LEFT * n), MOST_LEFT) - first, 0)
    leave[first + generator(seed, SeedStream.METRIC_LINK).permutation(n - first)[:more]] = True
    return leave


def _depth(n: int, effort: Effort) -> int:
    """Cuts between the whole and a leaf of n rows: none, if one system may have them all.

    Where there are fewer rows than those of ten leaves, a leaf may have more: the time of all is that of ten.
    """
    if n <= effort.exact:
        return 0
    leaf = min(effort.leaf * max(1.0, float(np.sqrt(10 * effort.leaf / n))), effort.exact)
    return int(np.ceil(np.log2(n / leaf)))
