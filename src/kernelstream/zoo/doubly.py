"""Recipes of doubly stochastic gradients: one recursion, a loss each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import losses
from ..estimators import (
    DensityRatioEstimator,
    DoublySchedule,
    DoublyStep,
    DoublyStochasticClassifier,
    DoublyStochasticGP,
    DoublyStochasticOneClass,
    DoublyStochasticRegressor,
)
from ._registry import LABELS, NOVELTY, enter

DAI = "Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014"
NUMBERS = ("regression",)

KERNEL = {"kernel": "gaussian", "gamma": None}
STEP = DoublyStep().get_params()
PENALTY = {"lam": "auto"}
SCHEDULE = DoublySchedule().get_params()

# name, what of the paper, tasks, loss, its own option, summary
LOSSES: tuple[tuple[str, str, tuple[str, ...], Callable[..., Any], dict[str, Any], str], ...] = (
    ("svm", "kernel support vector machine", LABELS, losses.Hinge, {}, "Support vector machine (hinge loss)"),
    ("l2svm", "with the squared hinge loss", LABELS, losses.SquaredHinge, {},
     "Support vector machine with squared hinge loss"),
    ("logistic", "kernel logistic regression", LABELS, losses.Logistic, {},
     "Kernel logistic regression, softmax from the third class on,"),
    ("softmax", "multi-class kernel logistic regression", LABELS, losses.Softmax, {},
     "Multi-class kernel logistic regression, one score per class,"),
    ("ridge", "kernel ridge regression", NUMBERS, losses.Squared, {}, "Kernel ridge regression"),
    ("huber", "kernel robust regression", NUMBERS, losses.Huber, {"delta": 1.0}, "Robust regression (Huber's loss)"),
    ("svr", "kernel support vector regression", NUMBERS, losses.EpsilonInsensitive, {"epsilon": 0.1},
     "Support vector regression (epsilon-insensitive loss)"),
    ("lad", "with the absolute loss", NUMBERS, losses.Absolute, {},
     "Least absolute deviations, the median instead of the mean,"),
    ("quantile", "kernel quantile regression", NUMBERS, losses.Quantile, {"tau": 0.5},
     "Quantile regression, ``tau`` the share of targets below the curve,"),
)  # fmt: skip


def _parts(given: dict[str, Any]) -> dict[str, Any]:
    """``given`` with the numbers of a step and of a schedule made one."""
    step = {name: given.pop(name) for name in STEP if name in given}
    numbers = {name: given.pop(name) for name in SCHEDULE}
    if step not in ({}, STEP):
        given["step"] = DoublyStep(**step)
    if numbers != SCHEDULE:
        given["schedule"] = DoublySchedule(**numbers)
    return given


def _loss(name: str, what: str, tasks: tuple[str, ...], loss: Any, own: dict[str, Any], summary: str) -> None:
    kind: Any = DoublyStochasticRegressor if tasks == NUMBERS else DoublyStochasticClassifier

    def compose(task: str, **given: Any) -> Any:
        return kind(loss=loss(**{option: given.pop(option) for option in own}), **_parts(given))

    options = KERNEL | own | PENALTY | STEP | SCHEDULE
    enter(f"doubly_{name}", f"{DAI}, {what}", tasks, f"{summary} by doubly stochastic gradients.", options, compose)


def _other(name: str, what: str, tasks: tuple[str, ...], kind: Any, own: dict[str, Any], summary: str) -> None:
    def compose(task: str, **given: Any) -> Any:
        return kind(**_parts(given))

    enter(f"doubly_{name}", f"{DAI}, {what}", tasks, summary, KERNEL | own | SCHEDULE, compose)


for _row in LOSSES:
    _loss(*_row)
_other(
    "novelty", "kernel novelty detection", (NOVELTY,), DoublyStochasticOneClass, {"nu": 0.1} | STEP,
    "Novelty detection by doubly stochastic gradients: a share ``nu`` of the rows lies below a learned threshold.",
)  # fmt: skip
_other(
    "density_ratio", "kernel density ratio estimation", ("binary",), DensityRatioEstimator, PENALTY | STEP,
    "Logarithm of the density ratio of two samples, the labels, by doubly stochastic gradients.",
)  # fmt: skip
_other(
    "gp", "Gaussian process regression", NUMBERS, DoublyStochasticGP, {"noise": 0.1},
    "Posterior of a Gaussian process by doubly stochastic gradients, mean and standard deviation.",
)  # fmt: skip
