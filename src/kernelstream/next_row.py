"""Answers for the next row of a stream, of any model.

``predict`` is a function of the row alone. The latest targets say more about the next row: models that use them, or
that follow their own errors row by row, have a ``forecast`` beside every ``predict``.
"""

from __future__ import annotations

from typing import Any

FORECASTS = {
    "predict": "forecast",
    "predict_proba": "forecast_proba",
    "predict_set": "forecast_set",
    "decision_function": "forecast_scores",
    "predict_interval": "forecast_interval",
    "predict_quantiles": "forecast_quantiles",
}
TOGETHER = {"predict_proba": "_labels_and_proba", "predict_interval": "_predict_with_interval"}


def for_next_row(model: Any, name: str) -> Any:
    """The method that answers for rows each of which is the next of the stream, where ``name`` is that for any rows.

    It is the same one if the model does not tell them apart.

    >>> from kernelstream import FeatureRegressor, KernelRegressor
    >>> for_next_row(KernelRegressor(), "predict").__name__, for_next_row(FeatureRegressor(), "predict").__name__
    ('forecast', 'predict')
    """
    return getattr(model, FORECASTS[name], None) or getattr(model, name)


def answers_together(model: Any, name: str, X: Any, following: bool) -> tuple[Any, Any]:
    """The answers of ``predict`` and of ``name`` for rows X, from one look at them where the model has a way to.

    With ``following``, each row is the next of the stream.
    """
    both = getattr(model, TOGETHER[name], None)
    if both is not None:
        first, second = both(X, following=following)
        return first, second
    method = for_next_row if following else getattr
    return method(model, "predict")(X), method(model, name)(X)
