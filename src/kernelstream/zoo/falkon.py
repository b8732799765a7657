"""Recipes of nearly exact kernel machines on all rows."""

from __future__ import annotations

from typing import Any

from ..estimators import FalkonClassifier, FalkonRegressor
from ._registry import recipe


@recipe("Rudi, Carratino, Rosasco: FALKON, an optimal large scale kernel method, NeurIPS 2017")
def falkon(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    n_centers: int | str = "auto",
    lam: float | None = None,
    **common: Any,
) -> Any:
    """Kernel ridge regression over all rows: Nyström centres and preconditioned conjugate gradients.

    Scale of the columns, bandwidth and penalty are searched for on held-out rows unless they are given.
    """
    kind: Any = FalkonRegressor if task == "regression" else FalkonClassifier
    return kind(kernel, gamma, n_centers, lam, **common)


@recipe(
    "Marteau-Ferey, Bach, Rudi: Globally convergent Newton methods for ill-conditioned generalized self-concordant "
    "losses, NeurIPS 2019",
    tasks=("binary", "multiclass"),
)
def falkon_logistic(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    n_centers: int | str = "auto",
    lam: float | None = None,
    **common: Any,
) -> Any:
    """Kernel logistic regression over all rows: Nyström centres and Newton steps; gives probabilities."""
    return FalkonClassifier(kernel, gamma, n_centers, lam, "logistic", **common)
