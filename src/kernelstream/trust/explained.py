"""A learner that gives its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..named import Named, named
from ..state.nested import State
from ..state.schema import Array, Count, Inside, Schema
from ..state.turns import in_turn
from ..state.undo import all_or_nothing
from . import gradients as g
from . import recent
from ._wrapper import Wrapper
from .contributions import Explanation, along, in_turns


@dataclass(eq=False, repr=False)
class Explained(Wrapper):
    r"""A learner that says which columns matter, and which of them moved an answer.

    .. math:: r_j = E\left[\left(s_j\, \partial_j f(x)\right)^2\right]

    is the diagonal of the average gradient outer product of what was learned, each column in units of its deviation
    s_j, over some of about the last thousand rows; ``relevance_`` is its share of the sum. Learning only keeps a row
    from time to time; gradients are computed when they are needed, by formula for linear models of Fourier features,
    and by differences otherwise. :meth:`explain` adds up the gradients on the straight line from a baseline to a row
    (integrated gradients [1]_) where there is a formula; otherwise the columns change from one to the other in random
    orders.

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

    model: Any

    @in_turn
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order; returns what the model inside returns."""
        if sp.issparse(X):
            raise ValueError("sparse rows are not supported: Explained needs dense ones, pass X.toarray()")
        model = self._inside()
        options = {"classes": classes, "sample_weight": sample_weight}
        with all_or_nothing(self, model):
            scores = model.learn(X, y, **{name: value for name, value in options.items() if value is not None})
            if self._has_learned(model):
                rows, own = np.asarray(X, np.float64), self._beside["reasons"]
                if sample_weight is not None:
                    rows = rows[np.broadcast_to(sample_weight, len(rows)) > 0]
                some, at = recent.taken(own["rows"], len(rows), len(own["kept"]))
                own["kept"] = own["kept"].copy()
                own["kept"][at] = rows[some]
                own["rows"] += len(rows)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    @property
    def relevance_(self) -> Named:
        """How much each column matters now, (d,), non-negative; the sum is one (or all are zero)."""
        d, rows = self._of_model("n_features_in_"), self._recent()
        with self._turns:
            found = (g.gradients(self.model_, recent.some_of(rows), self._units(rows)) ** 2).sum(axis=1).mean(axis=0)
        return named(found / found.sum() if found.any() else np.zeros(d), self.model_)

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
        model, rows = self._fitted(), self._recent()
        X, d = np.asarray(X, np.float64), rows.shape[1]
        base = rows.mean(axis=0) if baseline is None else np.asarray(baseline, np.float64)
        if X.ndim != 2 or X.shape[1] != d or base.shape != X.shape[1:]:
            raise ValueError(f"rows and baseline must have {d} columns, got shapes {X.shape} and {base.shape}")
        at_rows, at_base = g.scores(model, X), g.scores(model, base[None].astype(X.dtype))[0]
        which = at_rows.argmax(axis=1) if at_rows.shape[1] > 1 else np.zeros(len(X), np.intp)
        if g.is_exact(model):
            units = self._units(rows)
            units = np.where(units > 0, units, 1.0)
            parts = along(lambda rows: g.gradients(model, rows, units), X, base, which) / units
        else:
            parts = in_turns(lambda rows: g.scores(model, rows), X, base, which)
        return Explanation(named(parts, model), at_rows[np.arange(len(X)), which], at_base[which], base)

    def _recent(self) -> np.ndarray:
        """The rows that are kept so far, (n, d)."""
        own = self._beside["reasons"]
        return own["kept"][: min(own["rows"], len(own["kept"]))]

    def _units(self, rows: np.ndarray) -> np.ndarray:
        return g.deviations(self.model_, rows.std(axis=0))

    # ---------------------------------------------------------------- the state
    def _start(self, model: Any) -> State:
        d = model.n_features_in_
        return {"reasons": {"kept": np.zeros((recent.places(d), d)), "rows": 0}}

    def _schema(self) -> Schema:
        d = self.model_.n_features_in_
        kept: Any = self._beside["reasons"].get("kept")
        n = min(len(kept), recent.MAX_KEPT) if isinstance(kept, np.ndarray) and kept.ndim else 0
        return {"reasons": Inside({"kept": Array((n, d)), "rows": Count()})}
