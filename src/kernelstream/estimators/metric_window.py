"""Kernel ridge regression on the last rows of a stream, in a metric from the gradients of the learned function."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..checks import whole
from ..core import threads
from ..core.beside import Beside
from ..passes.metric.python import Functions, Leaf, start_following
from ..rows import Rows, dense
from ..solvers.metric_search import plain_metric
from ..state import undo
from ..state.change import Change
from ..state.schema import POSITIVE, Array, Number, Schema, length
from . import _leaves
from . import _metric_refit as refit
from ._contract.base import State
from ._contract.classifier import StreamClassifier
from ._contract.learner import Learner
from ._contract.regressor import StreamRegressor
from ._contract.warm_up import rows_until
from ._described import described
from .metric import metric
from .window import AT_ONCE, codes_after, kept_values

USUAL_ROWS, MOST_CELLS = 8192, 1 << 20  # most rows of a window of automatic size, and most rows × columns;
LEAST_ROWS = 256  # rows that it has in any case


def window_rows(d: int, times: int = 1) -> int:
    """Rows of a window of automatic size for d columns, or of one that is ``times`` as large."""
    return int(np.clip(times * MOST_CELLS // d, LEAST_ROWS, times * USUAL_ROWS))


class MetricWindow(Learner):
    """The last rows, and kernel functions that were solved on them at fixed numbers of rows."""

    _by_row = frozenset({"kept_rows", "kept_value", "kept_weight"})
    _replaced = frozenset(
        {"middle", "unit", "root", "scales", "lengths", "directions", "thresholds"}
        | {"leaves", "centres", "alpha", "offset"}
    )

    rows: Any

    def check_parameters(self) -> None:
        if not (isinstance(self.rows, str) and self.rows == "auto"):
            whole("rows", self.rows)

    # ---------------------------------------------------------------- a state
    def reset(self, state: State) -> None:
        d, C = state["n_features"], state["n_outputs"]
        room = window_rows(d) if isinstance(self.rows, str) else int(self.rows)
        places = refit.places(room)
        state |= {"kept_rows": np.zeros((places, d)), "kept_value": np.zeros(places), "kept_weight": np.zeros(places)}
        state |= {"middle": np.zeros(d), "unit": np.ones(d), "rho": 0.0, "lengths": np.ones(2)}
        state |= refit.entries_of(plain_metric(d, 0.0))
        state |= {"centres": np.zeros((room, d), refit.VALUES), "alpha": np.zeros((room, C)), "offset": np.zeros(C)}
        tree, parts = _leaves.cut(np.zeros((0, d)), refit.depth(d, room), room)
        state |= tree | {"leaves": np.zeros(len(parts) + 1, np.int64)}
        state["follow"] = start_following()
        self.derived.drop("functions")

    def schema(self, state: State, trained: bool) -> Schema:
        if not trained:
            return {}
        d, C, room = state["n_features"], state["n_outputs"], length(state, "centres")
        places = refit.places(room)
        if not 1 <= room <= (USUAL_ROWS if isinstance(self.rows, str) else self.rows):
            raise ValueError(f"the window of the state has room for {room} rows")
        codes: Any = {} if self.regression else {"low": 0.0, "high": max(1, len(state["classes"]) - 1)}
        own: Schema = {
            "kept_rows": Array((places, d)),
            "kept_value": Array((places,), **codes),
            "kept_weight": Array((places,), low=0.0),
            "middle": Array((d,)),
            "unit": Array((d,), low=POSITIVE),
            "root": Array((d, d) if d <= refit.BROAD else (d,)),
            "scales": Array((d,)),
            "share": Number(0.0, 1.0),
            "lam": Number(POSITIVE),
            "rho": Number(0.0, 1.0),
            "lengths": Array((2,), low=POSITIVE),
            "centres": Array((room, d), np.dtype(refit.VALUES).name),
            "alpha": Array((room, C)),
            "offset": Array((C,)),
            "follow": Array((5,)),
        }
        return own | _leaves.schema(state, d, room)

    def verify(self, state: State) -> None:
        if "follow" in state and not state["follow"][1] > 0:
            raise ValueError("state_['follow'] has no sum of squares")

    # ---------------------------------------------------------------- rows
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X = np.ascontiguousarray(dense(X), np.float64)
        value = np.ascontiguousarray(kept_values(state, y))
        scores, start, n = np.empty((len(X), state["n_outputs"])), 0, len(X)
        while start < n:
            due = refit.schedule(state["t"], len(state["centres"])).stop
            stop = min(start + AT_ONCE, rows_until(weight, start, n, due - state["t"]))
            part = slice(start, stop)
            own = None if weight is None else np.ascontiguousarray(weight[part])
            scores[part] = self.ops.metric_pass(X[part], value[part], own, state["follow"], self._functions(state))
            self._keep(state, X[part], value[part], own)
            if state["t"] == due:
                self._take(state)
            start = stop
        self._next_stop(state)
        return scores

    def _keep(self, state: State, X: np.ndarray, value: np.ndarray, weight: np.ndarray | None) -> None:
        """Rows take the places of the oldest."""
        weight = np.ones(len(X)) if weight is None else weight
        some, room = np.flatnonzero(weight), len(state["kept_value"])
        places = (state["t"] + np.arange(len(some)))[-room:] % room
        state["t"] += len(some)
        for name, new in (("kept_rows", X), ("kept_value", value), ("kept_weight", weight)):
            undo.rows(state[name], places)
            state[name][places] = new[some[-room:]]

    def _next_stop(self, state: State) -> np.ndarray:
        """Rows after which a solution is begun or takes effect, (1,); one that has been begun is being worked on."""
        now = refit.schedule(state["t"], len(state["centres"]))
        if now.pending and "refit" not in self.derived:
            self.derived["refit"] = Beside(self._work(dict(state), now.n))
        stop: np.ndarray = self.derived.setdefault("stop", np.zeros(1, np.int64))
        stop[0] = now.stop  # which is known to what is bound
        return stop

    def _work(self, state: State, n: int) -> Callable[[], State]:
        return functools.partial(refit.solution, state, n, self.ops, self.regression)

    def _take(self, state: State) -> None:
        """The latest solution takes effect, unless it has just been begun."""
        now, begun = refit.schedule(state["t"], len(state["centres"])), self.derived.get("refit")
        if not now.pending:
            state |= self._work(state, now.n)() if begun is None else begun.result()
            self.derived.drop("functions", "refit")

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores, functions = np.empty((X.shape[0], state["n_outputs"])), self._functions(state)
        for rows in threads.cuts(X.shape[0], AT_ONCE):
            part = np.ascontiguousarray(dense(X[rows]), np.float64)
            scores[rows] = self.ops.metric_pass(part, None, None, state["follow"], functions)
        return scores

    def _functions(self, state: State) -> Functions:
        return self.derived.cached("functions", lambda: self._made(state))

    def _made(self, state: State) -> Functions:
        metric, centres = refit.metric_of(state), state["centres"][: state["leaves"][-1]]
        near, apart = metric.rows((centres, np.zeros_like(centres)))
        leaves = []
        for part in itertools.starmap(slice, itertools.pairwise(state["leaves"])):
            A, B = (np.ascontiguousarray(w * state["alpha"][part].T) for w in (metric.share, 1 - metric.share))
            leaves.append(Leaf(self.ops.tiles(near[part]), self.ops.tiles(apart[part]), A, B))
        cuts = state["directions"], state["thresholds"], leaves
        columns = state["middle"], state["unit"], metric.root, metric.scales
        return Functions(*columns, *cuts, state["offset"], not self.regression)

    def row_learner(self, state: State) -> Any:
        return self.ops.row_learner("metric_window", self, state, self._functions(state), self._next_stop(state))

    # ---------------------------------------------------------------- changes
    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        if trained:
            state["kept_value"] = codes_after(state, state["kept_value"], place)
            self.derived.drop("refit")

    def mix_outputs(self, state: State, change: Change) -> None:
        """A new label has had the code -1 so far."""
        alpha, used = np.zeros((len(state["alpha"]), len(change))), state["leaves"][-1]
        np.multiply(state["alpha"][:used].take(change.source, axis=1), change.sign, out=alpha[:used])
        state["alpha"] = alpha
        state["offset"] = np.where(change.fresh, -1.0, state["offset"][change.source] * change.sign)
        self.derived.drop("functions", "refit")

    def widen(self, state: State, d: int) -> None:
        """Columns that were 0 do not count before the next solution."""
        more = d - state["n_features"]
        for name in ("kept_rows", "centres", "directions"):
            state[name] = np.pad(state[name], ((0, 0), (0, more)))
        state |= {name: np.pad(state[name], (0, more)) for name in ("middle", "scales", "root")}
        if d > refit.BROAD and state["root"].ndim == 2:
            state["root"] = np.sqrt(np.diag(state["root"] @ state["root"]))
        state["unit"] = np.pad(state["unit"], (0, more), constant_values=1.0)
        self.derived.drop("functions")


@described()
@dataclass(eq=False, repr=False)
class MetricWindowClassifier(StreamClassifier):
    r"""Kernel classifier on the last rows of a stream, in a learned metric.

    .. math:: f(x) = o + \sum_i \alpha_i k(x, x_i), \qquad (K + \lambda A^{-1})\, \alpha = y - o

    over the last rows, with the kernel of :class:`MetricClassifier` without ranks. The metric follows from the
    gradients of f itself [1]_: it is found after 128, 256 and 512 rows, and improved after 1,024, 4,096, 16,384 and so
    on. f is solved again whenever the number of rows has doubled, and three times in between while the window grows; a
    solution is computed while rows go on coming, and takes effect some rows later: a 128th part of those that it has,
    or a 16th part where the metric is searched, too. A large window is cut into up to eight leaves across the
    directions in which its rows differ most in the metric, and each leaf has its own system. In between f does not
    change, and counts as much as it has been worth in the last hundred rows: scores are the log-odds of :math:`b f`, b
    the slope of the labels -1 and 1 on f.

    Parameters
    ----------
    rows : int or "auto", default="auto"
        Rows of the window; "auto" means 8,192, fewer for rows of more than 128 columns. A leaf has 1,024 rows, or an
        eighth of a larger window.
    standardize : bool or "auto", default="auto"
        Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
        "auto" does not: columns of the window are divided by their deviations in any case.
    random_state : ignored
        Nothing here is random; the parameter exists because all learners have it.

    Attributes
    ----------
    metric_ : (d, d) array
        The metric of columns of deviation 1.

    See Also
    --------
    MetricWindowRegressor : The same for numbers.
    MetricClassifier : All rows at once.
    KernelClassifier : Has this learner among its members.

    Notes
    -----
    Time per row is proportional to the rows of a leaf. Rows after which f is solved again take longer, some tenths of a
    second for a window of 8,192. Kernel values are in float32, sums in float64.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
       backpropagation-free machine learning models, Science 383, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricWindowClassifier
    >>> X = np.random.default_rng(0).normal(size=(700, 8))
    >>> y = np.abs(X[:, 0] + X[:, 1]) > 1  # the other columns are noise
    >>> MetricWindowClassifier().partial_fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.9
    True
    """

    loss = "logistic"
    metric_ = property(metric)

    rows: int | str = "auto"
    _: KW_ONLY
    standardize: bool | str = "auto"
    class_weight: dict[Any, float] | str | None = None
    engine: str = "auto"
    random_state: Any = None

    _learns = MetricWindow


@described(like=MetricWindowClassifier)
@dataclass(eq=False, repr=False)
class MetricWindowRegressor(StreamRegressor):
    r"""Kernel ridge regression on the last rows of a stream, in a learned metric.

    .. math:: \mu + b\, (f(x) - \mu), \qquad f(x) = o + \sum_i \alpha_i k(x, x_i)

    with f, kernel and metric [1]_ of :class:`MetricWindowClassifier`, :math:`\mu` the recent mean of the target and b
    the slope of the target on f in the last hundred rows.

    See Also
    --------
    MetricWindowClassifier : The same for labels.
    MetricRegressor : All rows at once.
    KernelRegressor : Has this learner among its members.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricWindowRegressor
    >>> X = np.random.default_rng(0).normal(size=(700, 8))
    >>> y = np.sin(X[:, 0] + X[:, 1])  # the other columns are noise
    >>> MetricWindowRegressor().partial_fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.9
    True
    """

    loss = "squared"
    metric_ = property(metric)

    rows: int | str = "auto"
    _: KW_ONLY
    standardize: bool | str = "auto"
    engine: str = "auto"
    random_state: Any = None

    _learns = MetricWindow
