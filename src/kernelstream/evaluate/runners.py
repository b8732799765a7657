"""Two ways to evaluate an estimator: ours learn and return their scores, others predict a block and then fit it."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError

from ..innermost import innermost
from ..next_row import for_next_row
from ..trust.calibration import loss_of
from .metrics import CRPS_LEVELS, crps_or_error, of_true_class

# predicted (n,), probability of the true class, or score of the quantiles, (n,) or None
Answer = tuple[np.ndarray, "np.ndarray | None"]


def task_of(est: Any, y: np.ndarray | None = None) -> str:
    """ "classification", "regression" or "novelty": what the estimator says it is, or else what targets suggest."""
    if hasattr(est, "__sklearn_tags__"):
        if is_classifier(est):
            return "classification"
        if is_regressor(est) or (y is None and not is_outlier_detector(est)):
            return "regression"
        if y is None:
            return "novelty"
    return "regression" if np.asarray(y).dtype.kind == "f" else "classification"


def rows_learned(est: Any) -> int:
    """Rows that a model has learned so far; 0 for none, or where it counts batches, as doubly stochastic ones do."""
    from ..columns.stream import encoder_of
    from ..estimators.doubly.base import Doubly

    encoder, learner = encoder_of(est), innermost(est)
    if encoder is not None:
        return encoder.n_samples_seen_
    return 0 if isinstance(getattr(learner, "_learner", None), Doubly) else getattr(learner, "state_", {}).get("t", 0)


def labels_of(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The labels (n,) that scores (n,) or (n, classes) stand for; the first of equal ones."""
    return classes[(scores >= 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


def probabilities_of(est: Any, scores: np.ndarray) -> np.ndarray | None:
    """Probabilities (n, classes) that belong to scores, where the estimator's loss has any."""
    loss = loss_of(est, "classification" if scores.ndim == 1 else "multiclass")
    if loss is None:
        return None
    p = loss.probability(scores)
    return np.column_stack([1.0 - p, p]) if scores.ndim == 1 else p


class Runner:
    """An estimator with the few calls an evaluation makes; ``seconds`` counts the time inside it.

    ``unknown`` is how many rows at the beginning of the last answer were predicted before any row had been learned.
    """

    method = "learn"  # by which it learns,
    takes_classes = True  # and whether that may be told all classes
    of_two = 0  # which of two classes is predicted before the first row

    def __init__(self, est: Any, task: str, classes: Any, probability: bool) -> None:
        self.est, self.task, self.probability = est, task, probability
        self.classes = None if classes is None else np.unique(classes)
        self.seconds = 0.0
        self.unknown = 0
        self.clock = time.perf_counter
        self.has_learned = hasattr(est, "classes_") or hasattr(est, "n_features_in_")
        if probability and task == "regression" and not hasattr(est, "predict_quantiles"):
            raise ValueError(f"crps needs quantiles, and {est!r} has none (try kernelstream.trust.WithIntervals)")

    def answer_then_learn(self, X: Any, y: np.ndarray) -> Answer:
        """Answers of rows before they are learned."""
        answer = self.answer(X, y)
        self.learn(X, y)
        return answer

    def answer(self, X: Any, y: np.ndarray) -> Answer:
        """Answers; the model stays as it is (y only picks the probability)."""
        self.unknown = 0
        try:
            return self._answer(X, y)
        except (NotFittedError, AttributeError):
            if self.has_learned:
                raise
            return self._before_learning(y)

    def _answer(self, X: Any, y: np.ndarray) -> Answer:
        raise NotImplementedError

    def learn(self, X: Any, y: np.ndarray) -> Any:
        """Learn rows; all classes are declared in the first call, which alone needs them."""
        first, self.has_learned = not self.has_learned, True
        declares = first and self.task == "classification" and self.classes is not None and self.takes_classes
        return self._timed(getattr(self.est, self.method), X, y, **({"classes": self.classes} if declares else {}))

    def _number(self, forecast: np.ndarray, X: Any, y: np.ndarray) -> Answer:
        if not self.probability:
            return forecast, None
        quantiles = for_next_row(self.est, "predict_quantiles")
        return forecast, crps_or_error(y, forecast, self._timed(quantiles, X, CRPS_LEVELS))

    def _before_learning(self, y: np.ndarray) -> Answer:
        """Answers of an estimator that has learned no row: 0, which is not scored, or a class, all equally probable."""
        n = len(y)
        if self.task == "regression":
            self.unknown = n
            return np.zeros(n), np.zeros(n) if self.probability else None
        if self.classes is None:
            raise ValueError(f"{type(self.est).__name__} must know all labels before the first row: pass classes=")
        first = self.classes[self.of_two if len(self.classes) == 2 else 0]
        return np.full(n, first), np.full(n, 1.0 / len(self.classes))

    def _timed(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        start = self.clock()
        try:
            return function(*args, **kwargs)
        finally:
            self.seconds += self.clock() - start


class StreamRunner(Runner):
    """An estimator whose ``learn`` returns the score each row had before it was learned."""

    of_two = 1  # a score of 0 predicts the second
    link: np.ndarray | None = None  # how scores became probabilities before a block, where the model learns that

    def answer_then_learn(self, X: Any, y: np.ndarray) -> Answer:
        self.unknown = int(self.task == "regression" and not self.has_learned)
        if self.probability and self.task == "regression" and hasattr(self.est, "learn_quantiles"):
            forecast, held = self._timed(self.est.learn_quantiles, X, y, quantiles=CRPS_LEVELS)
            self.has_learned = True
            return forecast, crps_or_error(y, forecast, held)
        predicted, table = self.forecast_then_learn(X, y)
        return predicted, None if table is None else of_true_class(table, self.est.classes_, y)

    def forecast_then_learn(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Predicted (n,) and, of a classifier where wanted, probabilities (n, classes), before each row was learned."""
        self._note_link()
        return self._read(self.learn(X, y))

    def _note_link(self) -> None:
        if self.probability and hasattr(self.est, "link_now"):
            self.link = self.est.link_now()

    def _answer(self, X: Any, y: np.ndarray) -> Answer:
        self._note_link()
        if self.task == "regression":
            return self._number(self._timed(for_next_row(self.est, "predict"), X), X, y)
        predicted, table = self._read(self._timed(for_next_row(self.est, "decision_function"), X))
        return predicted, None if table is None else of_true_class(table, self.est.classes_, y)

    def _read(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        if self.task == "regression":
            return scores, None
        classes, n = self.est.classes_, len(scores)
        if len(classes) == 1:
            return np.full(n, classes[0]), np.ones((n, 1)) if self.probability else None
        return labels_of(scores, classes), self._table(scores) if self.probability else None

    def _table(self, scores: np.ndarray) -> np.ndarray:
        if self.link is not None:
            return self.est.proba_by_link(scores, self.link)
        table = probabilities_of(self.est, scores)
        if table is None:
            raise ValueError(f"log_loss needs probabilities, and {self.est!r} has none (try loss='logistic')")
        return table


class BatchRunner(Runner):
    """An estimator with ``predict`` and ``partial_fit`` only: a block is predicted, then fitted."""

    method = "partial_fit"

    def __init__(self, est: Any, task: str, classes: Any, probability: bool) -> None:
        super().__init__(est, task, classes, probability)
        if probability and task == "classification" and not hasattr(est, "predict_proba"):
            raise ValueError(f"log_loss needs probabilities, and {est!r} has no predict_proba")
        self.takes_classes = "classes" in inspect.signature(est.partial_fit).parameters

    def _answer(self, X: Any, y: np.ndarray) -> Answer:
        predicted = self._timed(self.est.predict, X)
        if self.task == "regression":
            return self._number(predicted, X, y)
        if not self.probability:
            return predicted, None
        return predicted, of_true_class(self._timed(self.est.predict_proba, X), self.est.classes_, y)
