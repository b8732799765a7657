"""Recipes on random binning features."""

from __future__ import annotations

from typing import Any

from ..estimators import BinningClassifier, BinningRegressor, OnlineBinningClassifier, OnlineBinningRegressor
from ..solvers import CoordinateDescent, NewtonCG
from ..updates import OGD
from ._registry import recipe

KDD = "Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016"


def _kind(task: str) -> Any:
    return BinningRegressor if task == "regression" else BinningClassifier


@recipe(f"{KDD}, section 5.2")
def random_binning_ridge(
    task: str,
    kernel: Any = "laplacian",
    gamma: Any = None,
    n_components: int = 128,
    lam: float | None = None,
    **common: Any,
) -> Any:
    """Least squares on random binning features, by conjugate gradients over all rows.

    Bandwidth and penalty are searched for on held-out rows unless they are given.
    """
    return _kind(task)(kernel, gamma, n_components, lam, **common)


@recipe(f"{KDD}, with the squared hinge", tasks=("binary", "multiclass"))
def random_binning_svm(
    task: str,
    kernel: Any = "laplacian",
    gamma: Any = None,
    n_components: int = 128,
    C: float | None = None,
    **common: Any,
) -> Any:
    """Support vector machine with squared hinge on random binning features, by Newton's method over all rows.

    ``C`` is the weight of the losses, ``lam = 1/C``; bandwidth and penalty are searched for unless they are given.
    """
    if C is not None and not C > 0:
        raise ValueError(f"C must be > 0, got {C!r}")
    lam = None if C is None else 1.0 / C
    return BinningClassifier(kernel, gamma, n_components, lam, **{"solver": NewtonCG(), **common})


@recipe(f"{KDD}, algorithm 2")
def random_binning_lasso(
    task: str,
    kernel: Any = "laplacian",
    gamma: Any = None,
    n_components: int = 128,
    lam: float | None = None,
    **common: Any,
) -> Any:
    """L1-penalised model on random binning features, by parallel coordinate descent over all rows.

    Squared loss for regression, squared hinge for classes. Few cells keep a weight.
    """
    return _kind(task)(kernel, gamma, n_components, lam, **{"solver": CoordinateDescent(), **common})


@recipe(f"{KDD}, on hashed cells, row by row")
def random_binning_online(
    task: str,
    kernel: Any = "laplacian",
    gamma: Any = None,
    n_components: int = 128,
    eta: float | None = None,
    n_columns: int = 2**20,
    **common: Any,
) -> Any:
    """Online gradient descent on random binning features whose cells are hashed into ``n_columns`` columns.

    Without ``eta`` the steps are AdaGrad's and need no tuning.
    """
    kind: Any = OnlineBinningRegressor if task == "regression" else OnlineBinningClassifier
    own = {"update": "auto" if eta is None else OGD(eta), "n_columns": n_columns}
    return kind(kernel, gamma, n_components, **{**own, **common})
