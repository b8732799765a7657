"""Predictions, with probabilities, intervals and sets where the model has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..columns.stream import encoder_of
from .answers import View
from .responses import Problem
from .rows import Gaps

HALF_OF_ALL = np.sqrt(40.0 / 9.0)  # deviations on either side of the mean that hold nine targets in ten
USUAL_GAPS = 0.5  # of the learned rows had no value in a column: a gap there is nothing special


def predictions(view: View, X: Any, gaps: Gaps, alone: bool = False) -> dict[str, Any]:
    """Predictions for rows, and what else the model says about them: arrays or lists, each with an item per row.

    Parameters
    ----------
    view : View
    X : array (n, d), or list of n dictionaries
        What :func:`.rows.as_rows` made of the rows.
    gaps : Gaps
        Their cells without a value.
    alone : bool
        Whether each row was asked about by itself: for some models it then is the next one of a stream.
    """
    model, answer = view.model, {}
    try:
        if "predict_proba" in view.extras:
            both = getattr(model, "_labels_and_proba", None)
            found = both(X, alone=alone) if both else (model.predict(X), np.asarray(model.predict_proba(X)))
            answer = dict(zip(("predictions", "probabilities"), found))
        elif "predict_interval" in view.extras:
            both = getattr(model, "_predict_with_interval", None)
            said, bounds = both(X, alone=alone) if both else (model.predict(X), model.predict_interval(X))
            answer = {"predictions": said, "intervals": widened(np.column_stack(bounds), model, gaps)}
        else:
            answer = {"predictions": model.predict(X)}
        if "predict_set" in view.extras:
            labels, sets_of = np.asarray(model.classes_).tolist(), getattr(model, "_sets_of", None)
            held = model.predict_set(X) if sets_of is None else sets_of(answer["probabilities"])
            answer["sets"] = [[label for label, there in zip(labels, row) if there] for row in held.tolist()]
    except NotFittedError:
        raise Problem(409, "the model has not learned a row yet") from None
    return answer


def widened(intervals: np.ndarray, model: Any, gaps: Gaps) -> np.ndarray:
    """Intervals (n, 2) of 90 %, at least as wide as those of a model that knows no column, where a row has gaps.

    The widths of a model are those of the errors on the rows it has learned; of a row with fewer values it knows less,
    by how much nobody has measured. What holds whatever the missing columns mean is the interval of all targets:
    mean ± sqrt(40/9) deviations holds nine in ten of any distribution with one peak (Vysochanskij and Petunin 1980).
    The interval of such a row reaches from the lower of both low ends to the higher of the high ends. A column that
    was missing in at least half of the learned rows does not count: its gaps are part of the measured errors, and the
    interval holds at least eight in ten of such rows.
    """
    encoder = encoder_of(model)
    cells = [*gaps.missing, *((i, name) for i, name, _ in gaps.wrong)]
    if not cells or encoder is None or (target := encoder._target()) is None or intervals.shape[1] != 2:
        return intervals
    missing = encoder.missing_
    rows = sorted({i for i, name in cells if missing[name] < USUAL_GAPS})
    mean, deviation = target
    intervals = intervals.copy()
    intervals[rows, 0] = np.minimum(intervals[rows, 0], mean - HALF_OF_ALL * deviation)
    intervals[rows, 1] = np.maximum(intervals[rows, 1], mean + HALF_OF_ALL * deviation)
    return intervals
