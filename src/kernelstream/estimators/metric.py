"""Kernel ridge regression on all rows, in a metric that follows from the gradients of the learned function."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import special

from .. import losses
from ..checks import one_of, positive
from ..core import threads
from ..losses import Loss
from ..passes.metric.python import leaf_of, logarithms
from ..random import SeedStream, generator
from ..rows import Rows, merged
from ..solvers.clock import Clock
from ..solvers.kernel_ridge import RowMatrix, addition, descend
from ..solvers.metric import (
    BROAD,
    KernelMetric,
    TriedMetric,
    between,
    learn_metric,
    of_distances,
    sees_few,
    systems_of,
    table,
)
from ..solvers.metric import Rows as Pair
from ..solvers.ranks import KNOTS, rank_knots
from ..state.schema import POSITIVE, Array, Number, Schema, check, length
from ..state.turns import in_turn
from . import _leaves
from ._contract import link
from ._contract.base import Shell, State, StreamEstimator, checked_rows
from ._contract.batch import dual_coef, entry, intercept, lam
from ._contract.classifier import StreamClassifier
from ._contract.learner import Learner
from ._contract.order import counted
from ._contract.regressor import StreamRegressor
from ._contract.targets import public
from ._described import described
from ._metric_rows import RANKS, dense_rows, pair_of, scaled_targets, standard_rows, units_of

EXACT_ON_GPU = 80_000  # rows up to which one system of a GPU has all of them
AGAIN_ON_GPU = 40_000  # rows up to which it also learns a metric of distances from all of them
ON_GPU = 1 << 22  # kernel values of a call from which a GPU has them before the processor
WIDE = 2000  # columns up to which sparse rows are made dense
ROWS_A_THREAD = 64  # rows that one thread scores at once
ROWS_AT_ONCE = 1024  # rows whose variances are computed at once: each has kernel values with all rows of a leaf
TOLERANCE = 1e-6  # relative residual of the solution
STEEPEST = 20.0  # b, at most
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
        state |= {
            "root": metric.root,
            "scales": metric.scales,
            "share": metric.share,
            "ranks": metric.ranks,
            "lam": lam,
        }
        X_one = standard_rows(state, X[one], self.ops)
        Z, W = metric.rows(pair_of(state, X_one, self.ops))
        tree, parts = _leaves.cut(Z, _depth(len(Z), effort), effort.leaf)
        parts = [np.concatenate([rows[~leave[rows]], rows[leave[rows]]]) for rows in parts]  # those left out are last
        tree["leaves"], order = _leaves.starts(parts), np.concatenate(parts)
        alpha, forecast = np.empty_like(mean), mean.copy()
        for part in filter(len, parts):
            own = (Z[part], W[part])
            more = addition(lam, len(part), None if total is None else total[part])
            matrix = self._matrix(own, metric.share, more)
            alpha[part] = descend(matrix, mean[part], TOLERANCE).W
            last = int(np.count_nonzero(leave[part]))
            if last:
                forecast[part[len(part) - last :]] -= matrix.left_out(alpha[part], last)
        left = np.flatnonzero(held & np.isin(place, some))
        F = forecast[np.searchsorted(some, place[left])] * unit + offset
        weights = None if weight is None else weight[left]
        if not self.regression:
            state["steepness"] = steepness(logarithms(F), Y[left], weights)
        state |= tree | {"rows": X_one[order], "alpha": alpha[order] * unit, "offset": offset}
        if self.regression:
            state["amplitude"] = np.maximum((mean * alpha).mean(axis=0), 0.0) * unit**2
            state["weight"] = (np.ones(len(order)) if total is None else total[order]).astype(np.float32)
        self.drop("leaves", "leaves of a GPU", "factors")
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

    def _matrix(self, rows: Pair, share: float, more: np.ndarray) -> Any:
        """The kernel matrix of rows in the metric, with so much added to its diagonal, and its factor."""
        own = getattr(self.ops, "metric_matrix", None)
        if own is not None:
            return own(rows, share, more)
        return RowMatrix(table(rows, share, self.ops), 1 + more, self.ops)

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
        factors = self.cached("factors", dict)
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

        return self.cached("leaves" if make == self._function else "leaves of a GPU", made)

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
        matrix = learner._matrix(rows, metric.share, addition(metric.lam, len(self.a), self.a))
        alpha = descend(matrix, self.targets, TOLERANCE).W
        make = learner._maker(len(self.Y) * len(self.targets))
        F = make(rows, metric.share, alpha)(metric.rows(self.asked))
        if learner.regression:
            errors = np.square(F - self.Y).sum(axis=1)
        else:
            errors = (_labels(F + self.offset) != _labels(self.Y + self.offset)).astype(float)
        error = float(np.average(errors, weights=self.asked_a))
        self.clock.measured(n, time.monotonic() - begin)
        self.clock.step(f"error {error:.4g}")
        return replace(one, error=error, alpha=alpha)


def steepness(G: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
    """The b of least loss for logarithms G (n, C) of rows with codes Y (n, C), had one row more been a mistake.

    The rule of succession: n rows without a mistake do not show that there will be none, and a b without bound would
    make the first mistake cost any amount. Every row is the one more, in equal parts, and every wrong label.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and wanted only here

    if not len(G):
        return 1.0
    y = _labels(Y)
    G = _of_labels(G)
    n, C = G.shape

    def loss(b: float) -> float:
        each = special.logsumexp(b * G, axis=1, keepdims=True) - b * G
        right = each[np.arange(n), y]
        return float(np.average(right + (each.sum(axis=1) - right) / (n * (C - 1)), weights=weight))

    return float(minimize_scalar(loss, bounds=(0.01, STEEPEST), method="bounded").x)


def _of_labels(G: np.ndarray) -> np.ndarray:
    """Logarithms (n, labels), up to a constant; log-odds (n, 1) of two labels are halved between them."""
    return np.concatenate([-G, G], axis=1) / 2 if G.shape[1] == 1 else G


def _labels(F: np.ndarray) -> np.ndarray:
    """The number (n,) of the label that is ahead by scores or codes (n, outputs)."""
    return F.argmax(axis=1) if F.shape[1] > 1 else (F[:, 0] >= 0).astype(int)


# -------------------------------------------------------------------- what the estimators say of the solution
def metric(est: StreamEstimator) -> np.ndarray:
    """The metric M of columns with deviation 1, (d, d); the largest number on its diagonal is 1."""
    M = _squares(est)
    return M / M.diagonal().max()


@in_turn
def fit_in_time(est: Shell[LearnedMetric], X: Any, y: Any, sample_weight: Any, apart: int, clock: Clock) -> LeftOut:
    """``fit`` as long as the clock allows; what is known of the first ``apart`` rows and some others by the rest."""
    with est._kept(fresh=True):
        rows, target, weight = counted(*est._admit(X, y, None, sample_weight, fresh=True))
        wanted = est._layers.targets.batch(est._state, target, weight)
        left = est._learner.solve(est._state, rows, *wanted, apart, clock)
        est._state["t"] = rows.shape[0]
    return left


def length_of(est: StreamEstimator) -> float:
    """The length L of the kernel."""
    return float(1 / np.sqrt(_squares(est).diagonal().max()))


def relevance(est: StreamEstimator) -> np.ndarray:
    """Root of the mean square of the slope along each column of deviation 1, (d,), beside the largest."""
    return np.sqrt(metric(est).diagonal())


scales = entry("scales", "Factors of the columns in the sum of their differences, (d,).")
share = entry("share", "The part w of the distance in the kernel.")


def _squares(est: StreamEstimator) -> np.ndarray:
    root = est.state_["root"]
    return np.diag(root**2) if root.ndim == 1 else root @ root


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


@described()
@dataclass(eq=False, repr=False)
class MetricClassifier(StreamClassifier):
    r"""Kernel classifier on all rows in a learned metric.

    .. math:: f(x) = b + \sum_i \alpha_i k(x, x_i), \qquad (K + \lambda A^{-1})\, \alpha = y - b, \qquad
              k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j s_j |u_j(x_j) - u_j(z_j)|)

    Kernel ridge regression on -1 and +1 with all rows as centres, several classes one against the rest. The metric M is
    the average gradient outer product of the function itself [1]_: directions in which f varies count, others do not.
    The second part compares single columns, their values and ranks (u is the sum of both), as the cuts of trees do; s
    follows from the slopes of f in the same way. All this is found on some thousand rows by solving and differentiating
    in turn, starting both from all columns alike and from those that are informative alone. How much the off-diagonal
    part of M counts, the lengths, w, the penalty and powers of M and s are chosen by the least error of forecasts of
    each row by all others. Then one system has all rows. Very many rows are cut at medians into leaves [2]_, each with
    its own system in the same metric.

    Columns are divided by their standard deviations; values beyond three of them count by their logarithm.

    Parameters
    ----------
    lam : float or None, default=None
        Penalty next to the *sum* of the losses (scikit-learn's ``alpha`` of kernel ridge); None chooses it.
    size : {"small", "medium", "large"}, default="medium"
        Trades time for accuracy, by about a factor of four each. The metric is searched on 1,000 rows; on a quarter of
        all, but at least 2,500 and at most 5,000; or on twice as many. One system has up to 5,000 rows (2,500 in a leaf
        of very many rows), 20,000 (10,000), or 20,000 (as many in a leaf). If there are fewer rows than in ten leaves,
        leaves are larger.
    engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
        The compiled loops, or their readable specification; most of the work is in LAPACK with either. "torch" learns
        on a GPU, with up to 80,000 rows in one system or leaf and twice as many rows in the search. Up to 40,000 rows
        it also tries distances alone (w = 1), in a metric learned from four fifths of the rows and judged on the rest.
    random_state : int, Generator, RandomState or None, default=None
        Choice of the rows for the metric.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    metric_ : (d, d) array
        The metric M of columns with deviation 1.
    relevance_ : (d,) array
        How much the function varies along each column, relative to the largest.
    length_ : float
        The length L.
    scales_ : (d,) array
        The factors s.
    share_ : float
        The share w.
    lam_ : float
        The penalty in use.
    dual_coef_ : (n_outputs, n) array
        The coefficients.
    intercept_ : array
        The constant score b of each output.

    See Also
    --------
    MetricRegressor : The same for numbers.
    FalkonClassifier : Other kernels and losses, a width for each column, millions of rows.
    KernelClassifier : Streams; its ``fit`` has this learner among others.

    Notes
    -----
    Time grows with the cube of the number of rows in a system, memory with the square: 256 MB for 8,000 rows, 1.6 GB
    for 20,000. A model keeps all rows. For words and gaps, put :class:`~kernelstream.columns.Columns` before it in a
    pipeline.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
       backpropagation-free machine learning models, Science 383, 2024.
    .. [2] Beaglehole, Holzmüller, Radhakrishnan, Belkin: xRFM: accurate, scalable, and interpretable feature learning
       models for tabular data, arXiv 2508.10053, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = np.abs(X[:, 0] + X[:, 1]) > 1  # the other columns are noise
    >>> model = MetricClassifier(random_state=0).fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.9
    True
    >>> np.sort(np.argsort(model.relevance_)[-2:]).tolist()
    [0, 1]
    """

    on_device = True
    metric_, length_, relevance_ = property(metric), property(length_of), property(relevance)
    scales_, share_, lam_ = scales, share, lam
    dual_coef_, intercept_ = dual_coef, intercept

    lam: float | None = None
    size: str = "medium"

    _learns = LearnedMetric

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        loss = losses.get("squared")
        return losses.OneVsRest(loss) if n_classes > 2 else loss

    def _proba_of(self, scores: np.ndarray) -> np.ndarray:
        if len(self._known_labels()) == 1:
            return np.ones((len(scores), 1))
        p = special.softmax(self._state["steepness"] * _of_labels(logarithms(scores)), axis=1)
        return link.agreeing(p, _labels(scores))


@described(like=MetricClassifier)
@dataclass(eq=False, repr=False)
class MetricRegressor(StreamRegressor):
    r"""Kernel ridge regression on all rows in a learned metric, for one target or several.

    .. math:: f(x) = b + \sum_i \alpha_i k(x, x_i), \qquad (K + \lambda A^{-1})\, \alpha = y - b

    with all rows as centres and the kernel and metric of :class:`MetricClassifier`, from gradients of f [1]_ summed
    over the targets. Very many rows are cut at medians into leaves [2]_, each with its own system.

    Columns are divided by their standard deviations; values beyond three of them count by their logarithm.

    See Also
    --------
    MetricClassifier : The same for labels.
    FalkonRegressor : Other kernels, a width for each column, millions of rows.
    KernelRegressor : Streams; its ``fit`` has this learner among others.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = np.sin(X[:, 0] + X[:, 1]) + 0.1 * X[:, 2]  # the other columns are noise
    >>> model = MetricRegressor(random_state=0).fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.95
    True
    >>> bool(model.metric_[0, 1] > 0.9)  # x_0 + x_1 matters, not each of them alone
    True
    >>> mean, std = model.predict(X[500:], return_std=True)
    >>> bool(std[0] < model.predict(10 + X[:1], return_std=True)[1][0])  # less is known far from all rows
    True
    """

    _learner: ClassVar[LearnedMetric]
    on_device = True
    metric_, length_, relevance_ = property(metric), property(length_of), property(relevance)
    scales_, share_, lam_ = scales, share, lam
    dual_coef_, intercept_ = dual_coef, intercept
    loss = "squared"
    _several_targets = True

    lam: float | None = None
    size: str = "medium"

    _learns = LearnedMetric

    @in_turn
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets, (n,) or (n, k), and optionally their standard deviations.

        The deviation is that of a new target if f is a Gaussian process with the learned kernel. The first call takes
        the time of one more system of all rows, and 8 bytes of memory for each pair of rows.

        Parameters
        ----------
        X : (n, d) array or CSR
        return_std : bool, default=False

        Returns
        -------
        array, or a pair of arrays of the same shape
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        return mean, public(np.sqrt(self._learner.variance(self.state_, checked_rows(self, X))))
