"""Recipes of doubly stochastic gradients: one recursion, a loss each."""

from __future__ import annotations

from typing import Any

from .. import losses
from ..estimators import (
    DensityRatioEstimator,
    DoublyStep,
    DoublyStochasticClassifier,
    DoublyStochasticGP,
    DoublyStochasticOneClass,
    DoublyStochasticRegressor,
)
from ._registry import NOVELTY, recipe

DAI = "Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014"
LABELS, NUMBERS = ("binary", "multiclass"), ("regression",)


def _step(eta: Any) -> Any:
    """``eta`` alone of the step sizes, the rest as usual."""
    return "auto" if eta == "auto" else DoublyStep(eta)


@recipe(f"{DAI}, kernel support vector machine", LABELS)
def doubly_svm(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Support vector machine (hinge loss) by doubly stochastic gradients."""
    return DoublyStochasticClassifier(kernel, gamma, losses.Hinge(), lam, _step(eta), **common)


@recipe(f"{DAI}, with the squared hinge loss", LABELS)
def doubly_l2svm(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Support vector machine with squared hinge loss by doubly stochastic gradients."""
    return DoublyStochasticClassifier(kernel, gamma, losses.SquaredHinge(), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel logistic regression", LABELS)
def doubly_logistic(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Kernel logistic regression by doubly stochastic gradients; softmax from the third class on."""
    return DoublyStochasticClassifier(kernel, gamma, losses.Logistic(), lam, _step(eta), **common)


@recipe(f"{DAI}, multi-class kernel logistic regression", LABELS)
def doubly_softmax(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Multi-class kernel logistic regression by doubly stochastic gradients: one score per class."""
    return DoublyStochasticClassifier(kernel, gamma, losses.Softmax(), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel ridge regression", NUMBERS)
def doubly_ridge(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Kernel ridge regression by doubly stochastic gradients."""
    return DoublyStochasticRegressor(kernel, gamma, losses.Squared(), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel robust regression", NUMBERS)
def doubly_huber(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = "auto",
    delta: float = 1.0,
    lam: Any = "auto",
    eta: Any = "auto",
    **common: Any,
) -> Any:
    """Robust regression (Huber's loss) by doubly stochastic gradients."""
    return DoublyStochasticRegressor(kernel, gamma, losses.Huber(delta), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel support vector regression", NUMBERS)
def doubly_svr(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = "auto",
    epsilon: float = 0.1,
    lam: Any = "auto",
    eta: Any = "auto",
    **common: Any,
) -> Any:
    """Support vector regression (epsilon-insensitive loss) by doubly stochastic gradients."""
    return DoublyStochasticRegressor(kernel, gamma, losses.EpsilonInsensitive(epsilon), lam, _step(eta), **common)


@recipe(f"{DAI}, with the absolute loss", NUMBERS)
def doubly_lad(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Least absolute deviations by doubly stochastic gradients: the median instead of the mean."""
    return DoublyStochasticRegressor(kernel, gamma, losses.Absolute(), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel quantile regression", NUMBERS)
def doubly_quantile(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = "auto",
    tau: float = 0.5,
    lam: Any = "auto",
    eta: Any = "auto",
    **common: Any,
) -> Any:
    """Quantile regression by doubly stochastic gradients: ``tau`` is the share of targets below the curve."""
    return DoublyStochasticRegressor(kernel, gamma, losses.Quantile(tau), lam, _step(eta), **common)


@recipe(f"{DAI}, kernel novelty detection", (NOVELTY,))
def doubly_novelty(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", nu: float = 0.1, eta: Any = "auto", **common: Any
) -> Any:
    """Novelty detection by doubly stochastic gradients: a share ``nu`` of the rows lies below a learned threshold."""
    return DoublyStochasticOneClass(kernel, gamma, nu, _step(eta), **common)


@recipe(f"{DAI}, kernel density ratio estimation", ("binary",))
def doubly_density_ratio(
    task: str, kernel: Any = "gaussian", gamma: Any = "auto", lam: Any = "auto", eta: Any = "auto", **common: Any
) -> Any:
    """Logarithm of the density ratio of two samples, the labels, by doubly stochastic gradients."""
    return DensityRatioEstimator(kernel, gamma, lam, _step(eta), **common)


@recipe(f"{DAI}, Gaussian process regression", NUMBERS)
def doubly_gp(task: str, kernel: Any = "gaussian", gamma: Any = "auto", noise: Any = "auto", **common: Any) -> Any:
    """Posterior of a Gaussian process by doubly stochastic gradients, mean and standard deviation."""
    return DoublyStochasticGP(kernel, gamma, noise, **common)
