"""The default learner, which needs no tuning, and the families that it is made of."""

from __future__ import annotations

from ..estimators import (
    CellsClassifier,
    CellsRegressor,
    KernelClassifier,
    KernelNovelty,
    KernelRegressor,
    WindowClassifier,
    WindowRegressor,
)
from ._registry import NOVELTY, TASKS, enter, pair

enter(
    "auto", "docs/default_learner.md", TASKS,
    "Learners of different kinds, combined by a second-order recursion on their forecasts; nothing to tune.",
    {"size": "medium", "recent": True}, pair(KernelClassifier, KernelRegressor), ours=True,
)  # fmt: skip
enter(
    "column_cells",
    "Rahimi, Recht: Random features for large-scale kernel machines, NIPS 2007, over few columns "
    "(docs/default_learner.md)",
    TASKS, "Cells of grids over few columns with edges at quantiles; useless grids are replaced.",
    {"n_grids": 128, "eta": "auto", "forgetting": 1.0}, pair(CellsClassifier, CellsRegressor), ours=True,
)  # fmt: skip
enter(
    "window", "Nadaraya: On estimating regression, 1964; Watson: Smooth regression analysis, 1964", TASKS,
    "Smoothing over the last rows, with the width of the distance to a neighbour.",
    {"rows": "auto", "neighbours": 10}, pair(WindowClassifier, WindowRegressor), ours=True,
)  # fmt: skip
enter(
    "kernel_novelty", "docs/novelty.md", (NOVELTY,),
    "Leverage of random features and surprise of cells, by their shares among recent rows; nothing to tune.",
    {"contamination": 0.05, "memory": 10_000}, pair(KernelNovelty, None), ours=True,
)  # fmt: skip
