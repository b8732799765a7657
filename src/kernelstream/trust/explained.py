"""A learner that gives its reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..named import Named, named
from ..random import Stream, uniforms
from ..state.nested import State, part
from ..state.schema import Array, Count, Inside, Schema
from ..state.turns import in_turn
from . import gradients as g
from ._wrapper import Wrapper
from .contributions import Explanation, along, in_turns

CHUNK = 256  # rows between looks
LOOKED = 8  # rows of them that are looked at
COLUMNS = 8  # columns of one row that are tried, where gradients have no formula
MEMORY = 4  # looks over which the relevance is averaged: about a thousand rows


class Explained(Wrapper):
    r"""A learner that says which columns matter, and which of them moved an answer.

    .. math:: r_j = E\left[\left(s_j\, \partial_j f(x)\right)^2\right]

    is the diagonal of the average gradient outer product of what was learned, each column in units of its deviation
    s_j, averaged over about the last thousand rows; ``relevance_`` is its share of the sum. After every 256 rows the
    gradients at eight of them are taken, by formula for linear models of Fourier features, and by differences along
    eight columns drawn at random otherwise: a few per cent of the time it takes to learn. :meth:`explain` adds up the
    gradients on the straight line from a baseline to a row (integrated gradients [1]_) where there is a formula;
    otherwise the columns change from the one to the other in random orders.

    Parameters
    ----------
    model : estimator of this library
        It is cloned before it learns. Rows must be dense.

    Attributes
    ----------
    relevance_ : (d,) array
        Share of each column; the sum is one.
    model_ : the learner, fitted
    state_ : dict

    References
    ----------
    .. [1] Sundararajan, Taly, Yan: Axiomatic attribution for deep networks, ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OnlineRidge
    >>> from kernelstream.trust import Explained
    >>> X = np.random.default_rng(0).normal(size=(3000, 6))
    >>> model = Explained(OnlineRidge(random_state=0)).fit(X, np.sin(X[:, 4]) + 0.5 * X[:, 1])
    >>> np.argsort(model.relevance_)[::-1][:2].tolist()
    [4, 1]
    """

    _rows: int  # learned so far
    _reasons: dict[str, Any]

    def __init__(self, model: Any):
        self.model = model

    @in_turn
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order; returns what the model inside returns."""
        if sp.issparse(X):
            raise ValueError("sparse rows are not supported: Explained needs dense ones, pass X.toarray()")
        y = np.asarray(y)
        weight = None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight, np.float64), y.shape[:1])
        model, fresh = self._inside()
        options = {} if classes is None else {"classes": classes}
        if weight is None and not fresh and len(y) <= CHUNK - self._rows % CHUNK:
            pieces = [slice(0, len(y))]  # the usual small call
        else:
            first = CHUNK - (0 if fresh else self._rows % CHUNK)
            ends = [*range(first, len(y), CHUNK), len(y)]
            pieces = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        with self._kept(model):  # all pieces or none
            for piece in pieces:
                part = {} if weight is None else {"sample_weight": weight[piece]}
                rows = X.iloc[piece] if hasattr(X, "iloc") else np.asarray(X)[piece]
                scores = model.learn(rows, y[piece], **options, **part)
                parts.append((scores, getattr(model, "classes_", np.empty(0))))
                options = {}
                if not self._is_untrained(model):
                    self._adopt(model, "model_" not in self.__dict__)
                    self._follow(np.asarray(rows, np.float64))
        return _joined(parts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    @property
    def relevance_(self) -> Named:
        """How much each column matters now, (d,), non-negative; the sum is one (or all are zero)."""
        r = self._of_model("n_features_in_") and self._reasons["relevance"]
        total = r.sum()
        return named(r / total if total > 0 else r, self.model_)

    @in_turn
    def explain(self, X: Any, baseline: Any = None) -> Explanation:
        """Which columns moved the answers to some rows.

        Parameters
        ----------
        X : (n, d) array
        baseline : (d,) array, optional
            The row that the others are compared with; by default the mean of recent rows.

        Returns
        -------
        Explanation
            Contributions of the columns, which sum to the difference between the answer and that to the baseline.
        """
        model = self._fitted()
        X = np.asarray(X, np.float64)
        own = self._reasons
        base = own["mean"] if baseline is None else np.asarray(baseline, np.float64)
        if X.ndim != 2 or X.shape[1] != len(own["mean"]) or base.shape != X.shape[1:]:
            raise ValueError(f"rows and baseline must have {len(own['mean'])} columns")
        at_rows, at_base = g.scores(model, X), g.scores(model, base[None].astype(X.dtype))[0]
        which = at_rows.argmax(axis=1) if at_rows.shape[1] > 1 else np.zeros(len(X), np.intp)
        if g.is_exact(model):
            units = np.where(self._units() > 0, self._units(), 1.0)
            parts = along(lambda rows: g.gradients(model, rows, units), X, base, which) / units
        else:
            parts = in_turns(lambda rows: g.scores(model, rows), X, base, which)
        return Explanation(named(parts, model), at_rows[np.arange(len(X)), which], at_base[which], base)

    # ---------------------------------------------------------------- looking
    def _units(self) -> np.ndarray:
        return g.deviations(self.model_, np.sqrt(self._reasons["variance"]))

    def _follow(self, X: np.ndarray) -> None:
        """Keep the rows that will be looked at; look when there are enough."""
        own = self._reasons
        every = CHUNK // LOOKED
        first = -self._rows % every
        own["kept"] = np.concatenate([own["kept"], X[first::every]])
        self._rows += len(X)
        if self._rows % CHUNK or not len(own["kept"]):
            return
        kept, own["kept"] = own["kept"], own["kept"][:0]
        own["looks"] += 1
        share = max(1.0 / own["looks"], 1.0 / MEMORY)
        mean = kept.mean(axis=0)
        slow = max(1.0 / own["looks"], 0.2 / MEMORY)
        change = mean - own["mean"]
        own["variance"] = (1 - slow) * (own["variance"] + slow * change**2) + slow * kept.var(axis=0)
        own["mean"] = own["mean"] + slow * change
        units = self._units()
        if g.is_exact(self.model_):
            squares = (g.gradients(self.model_, kept, units) ** 2).sum(axis=1).mean(axis=0)
            own["relevance"] = own["relevance"] + share * (squares - own["relevance"])
            return
        d = X.shape[1]
        drawn = (uniforms(0, own["looks"] * COLUMNS, COLUMNS, Stream.EXPLAINED_COLUMNS) * d).astype(np.intp)
        columns = np.arange(d) if d <= COLUMNS else np.unique(drawn)
        squares = (g.by_differences(self.model_, kept[-1:], columns, units) ** 2).sum(axis=1)[0]
        own["seen"][columns] += 1
        share = np.maximum(1.0 / own["seen"][columns], 1.0 / MEMORY)
        own["relevance"][columns] += share * (squares - own["relevance"][columns])

    # ---------------------------------------------------------------- the state
    def _begin(self, model: Any) -> None:
        d = model.n_features_in_
        self._rows = 0
        self._reasons = {name: np.zeros(d) for name in ("relevance", "mean", "variance", "seen")}
        self._reasons |= {"kept": np.zeros((0, d)), "looks": 0}

    def _own(self) -> State:
        return {"reasons": self._reasons | {"rows": self._rows}}

    def _set_own(self, entries: State) -> None:
        self._reasons = dict(part(entries, "reasons"))
        self._rows = self._reasons.pop("rows", 0)

    def _schema(self) -> Schema:
        d = self.model_.n_features_in_
        kept: Any = self._reasons.get("kept")
        n = min(len(kept), LOOKED) if isinstance(kept, np.ndarray) and kept.ndim else 0
        own: Schema = {name: Array((d,), low=0.0) for name in ("relevance", "variance", "seen")}
        own |= {"mean": Array((d,)), "kept": Array((n, d)), "looks": Count(), "rows": Count()}
        return {"reasons": Inside(own)}


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Scores of several calls in the form they have in one call, where all know the classes of the last."""
    last, classes = parts[-1]
    if all(len(known) == len(classes) for _, known in parts):
        return np.concatenate([scores for scores, _ in parts]) if len(parts) > 1 else last
    full = []
    for scores, known in parts:
        if scores.ndim == 1 and last.ndim == 1:
            if len(known) == 1 and len(classes) == 2:  # a lone class is on the side of its sign until there is another
                guessed, proved = known[0] not in (0, -1), classes[1] == known[0]
                scores = scores if guessed == proved else -scores
            full.append(scores)
            continue
        wide = np.full((len(scores), len(classes)), -np.inf)
        if scores.ndim == 1:
            scores = np.stack([-0.5 * scores, 0.5 * scores], axis=1) if len(known) == 2 else scores[:, None]
        wide[:, np.searchsorted(classes, known)] = scores
        full.append(wide)
    return np.concatenate(full)
