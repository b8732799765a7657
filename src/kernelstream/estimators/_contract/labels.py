"""Labels of classification: classes that may appear at any row, their codes, class weights.

A model with a binary loss keeps one score while it knows at most two classes; other models keep one score per class.
The classes are always sorted, and the columns of the state follow them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from ...checks import is_number
from ...rows import Rows, native
from ...state.change import Change
from ...state.nested import State
from ...state.schema import Anything, Array, Count, Schema
from ...streams.cells import is_missing
from . import link
from .codes import encoded, enter, outputs_of, sign_of_lone
from .learner import Learner
from .state import is_trained
from .targets import LearnRun, NoTarget

#: Scores (m, outputs) of a run of rows, the classes known then, the place of the one whose first row it begins with.
Part = tuple[np.ndarray, np.ndarray, int | None]


class Labels(NoTarget):
    """Labels (n,) among sorted classes, which grow unless they were declared."""

    task = "label"

    def __init__(self, learner: Learner, several: bool = False):
        super().__init__(learner, several)
        self.class_weight = learner.parameters["class_weight"]
        self.weighs = self.class_weight is not None

    # ---------------------------------------------------------------- checks
    def check(self, state: State | None, y: Any, classes: Any, n: int, weight: np.ndarray | None) -> tuple[Any, Any]:
        y = labels_1d(y, "y")
        counted = y if weight is None else y[weight > 0]
        known = None if state is None else state["classes"]
        fixed = state is not None and bool(state["classes_fixed"])
        self._check_class_weight(y)
        if known is not None:
            _same_kind(known, y)
        if classes is None:
            if fixed:
                _inside(counted, known)
            return y, (np.empty(0, y.dtype), False) if state is None else None
        classes = np.unique(labels_1d(classes, "classes"))
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

    def _check_class_weight(self, y: np.ndarray | None) -> None:
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

    def check_whole(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        if not isinstance(self.class_weight, dict):
            return
        labels = np.unique(y if weight is None else y[weight > 0]).tolist()
        unknown = [label for label in self.class_weight if label not in labels]
        unweighted = [label for label in labels if label not in self.class_weight]
        if unknown and unweighted:  # as in scikit-learn: where all labels have a weight, more may be named
            raise ValueError(
                f"class_weight names {unknown}, which are not labels of y, and has no weight for {unweighted[:5]}"
            )

    def schema(self, state: State) -> Schema:
        classes: Any = state.get("classes")
        labels = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUS"
        if not labels or not (classes == classes).all() or not (classes[1:] > classes[:-1]).all():
            raise ValueError("state_['classes'] must be a sorted array of different labels")
        self._check_class_weight(None)
        if state["n_outputs"] != outputs_of(self.learner, len(classes)):
            raise ValueError(f"{state['n_outputs']} outputs do not match {len(classes)} classes")
        own: Schema = {
            "classes": Anything(),
            "class_counts": Array(classes.shape, low=0.0),
            "classes_fixed": Count(0, 1),
        }
        return own | link.schema(state)

    # ---------------------------------------------------------------- growing
    def declare(self, state: State, declared: Any) -> None:
        classes, fixed = declared
        if "classes" not in state:
            # words get as wide as the longest one, whatever the arrays that brought them
            state["classes"] = classes[:0].astype("U1") if classes.dtype.kind == "U" else classes[:0]
            state["class_counts"] = np.zeros(0)
            state["classes_fixed"] = 0
            for label in classes:
                add(self.learner, state, label)
        else:
            for label in np.setdiff1d(classes, state["classes"]):
                add(self.learner, state, label, is_trained(state))
        state["classes_fixed"] = int(fixed)

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, learn: LearnRun) -> np.ndarray:
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
                own = None if weight is None else weight[start:stop]
                parts.append((learn(X[start:stop], y[start:stop], own), state["classes"], place))

        run(0, cuts[0])
        for (row, label), stop in zip(arrivals, cuts[1:], strict=True):
            before, outputs = state["classes"], state["n_outputs"]
            lone = len(before) == 1 and outputs == 1
            flips = lone and (label > before[0]) == (sign_of_lone(state["classes"]) > 0)
            coming = 0 if state["warm_rows"] else known + len(arrivals)  # while it lasts, all is built again and again
            place = add(self.learner, state, label, is_trained(state), coming)
            if flips and state["n_outputs"] == 1:  # rows of this call scored while the side was guessed
                parts = [(-scores, classes, at) for scores, classes, at in parts]
            run(int(row), stop, place if len(before) else None)
        return _assembled(state, parts)

    def joined(self, state: State, scores: list[np.ndarray], classes: list[Any]) -> np.ndarray:
        parts: list[Part] = []
        for own, known in zip(scores, classes, strict=True):
            if len(known) == 1 and len(state["classes"]) == 2:  # the side of the lone class was guessed
                guessed = sign_of_lone(known) > 0
                own = own if guessed == (known[0] == state["classes"][1]) else -own
            parts.append((own.reshape(len(own), -1), known, None))
        return _assembled(state, parts)

    # ---------------------------------------------------------------- codes
    def encode(self, state: State, y: np.ndarray) -> np.ndarray:
        return encoded(state, y, self.learner.loss(state))

    def batch(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, Any]:
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

    def plain(self, state: State, y: Any, n: int, form: Any) -> np.ndarray | None:
        if type(y) is not np.ndarray or y.shape != (n,):
            return None
        classes = state["classes"]
        if n == 1:
            codes = self.learner.derived.get("codes")
            if codes is None or len(codes) != len(classes):
                if not np.any(classes == y):  # a new label, after which there would be other codes
                    return None
                codes = dict(zip(classes.tolist(), self.encode(state, classes)[:, None], strict=True))
                self.learner.derived["codes"] = codes
            return codes.get(y.item(0))
        if not len(classes) or y.dtype.kind not in "iufb" or classes.dtype.kind not in "iufb":
            return None
        return self.encode(state, y) if _known(classes, y).all() else None

    # ---------------------------------------------------------------- class weights
    def row_weights(self, state: State, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
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

    def forget_rows(self, state: State) -> None:
        super().forget_rows(state)
        state["class_counts"][:] = 0


def add(learner: Learner, state: State, label: Any, trained: bool | None = None, coming: int = 0) -> int:
    """Enter a label, unless it is known; there will be ``coming`` of them. Its place among the sorted ones.

    ``trained`` says whether there are weights; None where the learner has not entered anything yet.
    """
    old = state["classes"]
    place = int(np.searchsorted(old, label))
    if place < len(old) and old[place] == label:
        return place
    new = np.concatenate([old[:place], np.asarray([label]), old[place:]])
    enter(learner, state, new, place, trained, Change.added(place, len(old), coming))
    return place


def _assembled(state: State, parts: list[Part]) -> np.ndarray:
    """Scores of all rows in the form of the classes known at the end."""
    classes = state["classes"]
    if state["n_outputs"] == 1:
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


# -------------------------------------------------------------------- checks
def _known(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which labels are among the sorted classes, at least one."""
    return classes[np.minimum(np.searchsorted(classes, y), len(classes) - 1)] == y


def labels_1d(y: Any, name: str) -> np.ndarray:
    """Labels as an array (n,) of words or whole numbers; ValueError for anything else."""
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
