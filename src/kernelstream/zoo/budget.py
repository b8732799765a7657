"""Recipes in the kernel expansion with a budget."""

from __future__ import annotations

from typing import Any

from .. import budgets, updates
from ..budgets import Budget
from ..losses import CrammerSinger, Hinge, Loss
from ._registry import recipe
from .expansion import LABELS, LIMIT, STEP, build, hinge_loss, own_units, pegasos_update
from .feature import gradient_loss

# ------------------------------------------------------------------------------------------ budget, perceptron steps

JMLR2009 = "Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009)"


def _on_mistakes(
    strategy: Budget, task: str, kernel: Any, gamma: Any, budget: int, eta: float | None, epsilon: float | None,
    common: dict[str, Any], ties: bool = False,
) -> Any:  # fmt: skip
    """Perceptron steps: ``eta`` is 1, in regression without it 0.2 in units of the target's deviation."""
    eta, common = own_units(task, eta, 1.0, STEP, common)
    return build(
        task, kernel, gamma, budget, strategy, hinge_loss(task, epsilon), updates.Perceptron(eta, ties), common
    )


@recipe(JMLR2009, LABELS, {"regression": "'projectron'"})
def stoptron(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Perceptron that stops learning when its budget is full."""
    return _on_mistakes(budgets.Stop(), task, kernel, gamma, budget, eta, epsilon, common)


@recipe("Cavallanti, Cesa-Bianchi, Gentile: Tracking the best hyperplane with a simple budget Perceptron, ML 69 (2007)")
def rbp(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Randomised budget perceptron: a random support vector makes room."""
    return _on_mistakes(budgets.RemoveRandom(), task, kernel, gamma, budget, eta, epsilon, common)


@recipe("Dekel, Shalev-Shwartz, Singer: The Forgetron, SIAM Journal on Computing 37 (2008)")
def forgetron(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Self-tuned Forgetron: the function shrinks, then the oldest support vector makes room."""
    return _on_mistakes(budgets.Forgetron(), task, kernel, gamma, budget, eta, epsilon, common, ties=True)


@recipe("Crammer, Kandola, Singer: Online classification on a budget, NIPS 2003", LABELS)
def budget_perceptron(task: str, kernel: Any = "gaussian", gamma: Any = None, budget: int = 100, **common: Any) -> Any:
    """Perceptron whose best classified support vector makes room."""
    return _on_mistakes(budgets.RemoveRedundant(), task, kernel, gamma, budget, 1.0, None, common)


@recipe(JMLR2009)
def projectron(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Perceptron that projects mistakes on the support set when the budget is full or they lie in its span."""
    return _on_mistakes(budgets.Projectron(), task, kernel, gamma, budget, eta, epsilon, common)


@recipe(JMLR2009, LABELS)
def projectronpp(task: str, kernel: Any = "gaussian", gamma: Any = None, budget: int = 100, **common: Any) -> Any:
    """Projectron++: rows right by less than the margin are projected too, where that pays."""
    return _on_mistakes(budgets.ProjectronPP(), task, kernel, gamma, budget, 1.0, None, common)


# ------------------------------------------------------------------------------- budget, passive-aggressive steps

AISTATS2010 = "Wang, Vucetic: Online passive-aggressive algorithms on a budget, AISTATS 2010"


def _budget_pa(
    strategy: Budget,
    task: str,
    kernel: Any,
    gamma: Any,
    budget: int,
    C: float | None,
    epsilon: float | None,
    common: dict[str, Any],
) -> Any:
    """Passive-aggressive steps: ``C`` is 1, in regression without it 0.3 in units of the target's deviation."""
    C, common = own_units(task, C, 1.0, LIMIT, common)
    return build(task, kernel, gamma, budget, strategy, hinge_loss(task, epsilon), updates.PassiveAggressive(C), common)


@recipe(AISTATS2010)
def bpas(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budget PA-I, simple: the new row replaces the support vector whose part it can take over best."""
    return _budget_pa(budgets.Replace(), task, kernel, gamma, budget, C, epsilon, common)


@recipe(AISTATS2010)
def bpann(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budget PA-I, nearest neighbour: the removed vector's nearest neighbour shares the work."""
    return _budget_pa(budgets.Replace(neighbour=True), task, kernel, gamma, budget, C, epsilon, common)


@recipe(AISTATS2010)
def bpap(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budget PA-I, projecting: the removed vector is projected on all others."""
    return _budget_pa(budgets.Project(), task, kernel, gamma, budget, C, epsilon, common)


# ------------------------------------------------------------------------------------------ budget, gradient steps


@recipe("Zhao, Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms, ICML 2012")
def bogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    lam: float = 1e-6,
    gamma_max: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Bounded gradient descent: a random vector leaves, the others grow to make up for it, up to eta × gamma_max.

    ``gamma_max`` is 10, in regression 1: there coefficients are eta times an error, so that 10 bounds nothing, and what
    is learned can grow without end. ``eta`` is 0.4; in regression without it 0.2, in units of the target's deviation.
    """
    eta, common = own_units(task, eta, 0.4, 0.2, common)
    loss: Loss = {"binary": Hinge(closed=True), "multiclass": CrammerSinger(closed=True)}.get(task) or gradient_loss(
        task, epsilon
    )
    if task != "regression" and epsilon is not None:
        raise ValueError("epsilon is the dead zone of regression; classification has none")
    if gamma_max is None:
        gamma_max = 1.0 if task == "regression" else 10.0
    strategy = budgets.BOGD(limit=eta * gamma_max)
    return build(task, kernel, gamma, budget, strategy, loss, updates.OGD(eta, lam=lam), common)


JMLR2012 = "Wang, Crammer, Vucetic: Breaking the curse of kernelization, JMLR 13 (2012)"


def _bsgd(
    strategy: Budget,
    task: str,
    kernel: Any,
    gamma: Any,
    budget: int,
    lam: float | None,
    epsilon: float | None,
    common: dict[str, Any],
) -> Any:
    return build(task, kernel, gamma, budget, strategy, gradient_loss(task, epsilon), pegasos_update(task, lam), common)


@recipe(JMLR2012, LABELS, {"regression": "'bsgd_merge' or 'bsgd_project'"})
def bsgd_remove(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    lam: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budgeted Pegasos: the smallest support vector is removed, of equal ones (as its steps make them) the oldest.

    Without ``lam`` all steps are 2: what is left of the first rows does not grow with the stream, so the best lam of t
    rows is near 1/(2t), and steps of 1/(lam t) for that lam are of one size.
    """
    strategy = budgets.RemoveSmallest()
    if lam is None and task != "regression":
        return build(task, kernel, gamma, budget, strategy, gradient_loss(task, epsilon), updates.OGD(2.0), common)
    return _bsgd(strategy, task, kernel, gamma, budget, lam, epsilon, common)


@recipe(JMLR2012)
def bsgd_project(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    lam: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budgeted Pegasos: the smallest support vector is projected on the others."""
    return _bsgd(budgets.Project("smallest"), task, kernel, gamma, budget, lam, epsilon, common)


@recipe(JMLR2012)
def bsgd_merge(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    lam: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budgeted Pegasos: the smallest support vector is merged with the partner that loses least."""
    return _bsgd(budgets.Merge(), task, kernel, gamma, budget, lam, epsilon, common)


@recipe("Le, Nguyen, Nguyen, Phung: Dual space gradient descent for online learning, NIPS 2016")
def dualsgd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    n_components: int = 200,
    lam: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budgeted Pegasos whose removed vectors live on in random Fourier features."""
    return _bsgd(budgets.Transfer(n_components), task, kernel, gamma, budget, lam, epsilon, common)
