r"""One model from several that have learned different rows.

What is kept as sums over rows adds up: ridge regression on any feature map, exactly,

.. math:: A = \lambda I + \sum_k (A_k - \lambda I), \qquad b = \sum_k b_k

Learners that take steps from row to row keep no sums (cells, binning, features with steps, and so the default learner).
Their models are kept side by side and their forecasts are averaged,

.. math:: f(x) = \sum_k w_k f_k(x), \qquad w_k \ge 0, \; \sum_k w_k = 1

with weights that fit rows of all of them best: for labels the likelihood of the mixture of probabilities, by
expectation maximisation, for numbers the squared error. An average has less variance than its parts and the same
bias, that of models which know a K-th of the rows: so every model also learns the rows of all, and from three models on
twice, the second time in an order of its own.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from .evaluate.metrics import of_true_class
from .evaluate.runners import StreamRunner
from .random import SeedStream, generator
from .registry.parameters import WithParameters
from .rows import take
from .state.nested import flatten, nest
from .state.schema import Array, Inside, Schema, check

PASSES = 2  # over the rows of all, at most: K models have each missed K - 1 parts of what they stand for
ROUNDS = 100  # of expectation maximisation
LEAST_PROBABILITY = 1e-12


def merge(models: Sequence[Any], X: Any = None, y: Any = None) -> Any:
    """One model that has learned what several have.

    Ridge regression (:class:`~kernelstream.OnlineRidge`, :class:`~kernelstream.OnlineRidgeClassifier`) is merged
    exactly: the model is that of learning the rows of all, up to rounding. Any other learner is merged approximately,
    as :class:`~kernelstream.merging.Merged`, and needs some rows drawn from those of all models.

    Parameters
    ----------
    models : sequence of estimators of one class
        They stay as they are.
    X, y : rows and targets, optional
        Drawn from the rows of all models; every model learns them, twice if there are more than two. The less of all
        rows each model has seen, the more of them it takes: for four models about a third.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import clone
    >>> from kernelstream import OnlineRidge, merge
    >>> from kernelstream.features import TaylorFeatures
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = OnlineRidge(TaylorFeatures(degree=3, gamma=0.5))
    >>> parts = [clone(model).fit(X[i::2], y[i::2]) for i in range(2)]
    >>> np.allclose(merge(parts).predict(X), clone(model).fit(X, y).predict(X))
    True
    """
    models = list(models)
    if not models or any(type(model) is not type(models[0]) for model in models):
        raise ValueError(f"models must be estimators of one class, got {', '.join(type(m).__name__ for m in models)}")
    if hasattr(models[0], "merge"):
        made = functools.reduce(lambda a, b: a.merge(b), models[1:], copy.deepcopy(models[0]))
        return made if X is None else made.partial_fit(X, y)
    if X is None or y is None:
        raise ValueError(
            f"{type(models[0]).__name__} cannot be merged exactly: merge(models, X, y) needs rows drawn from those of "
            f"all models, to weight them by"
        )
    return Merged([copy.deepcopy(model) for model in models]).weigh(X, np.asarray(y))


class Merged(WithParameters):
    """Models that have learned different rows, and how much each counts. Made by :func:`kernelstream.merge`.

    Attributes
    ----------
    models_ : list of estimators
    weights_ : (K,) array
    """

    def __init__(self, models: Sequence[Any]):
        self.models = models

    @property
    def models_(self) -> Sequence[Any]:
        """The models, which keep learning."""
        return self.models

    def weigh(self, X: Any, y: np.ndarray) -> Merged:
        """Find the weights by rows, which every model learns; see ``merge``."""
        task = "classification" if is_classifier(self.models[0]) else "regression"
        parts = []
        for k, model in enumerate(self.models):  # forecasts before each row was learned: not judged by what it knows
            predicted, table = StreamRunner(model, task, None, task == "classification").forecast_then_learn(X, y)
            parts.append(predicted if table is None else of_true_class(table, model.classes_, y))
            for i in range(1, min(len(self.models) - 1, PASSES)):
                at = generator(k, SeedStream.FIT_ORDER, i).permutation(len(y))  # of its own: models are to differ
                model.learn(take(X, at), y[at])
        F = np.column_stack(parts)
        if task == "regression":
            w = nnls(F, y)[0] if np.isfinite(F).all() else np.zeros(F.shape[1])
            self.weights_ = w / w.sum() if w.sum() > 0 else np.full(F.shape[1], 1 / F.shape[1])
            return self
        w, P = np.full(F.shape[1], 1 / F.shape[1]), np.maximum(F, LEAST_PROBABILITY)
        for _ in range(ROUNDS):
            w = (w * P / (P @ w)[:, None]).mean(axis=0)
        self.weights_ = w
        return self

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Every model learns the rows; returns the forecasts (of labels: log-odds or log-probabilities) before that."""
        scores = [model.learn(X, y, sample_weight=sample_weight) for model in self.models]
        if len({part.shape for part in scores}) > 1:
            raise ValueError("the models do not know the same labels")
        return np.tensordot(self.weights_, np.stack(scores), 1)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Merged:
        """See :meth:`learn`."""
        self.learn(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels or numbers."""
        if is_classifier(self):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return np.tensordot(self.weights_, np.stack([model.predict(X) for model in self.models]), 1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (n, classes): those of the models, weighed."""
        found = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(self.classes_)))
        for weight, model in zip(self.weights_, self.models):
            found[:, np.searchsorted(self.classes_, model.classes_)] += weight * model.predict_proba(X)
        return found

    @property
    def classes_(self) -> np.ndarray:
        """Labels that any of the models knows, sorted."""
        return functools.reduce(np.union1d, [model.classes_ for model in self.models])

    @property
    def state_(self) -> dict[str, Any]:
        """The states of the models, and the weights."""
        return flatten({"weights": self.weights_} | {f"m{i}": model.state_ for i, model in enumerate(self.models)})

    @state_.setter
    def state_(self, state: dict[str, Any]) -> None:
        parts, K = nest(state), len(self.models)
        schema: Schema = {"weights": Array((K,), low=0.0)}
        schema |= {f"m{i}": Inside({}) for i in range(K)}
        check(parts, schema, inside=False)
        for i, model in enumerate(self.models):
            model.state_ = parts[f"m{i}"]
        self.weights_ = parts["weights"]

    def check_state(self) -> None:
        """Raise ValueError where the state of a model does not fit its parameters, or itself."""
        for model in self.models:
            model.check_state()

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.models[0])
