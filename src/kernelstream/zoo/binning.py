"""Recipes on random binning features."""

from __future__ import annotations

from typing import Any

from ..estimators import BinningClassifier, BinningRegressor, CellsClassifier, CellsRegressor
from ..solvers import CoordinateDescent, NewtonCG
from ._registry import LABELS, TASKS, enter, pair

KDD = "Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016"
OPTIONS = {"kernel": "laplacian", "gamma": None, "n_components": 128}


def _svm(task: str, C: float | None, **options: Any) -> Any:
    if C is not None and not C > 0:
        raise ValueError(f"C must be > 0, got {C!r}")
    return BinningClassifier(lam=None if C is None else 1.0 / C, solver=NewtonCG(), **options)


enter(
    "random_binning_ridge", f"{KDD}, section 5.2", TASKS,
    "Least squares on random binning features, by conjugate gradients over all rows.\n\n"
    "Bandwidth and penalty are searched for on held-out rows unless they are given.",
    OPTIONS | {"lam": None}, pair(BinningClassifier, BinningRegressor),
)  # fmt: skip
enter(
    "random_binning_svm", f"{KDD}, with the squared hinge", LABELS,
    "Support vector machine with squared hinge on random binning features, by Newton's method over all rows.\n\n"
    "``C`` is the weight of the losses, ``lam = 1/C``; bandwidth and penalty are searched for unless they are given.",
    OPTIONS | {"C": None}, _svm,
)  # fmt: skip
enter(
    "random_binning_lasso", f"{KDD}, algorithm 2", TASKS,
    "L1-penalised model on random binning features, by parallel coordinate descent over all rows.\n\n"
    "Squared loss for regression, squared hinge for classes. Few cells keep a weight.",
    OPTIONS | {"lam": None}, pair(BinningClassifier, BinningRegressor, lambda: {"solver": CoordinateDescent()}),
)  # fmt: skip
enter(
    "random_binning_online", f"{KDD}, on hashed cells, row by row", TASKS,
    "Steps of AdaGrad's kind on random binning features whose cells are hashed into one table.",
    {"n_grids": 128, "eta": "auto", "forgetting": 1.0},
    pair(CellsClassifier, CellsRegressor, lambda: {"grids": "hashed"}), ours=True,
)  # fmt: skip
