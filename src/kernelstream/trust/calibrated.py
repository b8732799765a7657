"""A classifier with probabilities and sets of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

from ..next_row import for_next_row
from ..state.nested import State
from ..state.schema import Inside, Schema
from ..state.turns import in_turn
from ..state.undo import all_or_nothing
from ._wrapper import Wrapper
from .calibration import Calibrator, loss_of, probabilities
from .intervals import IntervalTracker, check_coverage


@dataclass(eq=False, repr=False)
class Calibrated(Wrapper):
    """A classifier with calibrated probabilities, and sets of labels with a given coverage.

    A :class:`~kernelstream.trust.Calibrator` follows the scores that the model gave before it learned each row. It
    works for any classifier with ``learn``: one that has no probabilities of its own (hinge, perceptron, many votes)
    gets some, and one that has is corrected, at a cost of at most ``log 4 + n / 10000`` in the sum of the log-losses
    of n rows. ``predict`` is the label of the largest probability, which the correction may have changed.

    Parameters
    ----------
    model : classifier of this library, or any with ``learn`` and ``decision_function``
        It is cloned before it learns.
    coverage : float, default=0.9
        Share of the rows whose set of labels should hold the true one.
    engine : {"auto", "native", "python"}
        Engine of the calibration.

    Attributes
    ----------
    model_ : the classifier, fitted
    calibrator_ : Calibrator
        None as long as there are fewer than two classes.
    tracker_ : IntervalTracker
        It tracks 1 - P(true class).
    classes_ : array
    state_ : dict

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import FeatureClassifier
    >>> from kernelstream.trust import Calibrated
    >>> X, y = make_moons(3000, noise=0.3, random_state=0)
    >>> model = Calibrated(FeatureClassifier(loss="hinge", random_state=0)).fit(X[:2500], y[:2500])
    >>> model.predict_proba(X[2500:]).shape
    (500, 2)
    >>> print(model.predict_set(X[2500:2503], coverage=0.9).shape)
    (3, 2)
    """

    loss: ClassVar[str] = "logistic"  # ``learn`` returns log-odds, or logarithms of probabilities

    model: Any
    coverage: float = 0.9
    engine: str = "auto"

    @in_turn
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the calibrated scores held before each update.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
            Labels.
        classes : array, optional
            All labels that can occur.
        sample_weight : (n,) array, optional

        Returns
        -------
        (n,) or (n, n_classes) array
            Log-odds of ``classes_[1]``, or logarithms of probabilities; a class that had not appeared yet has -inf.
        """
        model = self._inside()
        before = np.asarray(model.classes_) if hasattr(model, "classes_") else np.empty(0)
        with all_or_nothing(self, model):
            scores = model.learn(X, y, classes=classes, sample_weight=sample_weight)
            if not self._has_learned(model):
                return scores
            weight = None if sample_weight is None else np.broadcast_to(sample_weight, scores.shape[:1])
            known = before if classes is None else model.classes_
            return self._follow(scores, np.asarray(y).reshape(-1), weight, before, known, model.classes_)

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """Calibrated scores as ``learn`` returns them, (n,) or (n, n_classes)."""
        return _public(self._answers(X))

    @in_turn
    def forecast_scores(self, X: Any) -> np.ndarray:
        """Calibrated scores of rows each of which is the next one of the stream, (n,) or (n, n_classes)."""
        return _public(self._answers(X, following=True))

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """The labels of the largest probabilities, (n,)."""
        best = self.predict_proba(X).argmax(axis=1)  # raises NotFittedError before there are classes
        return self.classes_[best]

    @in_turn
    def forecast(self, X: Any) -> np.ndarray:
        """The labels of the largest probabilities of rows each of which is the next one of the stream, (n,)."""
        best = self.forecast_proba(X).argmax(axis=1)  # raises NotFittedError before there are classes
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of :meth:`predict`."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    @in_turn
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, (n, n_classes); columns follow ``classes_``."""
        return probabilities(self._answers(X))

    @in_turn
    def forecast_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of rows each of which is the next one of the stream, (n, n_classes)."""
        return probabilities(self._answers(X, following=True))

    @in_turn
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n, n_classes)."""
        answers = self._answers(X)
        if answers.ndim == 2:
            return answers
        return np.stack([-np.logaddexp(0.0, answers), -np.logaddexp(0.0, -answers)], axis=1)

    @in_turn
    def predict_set(self, X: Any, coverage: float | None = None) -> np.ndarray:
        """Which labels each row may well have: sets that hold the true label in a given share of the rows.

        Parameters
        ----------
        X : (n, d) array or CSR
        coverage : float, optional
            0.5 to 0.99; by default that of the model.

        Returns
        -------
        (n, n_classes) bool array
            Columns follow ``classes_``. A set may be empty: no label fits.
        """
        return self._sets_of(self.predict_proba(X), coverage)

    @in_turn
    def forecast_set(self, X: Any, coverage: float | None = None) -> np.ndarray:
        """Sets of labels for rows each of which is the next one of the stream, like those of :meth:`predict_set`."""
        return self._sets_of(self.forecast_proba(X), coverage)

    @in_turn
    def _sets_of(self, p: np.ndarray, coverage: float | None = None) -> np.ndarray:
        """What ``predict_set`` answers, of the probabilities."""
        if coverage is not None:
            check_coverage(coverage)
        return 1.0 - p <= self.tracker_.interval(np.zeros(1), coverage)[1]

    # ---------------------------------------------------------------- following the scores
    def _answers(self, X: Any, following: bool = False) -> np.ndarray:
        """Calibrated scores of rows, or of rows each of which is the next one; the calibrator stays as it is."""
        scores = (for_next_row if following else getattr)(self._fitted(), "decision_function")(X)
        n_classes, calibrator = len(self.model_.classes_), self.calibrator_
        if n_classes == 0:
            raise NotFittedError(f"This {type(self).__name__} has not learned any row yet, so it knows no label")
        if calibrator is None:  # one class
            return np.zeros((len(scores), 1))
        return calibrator.transform(self._plain(scores, np.arange(n_classes)))

    def _plain(self, scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Scores of some classes, as log-odds where the loss makes them so: (m,) for two classes, else (m, C)."""
        if scores.ndim == 2:
            scores = scores[:, columns]
            loss = loss_of(self.model, "multiclass" if len(columns) > 2 else "classification")
            if loss is not None and loss.kind == "multiclass" and loss.name != "softmax":
                scores = np.log(np.maximum(loss.probability(scores), 1e-300))
            return scores[:, 1] - scores[:, 0] if len(columns) == 2 else scores
        return scores

    def _follow(self, scores: Any, y: Any, weight: Any, before: Any, known: Any, after: Any) -> np.ndarray:
        """Learn from the scores of a call, stretch by stretch: a class exists from the row after its first one.

        Classes: those of the calibrator, those ``known`` from the first row on, and those known after the call.
        """
        n = len(y)
        counted = np.ones(n, bool) if weight is None else weight > 0
        arrivals = sorted(
            (int(np.flatnonzero((y == label) & counted)[0]), label) for label in after[~np.isin(after, known)]
        )
        wide = scores.ndim == 2 and len(after) > 2
        out = np.full((n, len(after)), -np.inf) if wide else np.zeros(n)
        start = 0
        for stop, label in [*((row + 1, label) for row, label in arrivals), (n, None)]:
            self._grow(before, known)
            before = known
            if start < stop:
                rows = slice(start, stop)
                ws = None if weight is None else weight[rows]
                self._stretch(scores[rows], y[rows], ws, known, after, out[rows])
            start = stop
            if label is not None:
                known = np.sort(np.append(known.astype(after.dtype), label))
        self._grow(before, known)
        return out

    def _stretch(self, scores: Any, y: Any, weight: Any, known: Any, after: Any, out: Any) -> None:
        """Learn rows during which the known classes stay the same; a row of another class is answered only."""
        columns = np.searchsorted(after, known)
        calibrator = self.calibrator_ if len(known) > 1 else None
        if calibrator is None:
            if out.ndim == 2:  # with one known class it is certain; with none, all are equally likely
                out[:, columns if len(columns) else slice(None)] = 0.0 if len(columns) else -np.log(len(after))
            return
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        new = known[codes] != y
        if new.any():
            weight = np.where(new, 0.0, 1.0 if weight is None else weight)
        answers = calibrator.learn(self._plain(scores, columns), codes, weight)
        p = probabilities(answers)
        wrong = 1.0 - p[np.arange(len(p)), codes]
        self.tracker_.learn(np.zeros(len(wrong)), wrong, weight)
        if out.ndim == 1:
            out[:] = answers
        else:
            out[:, columns] = answers if answers.ndim == 2 else np.log(p)

    def _grow(self, before: np.ndarray, known: np.ndarray) -> None:
        """Go on with a calibrator of the ``known`` classes."""
        own = self._beside
        if len(known) > 1 and len(before) < 2:
            own["calibration"] = Calibrator(len(known)).state
        elif len(known) > len(before) > 1:
            own["calibration"] = Calibrator.grown(own["calibration"], np.searchsorted(known, before), len(known))

    # ---------------------------------------------------------------- the state
    @property
    def calibrator_(self) -> Calibrator | None:
        """What makes probabilities of scores; None as long as there are fewer than two classes."""
        state = self._beside.get("calibration")
        return (
            None if state is None else Calibrator(2, loss_of(self.model, "multiclass") is not None, self.engine, state)
        )

    @property
    def tracker_(self) -> IntervalTracker:
        """What follows 1 - P(true class)."""
        return IntervalTracker(self.coverage, self.engine, self._beside["sets"])

    def _start(self, model: Any) -> State:
        own, n = {"sets": IntervalTracker(self.coverage).state}, len(model.classes_)
        return own | {"calibration": Calibrator(n).state} if n > 1 else own

    def _schema(self) -> Schema:
        own: Schema = {"sets": Inside(IntervalTracker(self.coverage).schema())}
        n = len(self.model_.classes_)
        return own | {"calibration": Inside(Calibrator.schema(n))} if n > 1 else own

    def _check_parameters(self) -> None:
        check_coverage(self.coverage)
        if not hasattr(self.model, "decision_function"):
            raise ValueError(f"Calibrated needs a classifier; for a regressor use WithIntervals({self.model!r})")


def _public(answers: np.ndarray) -> np.ndarray:
    """Calibrated scores as users get them: one column is an array (n,)."""
    return answers[:, 0] if answers.ndim == 2 and answers.shape[1] == 1 else answers
