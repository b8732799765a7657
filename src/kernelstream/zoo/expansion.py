"""Recipes in the kernel expansion without a budget: unbounded, sparse and batch learners."""

from __future__ import annotations

import math
from typing import Any

from .. import budgets, updates
from ..baselines import KernelSDCAClassifier, KernelSDCARegressor
from ..budgets import Budget
from ..estimators import BudgetClassifier, BudgetOneClass, BudgetRegressor
from ..losses import EpsilonInsensitive, Loss
from ..updates import Update
from ._registry import NOVELTY, recipe
from .feature import gradient_loss

LABELS = ("binary", "multiclass")


def hinge_loss(task: str, epsilon: float | None, default: float = 0.1) -> Loss:
    """Hinge, Crammer-Singer or epsilon-insensitive loss: those of perceptron and passive-aggressive learners."""
    if task == "regression":
        return EpsilonInsensitive(default if epsilon is None else epsilon)
    return gradient_loss(task, epsilon)


# Steps of regression where none is given, in units of the target's deviation (docs/default_update.md).
STEP, LIMIT, TUBE_STEP = 0.2, 0.3, 0.3


def own_units(
    task: str, given: float | None, labels: float, regression: float, common: dict[str, Any]
) -> tuple[float, dict[str, Any]]:
    """A step or limit, and the parameters of the estimator.

    Without a number of the user, regression learns in units of the target's deviation, so that one number serves all.
    """
    if given is not None:
        return given, common
    return (regression, {"center": "standard", **common}) if task == "regression" else (labels, common)


def build(
    task: str,
    kernel: Any,
    gamma: Any,
    budget: int | None,
    strategy: Budget,
    loss: Loss,
    update: Update | str,
    common: dict[str, Any],
) -> Any:
    if task == "regression":
        center = update == "auto" or isinstance(update, updates.Pegasos)
        return BudgetRegressor(kernel, gamma, budget, strategy, loss, update, **{"center": center, **common})
    return BudgetClassifier(kernel, gamma, budget, strategy, loss, update, **common)


def pegasos_update(task: str, lam: float | None) -> Update:
    """Pegasos; its regulariser is 5e-4 for labels, and 5e-3 in regression, where the steps must shrink sooner."""
    if lam is None:
        lam = 5e-3 if task == "regression" else 5e-4
    return updates.Pegasos(lam)


def gradient_update(eta: float | None, lam: float) -> Update | str:
    """Constant steps of size eta; without eta, steps that need no tuning."""
    if eta is not None:
        return updates.OGD(eta, lam=lam)
    if lam:
        raise ValueError("lam needs eta: without a step size the update has no decay")
    return "auto"


# ---------------------------------------------------------------------------------------------------- unbounded


@recipe("Rosenblatt: The perceptron, Psychological Review 65 (1958); in the kernel form of Freund and Schapire (1999)")
def perceptron(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Kernel perceptron: every mistake becomes a support vector.

    ``eta`` is 1; in regression without it 0.2 and a tube of 0.1 (``epsilon``), in units of the target's deviation.
    """
    eta, common = own_units(task, eta, 1.0, STEP, common)
    return build(task, kernel, gamma, None, budgets.Stop(), hinge_loss(task, epsilon), updates.Perceptron(eta), common)


@recipe("Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004)")
def ogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    eta: float | None = None,
    lam: float = 0.0,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Kernel online gradient descent: every row with loss becomes a support vector; no step size needed."""
    loss = gradient_loss(task, epsilon)
    return build(task, kernel, gamma, None, budgets.Stop(), loss, gradient_update(eta, lam), common)


@recipe("Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004)")
def norma(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int | None = None,
    eta: float | None = None,
    lam: float = 1e-4,
    nu: float = 0.5,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """NORMA: gradient descent with decay; in regression the tube learns its width, a share nu of the rows outside.

    ``eta`` is 0.7; in regression without it 0.3, in units of the target's deviation, as is ``epsilon``.
    """
    eta, common = own_units(task, eta, 0.7, TUBE_STEP, common)
    strategy: Budget = budgets.Stop() if budget is None else budgets.RemoveSmallest()
    return build(task, kernel, gamma, budget, strategy, hinge_loss(task, epsilon), updates.NORMA(eta, lam, nu), common)


@recipe(
    "Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004)",
    (NOVELTY,),
)
def norma_novelty(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int | None = 200,
    eta: float = 0.05,
    lam: float = 0.01,
    nu: float = 0.1,
    **common: Any,
) -> Any:
    """NORMA for novelties: rows whose f is below a learned threshold, a share nu of them, are novel and join."""
    return BudgetOneClass(kernel, gamma, budget, nu=nu, eta=eta, lam=lam, **common)


PA = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online passive-aggressive algorithms, JMLR 7 (2006)"


def passive_aggressive(
    task: str, kernel: Any, gamma: Any, epsilon: float | None, update: Update, common: dict[str, Any]
) -> Any:
    return build(task, kernel, gamma, None, budgets.Stop(), hinge_loss(task, epsilon), update, common)


@recipe(PA)
def pa(task: str, kernel: Any = "gaussian", gamma: Any = None, epsilon: float | None = None, **common: Any) -> Any:
    """Passive-aggressive learning: the smallest change that removes the loss.

    In regression without ``epsilon`` the tube is 0.1 deviations of the target.
    """
    _, common = own_units(task, epsilon, 0.0, 0.0, common)
    return passive_aggressive(task, kernel, gamma, epsilon, updates.PassiveAggressive(math.inf), common)


@recipe(PA)
def pa1(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """PA-I: the same, with coefficients of at most C.

    ``C`` is 1; in regression without it 0.3 and a tube of 0.1 (``epsilon``), in units of the target's deviation.
    """
    C, common = own_units(task, C, 1.0, LIMIT, common)
    return passive_aggressive(task, kernel, gamma, epsilon, updates.PassiveAggressive(C, 1), common)


@recipe(PA)
def pa2(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """PA-II: the same, with a quadratic price on the change.

    ``C`` is 1; in regression without it 0.3 and a tube of 0.1 (``epsilon``), in units of the target's deviation.
    """
    C, common = own_units(task, C, 1.0, LIMIT, common)
    return passive_aggressive(task, kernel, gamma, epsilon, updates.PassiveAggressive(C, 2), common)


@recipe("Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos, Mathematical Programming 127 (2011)")
def pegasos(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    lam: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Kernel Pegasos: steps 1/(lam t) on the regularised loss; in regression 1/(lam t + k(x, x)).

    ``lam`` is 5e-4, in regression 5e-3.
    """
    loss = gradient_loss(task, epsilon)
    return build(task, kernel, gamma, None, budgets.Stop(), loss, pegasos_update(task, lam), common)


# ----------------------------------------------------------------------------------------------------------- sparse


@recipe("Zhang, Yi, Zhang, Lin, Jin, Liu: Online kernel learning with a near optimal sparsity bound, ICML 2013", LABELS)
def oskl(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int | None = None,
    eta: float = 0.5,
    G: float = 20.0,
    average: bool = True,
    **common: Any,
) -> Any:
    """Sparse gradient descent: a row joins with probability |l'|/G, its coefficient G/|l'| times larger.

    Predictions are those of the mean of all functions so far unless ``average`` is False.
    """
    strategy = budgets.OSKL(G, average)
    return build(task, kernel, gamma, budget, strategy, gradient_loss(task, None), updates.OGD(eta), common)


@recipe("Lu, Zhao, Hoi: Online sparse passive aggressive learning with kernels, SDM 2016")
def spa(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int | None = None,
    eta: float | None = None,
    alpha: float = 1.0,
    beta: float = 20.0,
    average: bool = True,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Sparse PA: a row joins with probability min(alpha, loss)/beta; predicts with the mean of all functions so far.

    ``eta`` is 0.1, in regression without it in units of the target's deviation, as is ``epsilon``.
    """
    eta, common = own_units(task, eta, 0.1, 0.1, common)
    strategy = budgets.SPA(alpha, beta, average)
    return build(task, kernel, gamma, budget, strategy, hinge_loss(task, epsilon), updates.OGD(eta), common)


# ------------------------------------------------------------------------------------------------------------ batch


@recipe("Shalev-Shwartz, Zhang: Stochastic dual coordinate ascent methods, JMLR 14 (2013), in the kernel form")
def ksdca(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    lam: float = 1e-3,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """k-SDCA, the batch reference: the regularised minimum over all rows, by dual coordinate ascent."""
    if task == "regression":
        loss: Any = "squared" if epsilon is None else EpsilonInsensitive(epsilon)
        return KernelSDCARegressor(kernel, gamma, lam, loss, **common)
    if epsilon is not None:
        raise ValueError("epsilon is the dead zone of regression; classification has none")
    return KernelSDCAClassifier(kernel, gamma, lam, **common)
