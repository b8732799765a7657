"""Recipes in the kernel expansion: unbounded, sparse, with a budget, and batch learners.

Most of them are a row of :data:`ROWS`: steps, and a strategy for a support set that is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from .. import budgets, updates
from ..budgets import Budget
from ..estimators import BudgetClassifier, BudgetOneClass, BudgetRegressor
from ..losses import CrammerSinger, EpsilonInsensitive, Hinge, Loss
from ..updates import Update
from ._registry import LABELS, NOVELTY, TASKS, enter, pair, recipe
from .feature import gradient_loss

KERNEL = {"kernel": "gaussian", "gamma": None}


def hinge_loss(task: str, epsilon: float | None) -> Loss:
    """Hinge, Crammer-Singer or epsilon-insensitive loss: those of perceptron and passive-aggressive learners."""
    if task == "regression":
        return EpsilonInsensitive(0.1 if epsilon is None else epsilon)
    return gradient_loss(task, epsilon)


def build(
    task: str, kernel: Any, gamma: Any, budget: int | None, strategy: Budget, loss: Loss, update: Update | str,
    standard: bool = False,
) -> Any:  # fmt: skip
    """The learner; regression learns in units of the target's deviation where that is the ``standard``."""
    if task != "regression":
        return BudgetClassifier(kernel, gamma, budget, strategy, loss, update)
    center = "standard" if standard else update == "auto" or isinstance(update, updates.Pegasos)
    return BudgetRegressor(kernel, gamma, budget, strategy, loss, update, center=center)


class Steps(NamedTuple):
    """The steps of a learner: the option that sets their size, and what is used without it (docs/default_update.md)."""

    option: str  # name of the size
    labels: float  # the size for classes,
    regression: float  # and for numbers, in units of the target's deviation, so that one serves all;
    standard: bool  # or, where this is False, in their own units
    update: Callable[[float], Update]
    loss: Callable[[str, float | None], Loss]

    def chosen(self, task: str, given: float | None) -> tuple[float, bool]:
        """The size, and whether it is in units of the target's deviation."""
        if given is not None:
            return given, False
        return (self.regression, self.standard) if task == "regression" else (self.labels, False)


MISTAKES = Steps("eta", 1.0, 0.2, True, updates.Perceptron, hinge_loss)
TIES = MISTAKES._replace(update=partial(updates.Perceptron, ties=True))
PA = Steps("C", 1.0, 0.3, True, updates.PassiveAggressive, hinge_loss)
PA2 = PA._replace(update=partial(updates.PassiveAggressive, variant=2))
PA_EXACT = PA._replace(option="epsilon", update=lambda _: updates.PassiveAggressive(math.inf))
PEGASOS = Steps("lam", 5e-4, 5e-3, False, updates.Pegasos, gradient_loss)
SPARSE = Steps("eta", 0.1, 0.1, True, updates.OGD, hinge_loss)
SPARSE_GRADIENT = Steps("eta", 0.5, 0.5, False, updates.OGD, gradient_loss)

KIVINEN = "Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004)"
CRAMMER = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online passive-aggressive algorithms, JMLR 7 (2006)"
ORABONA = "Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009)"
AISTATS2010 = "Wang, Vucetic: Online passive-aggressive algorithms on a budget, AISTATS 2010"
JMLR2012 = "Wang, Crammer, Vucetic: Breaking the curse of kernelization, JMLR 13 (2012)"

BUDGET, EPSILON = {"budget": 100}, {"epsilon": None}
ON_MISTAKES, LIMITED, DECAYED = ({option: None} | EPSILON for option in ("eta", "C", "lam"))
PA_TEXT = (
    "``C`` is 1; in regression without it 0.3 and a tube of 0.1 (``epsilon``), in units of the target's deviation."
)

Row = tuple[str, str, tuple[str, ...], Steps, Callable[..., Budget], dict[str, Any], str]

# name, paper, tasks, steps, strategy, options beside the kernel (those that steps and loss do not use are the
# strategy's), what it is
ROWS: tuple[Row, ...] = (
    ("perceptron",
     "Rosenblatt: The perceptron, Psychological Review 65 (1958); in the kernel form of Freund and Schapire (1999)",
     TASKS, MISTAKES, budgets.Stop, ON_MISTAKES,
     "Kernel perceptron: every mistake becomes a support vector.\n\n``eta`` is 1; in regression without it 0.2 and a "
     "tube of 0.1 (``epsilon``), in units of the target's deviation."),
    ("pa", CRAMMER, TASKS, PA_EXACT, budgets.Stop, EPSILON,
     "Passive-aggressive learning: the smallest change that removes the loss.\n\n"
     "In regression without ``epsilon`` the tube is 0.1 deviations of the target."),
    ("pa1", CRAMMER, TASKS, PA, budgets.Stop, LIMITED,
     f"PA-I: the same, with coefficients of at most C.\n\n{PA_TEXT}"),
    ("pa2", CRAMMER, TASKS, PA2, budgets.Stop, LIMITED,
     f"PA-II: the same, with a quadratic price on the change.\n\n{PA_TEXT}"),
    ("pegasos", "Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos, Mathematical Programming 127 (2011)",
     TASKS, PEGASOS, budgets.Stop, DECAYED,
     "Kernel Pegasos: steps 1/(lam t) on the regularised loss; in regression 1/(lam t + k(x, x)).\n\n"
     "``lam`` is 5e-4, in regression 5e-3."),
    ("oskl", "Zhang, Yi, Jin, Lin, He: Online kernel learning with a near optimal sparsity bound, ICML 2013",
     LABELS, SPARSE_GRADIENT, budgets.OSKL, {"budget": None, "eta": 0.5, "G": 20.0, "average": True},
     "Sparse gradient descent: a row joins with probability |l'|/G, its coefficient G/|l'| times larger.\n\n"
     "Predictions are those of the mean of all functions so far unless ``average`` is False."),
    ("spa", "Lu, Zhao, Hoi: Online sparse passive aggressive learning with kernels, SDM 2016", TASKS, SPARSE,
     budgets.SPA,
     {"budget": None, "eta": None, "alpha": 1.0, "beta": 20.0, "horizon": None, "average": True} | EPSILON,
     "Sparse PA: a row joins with probability min(alpha, loss)/beta; predicts with the mean of all functions so far."
     "\n\n``eta`` is 0.1, in regression without it in units of the target's deviation, as is ``epsilon``. With "
     "``horizon``, the number of rows T to come, ``beta`` is alpha T / budget: then no more than ``budget`` rows are "
     "expected to join."),
    ("stoptron", ORABONA, LABELS, MISTAKES, budgets.Stop, BUDGET | ON_MISTAKES,
     "Perceptron that stops learning when its budget is full."),
    ("rbp",
     "Cavallanti, Cesa-Bianchi, Gentile: Tracking the best hyperplane with a simple budget Perceptron, ML 69 (2007)",
     TASKS, MISTAKES, budgets.RemoveRandom, BUDGET | ON_MISTAKES,
     "Randomised budget perceptron: a random support vector is removed."),
    ("forgetron", "Dekel, Shalev-Shwartz, Singer: The Forgetron, SIAM Journal on Computing 37 (2008)",
     TASKS, TIES, budgets.Forgetron, BUDGET | ON_MISTAKES,
     "Self-tuned Forgetron: the function shrinks, then the oldest support vector is removed."),
    ("budget_perceptron", "Crammer, Kandola, Singer: Online classification on a budget, NIPS 2003",
     LABELS, MISTAKES, budgets.RemoveRedundant, BUDGET,
     "Perceptron that removes its best classified support vector."),
    ("projectron", ORABONA, TASKS, MISTAKES, budgets.Projectron, BUDGET | ON_MISTAKES,
     "Perceptron that projects mistakes on the support set when the budget is full or they lie in its span."),
    ("projectronpp", ORABONA, LABELS, MISTAKES, budgets.ProjectronPP, BUDGET,
     "Projectron++: rows right by less than the margin are projected too, where that pays."),
    ("bpas", AISTATS2010, TASKS, PA, budgets.Replace, BUDGET | LIMITED,
     "Budget PA-I, simple: the new row replaces the support vector whose part it can take over best."),
    ("bpann", AISTATS2010, TASKS, PA, partial(budgets.Replace, neighbour=True), BUDGET | LIMITED,
     "Budget PA-I, nearest neighbour: the removed vector's nearest neighbour shares the work."),
    ("bpap", AISTATS2010, TASKS, PA, budgets.Project, BUDGET | LIMITED,
     "Budget PA-I, projecting: the removed vector is projected on all others."),
    ("bsgd_project", JMLR2012, TASKS, PEGASOS, partial(budgets.Project, "smallest"), BUDGET | DECAYED,
     "Budgeted Pegasos: the smallest support vector is projected on the others."),
    ("bsgd_merge", JMLR2012, TASKS, PEGASOS, budgets.Merge, BUDGET | DECAYED,
     "Budgeted Pegasos: the smallest support vector is merged with the partner that loses least."),
    ("dualsgd", "Le, Nguyen, Nguyen, Phung: Dual space gradient descent for online learning, NIPS 2016",
     TASKS, PEGASOS, budgets.Transfer, BUDGET | {"n_components": 200} | DECAYED,
     "Budgeted Pegasos whose removed vectors live on in random Fourier features."),
)  # fmt: skip


def _enter(
    name: str, paper: str, tasks: tuple[str, ...], steps: Steps, strategy: Callable[..., Budget],
    options: dict[str, Any], text: str,
) -> None:  # fmt: skip
    def compose(task: str, kernel: Any, gamma: Any, budget: int | None = None, **given: Any) -> Any:
        epsilon, horizon = given.pop("epsilon", None), given.pop("horizon", None)
        if horizon is not None:
            if budget is None:
                raise ValueError("horizon computes beta from the budget: give budget as well")
            given["beta"] = max(given["alpha"], given["alpha"] * horizon / budget)
        size, standard = steps.chosen(task, epsilon if steps.option == "epsilon" else given.pop(steps.option, None))
        loss = steps.loss(task, epsilon)
        return build(task, kernel, gamma, budget, strategy(**given), loss, steps.update(size), standard)

    otherwise = {"regression": "'projectron'"} if name == "stoptron" else {}
    enter(name, paper, tasks, text, KERNEL | options, compose, otherwise)


for _row in ROWS:
    _enter(*_row)


@recipe(KIVINEN)
def ogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    eta: float | None = None,
    lam: float = 0.0,
    epsilon: float | None = None,
) -> Any:
    """Kernel online gradient descent: every row with loss becomes a support vector; no step size needed."""
    if eta is None and lam:
        raise ValueError("lam needs eta: without a step size the update has no decay")
    update = "auto" if eta is None else updates.OGD(eta, lam=lam)
    return build(task, kernel, gamma, None, budgets.Stop(), gradient_loss(task, epsilon), update)


@recipe(KIVINEN)
def norma(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int | None = None,
    eta: float | None = None,
    lam: float = 1e-4,
    nu: float = 0.5,
    epsilon: float | None = None,
) -> Any:
    """NORMA: gradient descent with decay; in regression the tube learns its width, a share nu of the rows outside.

    ``eta`` is 0.7; in regression without it 0.3, in units of the target's deviation, as is ``epsilon``.
    """
    steps = Steps("eta", 0.7, 0.3, True, lambda size: updates.NORMA(size, lam, nu), hinge_loss)
    size, standard = steps.chosen(task, eta)
    strategy: Budget = budgets.Stop() if budget is None else budgets.RemoveSmallest()
    return build(task, kernel, gamma, budget, strategy, steps.loss(task, epsilon), steps.update(size), standard)


@recipe("Zhao, Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms, ICML 2012")
def bogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    eta: float | None = None,
    lam: float = 1e-6,
    gamma_max: float | None = None,
    oldest: bool = False,
    epsilon: float | None = None,
) -> Any:
    """Bounded gradient descent: a random vector leaves, the others grow to make up for it, up to eta × gamma_max.

    With ``oldest`` it is as in the programs of Lu's thesis (2017): the oldest leaves, and no other changes.

    ``gamma_max`` is 10, in regression 1: there coefficients are eta times an error, so that 10 bounds nothing, and what
    is learned can grow without end. ``eta`` is 0.4; in regression without it 0.2, in units of the target's deviation.
    """
    steps = Steps("eta", 0.4, 0.2, True, lambda size: updates.OGD(size, lam=lam), gradient_loss)
    size, standard = steps.chosen(task, eta)
    loss = steps.loss(task, epsilon)
    if task != "regression":
        loss = Hinge(closed=True) if task == "binary" else CrammerSinger(closed=True)
    if gamma_max is None:
        gamma_max = 1.0 if task == "regression" else 10.0
    strategy = budgets.BOGD(size * gamma_max, oldest)
    return build(task, kernel, gamma, budget, strategy, loss, steps.update(size), standard)


@recipe(JMLR2012, LABELS, {"regression": "'bsgd_merge' or 'bsgd_project'"})
def bsgd_remove(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    lam: float | None = None,
    epsilon: float | None = None,
) -> Any:
    """Budgeted Pegasos: the smallest support vector is removed, of equal ones (as its steps make them) the oldest.

    Without ``lam`` all steps are 2: what is left of the first rows does not grow with the stream, so the best lam of t
    rows is near 1/(2t), and steps of 1/(lam t) for that lam are of one size.
    """
    update: Update = updates.Pegasos(PEGASOS.chosen(task, lam)[0])
    if lam is None and task != "regression":
        update = updates.OGD(2.0)
    return build(task, kernel, gamma, budget, budgets.RemoveSmallest(), gradient_loss(task, epsilon), update)


enter(
    "norma_novelty", KIVINEN, (NOVELTY,),
    "NORMA for novelties: rows whose f is below a learned threshold, a share nu of them, are novel and join.",
    KERNEL | {"budget": 200, "eta": 0.05, "lam": 0.01, "nu": 0.1}, pair(BudgetOneClass, None),
)  # fmt: skip
