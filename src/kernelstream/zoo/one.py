"""The learner that needs no choice, and the families that it is made of."""

from __future__ import annotations

from typing import Any

from ..estimators import (
    CellsClassifier,
    CellsRegressor,
    KernelClassifier,
    KernelRegressor,
    WindowClassifier,
    WindowRegressor,
)
from ._registry import recipe


@recipe("docs/default_learner.md", ours=True)
def auto(task: str, size: str = "medium", recent: bool = True, **common: Any) -> Any:
    """Learners of different kinds, combined by a second-order recursion on their forecasts; nothing to choose."""
    kind: Any = KernelRegressor if task == "regression" else KernelClassifier
    return kind("auto", size, recent=recent, **common)


@recipe(
    "Rahimi, Recht: Random features for large-scale kernel machines, NIPS 2007, over few columns "
    "(docs/default_learner.md)",
    ours=True,
)
def column_cells(
    task: str, n_grids: int = 128, eta: float | str = "auto", forgetting: float = 1.0, **common: Any
) -> Any:
    """Cells of grids over few columns with edges at quantiles; grids that are of no use are replaced."""
    kind: Any = CellsRegressor if task == "regression" else CellsClassifier
    return kind(n_grids, "columns", eta=eta, forgetting=forgetting, **common)


@recipe("Nadaraya: On estimating regression, 1964; Watson: Smooth regression analysis, 1964", ours=True)
def window(task: str, rows: int | str = "auto", neighbours: int = 10, **common: Any) -> Any:
    """Smoothing over the last rows, with the width of the distance to a neighbour."""
    kind: Any = WindowRegressor if task == "regression" else WindowClassifier
    return kind(rows, neighbours, **common)
