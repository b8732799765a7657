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

SIZES = ("small", "medium", "large")
LASTING = ("cells", "linear", "learned widths")  # members without a memory for the time of a row: those of a batch
WINDOWS = {"medium": 1, "large": 2}  # rows of the window in which the metric is learned, next to the usual number
SECOND_ORDER_COLUMNS = 200  # columns up to which a second-order linear member is cheap


def classifiers(size: str, d: int) -> list[tuple[str, Any]]:
    """Names and unfitted learners for labels."""
    grids = {"small": 64, "medium": 128, "large": 256}[size]
    D = {"small": 50, "medium": 100, "large": 300}[size]
    found: list[tuple[str, Any]] = [
        ("cells", CellsClassifier(grids)),
        ("cells, forgetting", CellsClassifier(grids, forgetting=0.99)),
        ("linear", _linear_labels(d)),
        (
            "fourier, forgetting",
            FeatureClassifier(RandomFourier(n_components=D, gamma="median"), "logistic", AdaGrad(forgetting=0.99)),
        ),
    ]
    if size == "small":
        return found
    return [
        *found,
        ("hashed cells", CellsClassifier(grids // 2, "hashed")),
        ("learned widths", RRFClassifier(n_components=D, loss="logistic")),
        ("window", WindowClassifier()),
        ("ridge", OnlineRidgeClassifier(_fourier(D), lam=0.05, intercept=True)),
        ("metric", MetricWindowClassifier(window_rows(d, WINDOWS[size]))),
    ]


def regressors(size: str, d: int) -> list[tuple[str, Any]]:
    """Names and unfitted learners for numbers."""
    grids = {"small": 64, "medium": 128, "large": 256}[size]
    D = {"small": 50, "medium": 100, "large": 300}[size]
    found: list[tuple[str, Any]] = [
        ("cells", CellsRegressor(grids)),
        ("cells, forgetting", CellsRegressor(grids, forgetting=0.999)),
        ("linear", _linear_numbers(d)),
        (
            "fourier, forgetting",
            FeatureRegressor(RandomFourier(n_components=D, gamma="median"), "squared", AdaGrad(forgetting=0.99)),
        ),
    ]
    if size == "small":
        return found
    return [
        *found,
        ("hashed cells", CellsRegressor(grids // 2, "hashed")),
        ("learned widths", RRFRegressor(n_components=D)),
        ("window", WindowRegressor()),
        ("ridge", OnlineRidge(_fourier(D), lam=0.05, intercept=True)),
        ("metric", MetricWindowRegressor(window_rows(d, WINDOWS[size]))),
    ]


def _fourier(D: int) -> RandomFourier:
    return RandomFourier(n_components=D, gamma="median")


def _linear_labels(d: int) -> Any:
    if d > SECOND_ORDER_COLUMNS:
        return FeatureClassifier("raw", "logistic")
    return OnlineRidgeClassifier("raw", lam=1.0, intercept=True)


def _linear_numbers(d: int) -> Any:
    return FeatureRegressor("raw") if d > SECOND_ORDER_COLUMNS else OnlineRidge("raw", lam=1.0, intercept=True)
