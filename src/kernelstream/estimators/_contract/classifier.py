"""Labels of classification: classes that may appear at any row, class weights, predicted labels.

A model with a binary loss keeps one score while it knows at most two classes; other models keep one score per class.
``classes_`` is always sorted, and the columns of the state follow it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import column_or_1d

from ...checks import is_number
from ...rows import Rows, native
from ...state.change import Change
from ...state.turns import in_turn
from ...streams.cells import is_missing
from . import link, warm_up
from .base import State, StreamEstimator
from .codes import encoded, enter, sign_of_lone
from .context import loss_of_labels
from .state import is_trained

#: Scores (m, outputs) of a run of rows, the classes known then, the place of the one whose first row it begins with.
Part = tuple[np.ndarray, np.ndarray, int | None]


@dataclass(eq=False, repr=False)
class StreamClassifier(ClassifierMixin, StreamEstimator):
    """Adds growing labels, ``predict``, ``decision_function`` and ``predict_proba``."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None
    loss = cast("Any", None)  # of most a parameter

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
        state = self.__dict__.get("_state")
        if state is None:
            raise AttributeError(f"{type(self).__name__} has no classes_ before it has learned a row")
        return state["classes"]

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) for two classes (>= 0 predicts ``classes_[1]``), else (n, n_classes)."""
        return self._public(self._scores(X))

    @in_turn
    def predict(self, X: Any) -> np.ndarray:
        """Predicted labels, (n,)."""
        return self._labels(self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose label is predicted."""
        objects = getattr(y, "dtype", None) == np.dtype(object)
        return super().score(X, _labels_1d(y, "y") if objects else y, sample_weight)

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
        return self._proba(X)

    @in_turn
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, (n, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self._proba(X))

    def _proba(self, X: Any) -> np.ndarray:
        return self._proba_of(self._scores(X))

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
        if self._needs_link():
            return link.answers(self, self._state, scores)
        loss: Any = self._learner.loss(self._state)
        if scores.shape[1] > 1:
            return link.agreeing(loss.probability(scores), np.argmax(scores, axis=1))
        p, f = np.empty((len(scores), 2)), scores[:, 0]
        p[:, 1] = loss.probability(f)
        np.maximum(p[:, 1], 0.5 + link.AHEAD, out=p[:, 1], where=f >= 0)  # of equal ones, the label that is predicted
        np.subtract(1.0, p[:, 1], out=p[:, 0])
        return p

    # ---------------------------------------------------------------- the loss in use
    _loss_rule = staticmethod(loss_of_labels)

    def _needs_link(self) -> bool:
        """Whether the loss defines no probabilities, so that a link must be learned."""
        return self._learner.cached(
            "needs link", lambda: (not all(hasattr(self._learner.context.loss_for(n), "probability") for n in (2, 3)),)
        )[0]

    def _follow(self, scores: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        if not self._link_frozen and self._needs_link():
            link.follow(self, self._state, scores, y, weight)
            found, ops = self._state.get("link"), self._ops
            if found is not None and not ops.on_device:
                n = len(self._state["classes"])
                self._cache["follow"] = found, ops.follow, n, link.kept_of(n)

    @in_turn
    def link_now(self) -> np.ndarray | None:
        """How scores become probabilities now, (k,), where a link is learned; None where the loss says it."""
        if not self._needs_link():
            return None
        return np.array(self._state.get("link", ()) if self.__sklearn_is_fitted__() else ())

    @in_turn
    def proba_by_link(self, scores: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Probabilities (n, n_classes) of scores as ``learn`` returns them, by the link that :meth:`link_now` gave."""
        table = scores[:, None] if scores.ndim == 1 else scores
        fits = len(held) == len(link.start(len(self._state["classes"])))
        state = {"classes": self._state["classes"]} | ({"link": held} if fits else {})
        unknown = np.isneginf(table)
        p = link.answers(
            self, state, np.where(unknown, np.where(unknown, 0.0, table).min(axis=1, keepdims=True), table)
        )
        if p.shape == unknown.shape and unknown.any():  # classes that had not appeared yet
            p[unknown] = 0.0
            p /= p.sum(axis=1, keepdims=True)
        return p

    def _link_from(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        if not self._link_frozen and self._needs_link():
            link.fit_on_held_out_rows(self, X, y, weight)

    # ---------------------------------------------------------------- checks
    def _check_target(self, y: Any, classes: Any, n: Any, weight: Any, fresh: Any) -> Any:
        y = _labels_1d(y, "y")
        counted = y if weight is None else y[weight > 0]
        state = self.__dict__.get("_state")
        known = None if fresh or state is None else state["classes"]
        fixed = bool(state["classes_fixed"]) if known is not None and state is not None else False
        self._check_class_weight(y)
        if known is not None:
            _same_kind(known, y)
        if classes is None:
            if fixed:
                _inside(counted, known)
            return y, (np.empty(0, y.dtype), False) if fresh else None
        classes = np.unique(_labels_1d(classes, "classes"))
        if len(classes) == 0:
            raise ValueError("classes is empty")
        _same_kind(classes, y)
        if known is not None:
            if fixed and not np.array_equal(classes, known):
                raise ValueError(f"classes={classes} differs from the classes of an earlier call, {known}")
            if not np.isin(known, classes).all():
                raise ValueError(f"classes={classes} lacks labels already learned: {np.setdiff1d(known, classes)}")
        _inside(counted, classes)
        if isinstance(self.class_weight, dict):
            unknown = [label for label in self.class_weight if label not in classes.tolist()]
            if unknown:
                raise ValueError(f"class_weight names {unknown}, which are not among classes={classes}")
        return y, (classes, True)

    def _check_class_weight(self, y: np.ndarray | None = None) -> None:
        """Raise ValueError for invalid class weights."""
        given: Any = self.class_weight
        if given is None or (isinstance(given, str) and given == "balanced"):
            return
        if not isinstance(given, dict):
            raise ValueError(f"class_weight must be None, 'balanced' or a dict of label: weight, got {given!r}")
        for label, value in given.items():
            if not is_number(value) or not np.isfinite(value) or value < 0:
                raise ValueError(f"class_weight of label {label!r} must be a number >= 0, got {value!r}")
            if y is not None and len(y) and isinstance(label, str) != (y.dtype.kind in "US"):
                raise ValueError(
                    f"class_weight names the label {label!r}, but y holds labels of another type, such as {y[0]!r}"
                )

    def _check_whole(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        if not isinstance(self.class_weight, dict):
            return
        labels = np.unique(y if weight is None else y[weight > 0]).tolist()
        unknown = [label for label in self.class_weight if label not in labels]
        unweighted = [label for label in labels if label not in self.class_weight]
        if unknown and unweighted:  # as in scikit-learn: where all labels have a weight, more may be named
            raise ValueError(
                f"class_weight names {unknown}, which are not labels of y, and has no weight for {unweighted[:5]}"
            )

    def _declare(self, state: State, declared: Any) -> None:
        classes, fixed = declared
        if "classes" not in state:
            # words get as wide as the longest one, whatever the arrays that brought them
            state["classes"] = classes[:0].astype("U1") if classes.dtype.kind == "U" else classes[:0]
            state["class_counts"] = np.zeros(0)
            state["classes_fixed"] = 0
            for label in classes:
                self._add_class(state, label)
        else:
            for label in np.setdiff1d(classes, state["classes"]):
                self._add_class(state, label, is_trained(state))
        state["classes_fixed"] = int(fixed)

    # ---------------------------------------------------------------- growing
    def _add_class(self, state: State, label: Any, trained: bool | None = None, coming: int = 0) -> int:
        """Enter a label, unless it is known; there will be ``coming`` of them. Its place among the sorted ones.

        ``trained`` says whether there are weights; None where the learner has not entered anything yet.
        """
        old = state["classes"]
        place = int(np.searchsorted(old, label))
        if place < len(old) and old[place] == label:
            return place
        new = np.concatenate([old[:place], np.asarray([label]), old[place:]])
        enter(self._learner, state, new, place, trained, Change.added(place, len(old), coming))
        return place

    # ---------------------------------------------------------------- learning
    def _learn_task(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        state = self._state
        counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
        if len(state["classes"]) and y.dtype.kind in "iufb" and state["classes"].dtype.kind in "iufb":
            counted = counted[~_known(state["classes"], y)[counted]]  # known labels need not be sorted
        labels, first = np.unique(y[counted], return_index=True)
        known, unknown = len(state["classes"]), ~np.isin(labels, state["classes"])
        arrivals = sorted(zip(counted[first[unknown]], labels[unknown], strict=True), key=lambda pair: pair[0])
        cuts = [int(row) for row, _ in arrivals] + [len(y)]
        parts: list[Part] = []

        def run(start: int, stop: int, place: int | None = None) -> None:
            if start < stop:
                ws = None if weight is None else weight[start:stop]
                parts.append((warm_up.learn(self, X[start:stop], y[start:stop], ws), state["classes"], place))

        run(0, cuts[0])
        for (row, label), stop in zip(arrivals, cuts[1:], strict=True):
            before, outputs = state["classes"], state["n_outputs"]
            lone = len(before) == 1 and outputs == 1
            flips = lone and (label > before[0]) == (sign_of_lone(state["classes"]) > 0)
            coming = 0 if state["warm_rows"] else known + len(arrivals)  # while it lasts, all is built again and again
            place = self._add_class(state, label, is_trained(state), coming)
            if flips and state["n_outputs"] == 1:  # rows of this call scored while the side was guessed
                parts = [(-scores, classes, at) for scores, classes, at in parts]
            run(int(row), stop, place if len(before) else None)
        return self._assemble(parts)

    def _assemble(self, parts: list[Part]) -> np.ndarray:
        """Scores of all rows in the form of the classes known at the end."""
        classes, outputs = self._state["classes"], self._state["n_outputs"]
        if outputs == 1:
            return np.concatenate([scores[:, 0] for scores, _, _ in parts])
        full = []
        for scores, known, place in parts:
            columns = np.searchsorted(classes, known)
            wide = np.full((len(scores), len(classes)), -np.inf)
            if scores.shape[1] == 1 and len(known) == 2:
                scores = np.concatenate([-0.5 * scores, 0.5 * scores], axis=1)
            if len(known):
                wide[:, columns] = scores
            else:  # no class was known, so none is ahead
                wide[:] = 0.0
            if place is not None:  # the class did not exist when its first row was predicted
                wide[0, columns[place]] = -np.inf
            full.append(wide)
        return np.concatenate(full)

    def _joined(self, scores: list[np.ndarray], classes: list[Any]) -> np.ndarray:
        parts: list[Part] = []
        for own, known in zip(scores, classes, strict=True):
            if len(known) == 1 and len(self.classes_) == 2:  # the side of the lone class was guessed
                guessed = sign_of_lone(known) > 0
                own = own if guessed == (known[0] == self.classes_[1]) else -own
            parts.append((own.reshape(len(own), -1), known, None))
        return self._assemble(parts)

    def _encode(self, state: State, y: np.ndarray) -> np.ndarray:
        return encoded(state, y, self._learner.loss(state))

    def _batch_target(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
        """One against the rest: +1 for the class of the output, -1 for the others; two classes share one output."""
        classes, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        state |= {"classes": classes, "class_counts": np.bincount(codes).astype(np.float64)}
        state["n_outputs"] = len(classes) if len(classes) > 2 else 1
        if self.class_weight is not None:
            factor = counts.sum() / (len(classes) * counts)
            if isinstance(self.class_weight, dict):
                factor = np.array([self.class_weight.get(label, 1.0) for label in classes.tolist()])
            weight = factor[codes] if weight is None else factor[codes] * weight
        if len(classes) == 1:
            return np.full((len(y), 1), sign_of_lone(state["classes"])), weight
        if len(classes) == 2:
            return 2.0 * codes[:, None] - 1.0, weight
        return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0), weight

    def _fast_row(self, y: Any) -> np.ndarray | None:
        state = self._state
        classes = state["classes"]
        codes = self._cache.get("codes")
        if codes is None or len(codes) != len(classes):
            if not np.any(classes == y):  # a new label, after which there would be other codes
                return None
            codes = dict(zip(classes.tolist(), self._encode(state, classes)[:, None], strict=True))
            self._cache["codes"] = codes
        return codes.get(y)

    def _fast_target(self, y: Any, n: int) -> np.ndarray | None:
        if type(y) is not np.ndarray or y.shape != (n,):
            return None
        state = self._state
        classes = state["classes"]
        if n == 1:
            return self._fast_row(y.item(0))
        if not len(classes) or y.dtype.kind not in "iufb" or classes.dtype.kind not in "iufb":
            return None
        return self._encode(state, y) if _known(classes, y).all() else None

    # ---------------------------------------------------------------- class weights
    def _weighs(self) -> bool:
        return self.class_weight is not None

    def _row_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights times ``class_weight``; "balanced" is rows / (classes × rows of the class), counted up to the row."""
        if self.class_weight is None:
            return weight
        factor = np.ones(len(y))
        counted = np.ones(len(y), bool) if weight is None else weight > 0
        if isinstance(self.class_weight, dict):
            for label, value in self.class_weight.items():
                factor[y == label] = value
        else:
            counts, classes = state["class_counts"], state["classes"]
            seen = counts.sum() + np.cumsum(counted)
            for c, label in enumerate(classes):
                mine = np.flatnonzero((y == label) & counted)
                factor[mine] = seen[mine] / (len(classes) * (counts[c] + np.arange(1, len(mine) + 1)))
                counts[c] += len(mine)
        return factor if weight is None else factor * weight

    def _forget_rows(self, state: State) -> None:
        super()._forget_rows(state)
        state["class_counts"][:] = 0


def _known(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which labels are among the sorted classes, at least one."""
    return classes[np.minimum(np.searchsorted(classes, y), len(classes) - 1)] == y


def _labels_1d(y: Any, name: str) -> np.ndarray:
    if type(y) is not np.ndarray or y.ndim != 1:
        y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        kinds = {isinstance(label, str) for label in y}
        if len(kinds) > 1:
            gap = any(is_missing(label) for label in y if not isinstance(label, str))
            raise ValueError(f"{name} {'holds a missing label' if gap else 'mixes strings with other labels'}")
        y = y.astype(str) if kinds == {True} else np.asarray(y.tolist())
    y = native(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} contains NaN or infinity")
    if y.dtype.kind in "mM":
        raise ValueError(f"{name} holds dates, which cannot be labels: give them as strings, {name}.astype(str)")
    # scikit-learn's check would warn about many classes in few rows, which is usual in a stream
    if y.dtype.kind in "OVc" or (y.dtype.kind == "f" and (y != np.rint(y)).any()):
        raise ValueError(f"Unknown label type: a classifier needs labels, but {name} holds {y[:3]} (dtype {y.dtype})")
    return y


def _same_kind(known: np.ndarray, y: np.ndarray) -> None:
    if len(known) and (known.dtype.kind in "US") != (y.dtype.kind in "US"):
        raise ValueError(f"labels of dtype {y.dtype} cannot be mixed with the classes known so far, {known}")


def _inside(y: np.ndarray, classes: Any) -> None:
    outside = np.setdiff1d(y, classes)
    if len(outside):
        raise ValueError(f"y holds labels outside classes={classes}: {outside[:5]}")
