"""What classifiers answer: labels, scores and probabilities."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError

from ...state.turns import in_turn
from . import link
from .base import StreamEstimator
from .context import loss_of_labels
from .labels import Labels, labels_1d
from .targets import public


@dataclass(eq=False, repr=False)
class StreamClassifier(ClassifierMixin, StreamEstimator):
    """Adds growing labels, ``predict``, ``decision_function`` and ``predict_proba``."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None
    loss = cast("Any", None)  # of most a parameter

    _targets = Labels
    _loss_rule = staticmethod(loss_of_labels)

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the scores held before each update.

        Parameters
        ----------
        X : (n, d) array or CSR
            Rows.
        y : (n,) array
            Labels.
        classes : array, optional
            All labels that can occur.
        sample_weight : (n,) array, optional
            Factors of each row's loss; a row of weight 0 is scored and skipped.
            A row of weight 2 need not be two rows: see "What a weight means" in the guide.

        Returns
        -------
        (n,) or (n, n_classes) array
            ``decision_function`` of each row when it arrived. Columns follow ``classes_``; a class that had not yet
            appeared has the score -inf.
        """
        return self._learn_any(X, y, classes, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> StreamClassifier:
        """Learn the rows in order; see :meth:`learn`.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
            Labels. Without ``classes``, new labels may appear in any call, and the model grows.
        classes : array, optional
            All labels that can occur; any other label is an error from then on.
        sample_weight : (n,) array, optional

        Returns
        -------
        self
        """
        self.learn(X, y, classes, sample_weight)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """Labels known so far, sorted."""
        if self._state is None:
            raise AttributeError(f"{type(self).__name__} has no classes_ before it has learned a row")
        return self._state["classes"]

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes (>= 0 predicts ``classes_[1]``), else (n, n_classes)."""
        return public(self._scores(X))

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """Predicted labels, (n,)."""
        return self._labels(self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose label is predicted."""
        objects = getattr(y, "dtype", None) == np.dtype(object)
        return super().score(X, labels_1d(y, "y") if objects else y, sample_weight)

    def _known_labels(self) -> np.ndarray:
        """The classes, at least one."""
        classes: np.ndarray = self._state["classes"]
        if not len(classes):
            raise NotFittedError(f"This {type(self).__name__} has not learned any row yet, so it knows no label")
        return classes

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        classes = self._known_labels()
        if len(classes) == 1:
            return np.full(len(scores), classes[0])
        if scores.shape[1] == 1:
            return classes[(scores[:, 0] >= 0).astype(np.intp)]
        return classes[np.argmax(scores, axis=1)]

    @in_turn
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n, n_classes); columns follow ``classes_``, and the predicted label has the largest.

        The loss defines them (logistic, softmax), or else they are learned from the scores that rows had before they
        were learned, and from how often such scores were right.
        """
        return self._proba_of(self._scores(X))

    @in_turn
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @in_turn
    def _labels_and_proba(self, X: Any, following: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The answers of ``predict`` and ``predict_proba``, from the same scores (:meth:`_scores`)."""
        scores = self._scores(X, following)
        return self._labels(scores), self._proba_of(scores)

    def _proba_of(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities that go with scores."""
        classes = self._known_labels()
        if len(classes) == 1:
            return np.ones((len(scores), 1))
        if self._layers.linked is not None:
            return link.answers(self._learner.ops, self._state, scores)
        loss: Any = self._learner.loss(self._state)
        if scores.shape[1] > 1:
            return link.agreeing(loss.probability(scores), np.argmax(scores, axis=1))
        p, f = np.empty((len(scores), 2)), scores[:, 0]
        p[:, 1] = loss.probability(f)
        np.maximum(p[:, 1], 0.5 + link.AHEAD, out=p[:, 1], where=f >= 0)  # of equal ones, the label that is predicted
        np.subtract(1.0, p[:, 1], out=p[:, 0])
        return p

    @in_turn
    def link_now(self) -> np.ndarray | None:
        """How scores become probabilities now, (k,), where a link is learned; None where the loss says it."""
        if self._layers.linked is None:
            return None
        return np.array(self._state.get("link", ()) if self.__sklearn_is_fitted__() else ())

    @in_turn
    def proba_by_link(self, scores: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Probabilities (n, n_classes) of scores as ``learn`` returns them, by the link that :meth:`link_now` gave."""
        table = scores[:, None] if scores.ndim == 1 else scores
        fits = len(held) == len(link.start(len(self._state["classes"])))
        state = {"classes": self._state["classes"]} | ({"link": held} if fits else {})
        unknown = np.isneginf(table)
        least = np.where(unknown, 0.0, table).min(axis=1, keepdims=True)
        p = link.answers(self._learner.ops, state, np.where(unknown, least, table))
        if p.shape == unknown.shape and unknown.any():  # classes that had not appeared yet
            p[unknown] = 0.0
            p /= p.sum(axis=1, keepdims=True)
        return p
