"""Recipes of second order: ridge regression after every row, and its relatives."""

from __future__ import annotations

from typing import Any

from ..estimators import AROWClassifier, KernelAWV, KernelAWVClassifier, OnlineRidge, OnlineRidgeClassifier
from ..features import TaylorFeatures, for_kernel
from ._registry import LABELS, TASKS, enter, pair, recipe

JEZEQUEL = "Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale problems, 2019"


@recipe(f"{JEZEQUEL}, algorithm 1")
def awv(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    degree: int | str = 2,
    lam: Any = 1.0,
    max_features: int = 2000,
) -> Any:
    """The forecaster of Azoury, Warmuth and Vovk on Taylor features of the Gaussian kernel.

    ``degree`` M gives C(M+d, M) features; "auto" lets it grow as theorem 4.1 asks. ``lam="auto"`` averages over a grid.
    """
    features = TaylorFeatures(kernel, degree, gamma, max_features)
    kind: Any = OnlineRidge if task == "regression" else OnlineRidgeClassifier
    return kind(features, lam, forecaster="awv")


@recipe("Hoerl, Kennard: Ridge regression, Technometrics 12 (1970), after every row")
def ridge(task: str, kernel: Any = "gaussian", gamma: Any = None, n_components: int = 100, lam: Any = 1.0) -> Any:
    """Recursive least squares on the natural features of a kernel (random Fourier for the Gaussian)."""
    features = for_kernel(kernel, n_components=n_components, gamma=gamma)
    kind: Any = OnlineRidge if task == "regression" else OnlineRidgeClassifier
    return kind(features, lam)


enter(
    "kernel_awv", f"{JEZEQUEL}, section 2", TASKS, "Kernel-AWV, exact: every row kept, time t² for row t.",
    {"kernel": "gaussian", "gamma": None, "lam": 1.0}, pair(KernelAWVClassifier, KernelAWV),
)  # fmt: skip


@recipe("Crammer, Kulesza, Dredze: Adaptive regularization of weight vectors, NeurIPS 2009", LABELS)
def arow(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    n_components: int = 100,
    lam: float = 0.1,
    diagonal: bool = False,
) -> Any:
    """AROW on the natural features of a kernel; ``lam`` is the paper's r."""
    return AROWClassifier(for_kernel(kernel, n_components=n_components, gamma=gamma), lam, diagonal)
