"""The members of the default learner, by task and size."""

from __future__ import annotations

from typing import Any

from ...features import RandomFourier
from ...updates import AdaGrad
from ..cells.models import CellsClassifier, CellsRegressor
from ..feature import FeatureClassifier, FeatureRegressor
from ..learned import RRFClassifier, RRFRegressor
from ..metric_window import MetricWindowClassifier, MetricWindowRegressor, window_rows
from ..second_order.ridge import OnlineRidge, OnlineRidgeClassifier
from ..window import WindowClassifier, WindowRegressor

WINDOWS = {"medium": 1, "large": 2}  # rows of the window in which the metric is learned, next to the usual number
SECOND_ORDER_COLUMNS = 200  # columns up to which a second-order linear member is cheap
TEXT_STEP = 0.3  # of AdaGrad, where columns are scores of texts


FOR_LABELS = (
    CellsClassifier, FeatureClassifier, RRFClassifier, WindowClassifier, OnlineRidgeClassifier, MetricWindowClassifier,
)  # fmt: skip
FOR_NUMBERS = (CellsRegressor, FeatureRegressor, RRFRegressor, WindowRegressor, OnlineRidge, MetricWindowRegressor)


def chosen(regression: bool, size: str, d: int, texts: bool = False) -> list[tuple[str, Any]]:
    """Names and unfitted learners, for numbers or for labels.

    Scores of ``texts`` are log-odds already, which a linear logistic learner takes up in a few rows.
    """
    kinds: Any = FOR_NUMBERS if regression else FOR_LABELS
    Cells, Feature, Learned, Window, Ridge, MetricWindow = kinds
    loss = "squared" if regression else "logistic"
    grids = {"small": 64, "medium": 128, "large": 256}[size]
    D = {"small": 50, "medium": 100, "large": 300}[size]
    fourier = RandomFourier(n_components=D, gamma="median")
    cheap = d <= SECOND_ORDER_COLUMNS
    found: list[tuple[str, Any]] = [
        ("cells", Cells(grids)),
        ("cells, forgetting", Cells(grids, forgetting=0.999 if regression else 0.99)),
        ("linear", Ridge("raw", lam=1.0, intercept=True) if cheap else Feature("raw", loss)),
        ("fourier, forgetting", Feature(fourier, loss, AdaGrad(forgetting=0.99))),
    ]
    if texts and not regression:
        found.append(("texts", Feature("raw", loss, AdaGrad(TEXT_STEP))))
    if size == "small":
        return found
    return [
        *found,
        ("hashed cells", Cells(grids // 2, "hashed")),
        ("learned widths", Learned(n_components=D, loss=loss)),
        ("window", Window()),
        ("ridge", Ridge(fourier, lam=0.05, intercept=True)),
        ("metric", MetricWindow(window_rows(d, WINDOWS[size]))),
    ]
