"""Recipes of nearly exact kernel machines on all rows."""

from __future__ import annotations

from ..estimators import FalkonClassifier, FalkonRegressor
from ._registry import LABELS, TASKS, enter, pair

OPTIONS = {"kernel": "gaussian", "gamma": None, "n_centers": "auto", "lam": None}

enter(
    "falkon", "Rudi, Carratino, Rosasco: FALKON, an optimal large scale kernel method, NeurIPS 2017", TASKS,
    "Kernel ridge regression over all rows: Nyström centres and preconditioned conjugate gradients.\n\n"
    "Scale of the columns, bandwidth and penalty are searched for on held-out rows unless they are given.",
    OPTIONS, pair(FalkonClassifier, FalkonRegressor),
)  # fmt: skip
enter(
    "falkon_logistic",
    "Marteau-Ferey, Bach, Rudi: Globally convergent Newton methods for ill-conditioned generalized self-concordant "
    "losses, NeurIPS 2019",
    LABELS, "Kernel logistic regression over all rows: Nyström centres and Newton steps; gives probabilities.",
    OPTIONS, pair(FalkonClassifier, None, lambda: {"loss": "logistic"}),
)  # fmt: skip
