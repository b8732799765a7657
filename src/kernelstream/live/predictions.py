"""Predictions, with probabilities, intervals and sets where the model has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .learner import DurableLearner
from .requests import Predict
from .responses import Problem
from .rows import as_rows, wrong_cells


def predictions(learner: DurableLearner, asked: Predict) -> dict[str, Any]:
    """The answer to a request: predictions, with probabilities and intervals where the model has them."""
    view = learner.view
    X = as_rows(asked.rows, view.model, view.columns)
    if not len(asked.rows):
        return {"predictions": [], "version": view.version}
    answer: dict[str, Any] = {}
    try:
        both = getattr(view.model, "_labels_and_proba", None) if "predict_proba" in view.extras else None
        if both is not None:
            answer["predictions"], answer["probabilities"] = both(X)
        else:
            answer["predictions"] = view.model.predict(X)
            if "predict_proba" in view.extras:
                answer["probabilities"] = np.asarray(view.model.predict_proba(X))
    except NotFittedError:
        raise Problem(409, "the model has not learned a row yet") from None
    if "predict_interval" in view.extras:
        bounds = view.model.predict_interval(X)  # low (n,), high (n,)
        answer["intervals"] = np.column_stack(bounds)
    if "predict_set" in view.extras:
        labels = np.asarray(view.model.classes_)
        answer["sets"] = [labels[row].tolist() for row in np.asarray(view.model.predict_set(X), bool)]
    if asked.ids is not None:
        learner.remember(asked.ids, X)
    answer["version"] = view.version
    wrong = wrong_cells(asked.rows, view.model)
    return answer | {"warnings": warnings_about(wrong)} if wrong else answer


def warnings_about(wrong: list[tuple[int, str, Any]]) -> list[str]:
    """Sentences about cells that were taken as missing."""
    said = [f"row {i}, column {name!r}: {str(value)[:40]!r} is taken as missing" for i, name, value in wrong[:5]]
    return said + ([f"and {len(wrong) - 5} more cells"] if len(wrong) > 5 else [])
