"""Recipes with many kernels: online multiple kernel learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import kernels as catalogue
from .._checks import whole
from ..estimators import HedgeWeights, MultiKernelClassifier, MultiKernelRegressor, StochasticUpdates
from ..estimators.ensemble.models import WIDTHS
from . import budget, expansion, feature
from ._registry import TASKS, enter, recipe

THESIS = "Lu: Online kernel learning for big data, PhD thesis, Singapore Management University (2017), chapter 5"
OMKC = "Hoi, Jin, Zhao, Yang: Online multiple kernel classification, Machine Learning 90 (2013)"
BOTH = f"{OMKC}; {THESIS}"

WEIGHTS = HedgeWeights().get_params()
# algorithm 18: a learner that is not drawn neither learns the row nor pays for its loss
DRAWN = StochasticUpdates(counted="drawn").get_params()

# name, reference, learner, budgeted, options of the learner, what the learners are
PAIRS: tuple[tuple[str, str, Callable[..., Any], bool, dict[str, Any], str], ...] = (
    ("omkl_{}", BOTH, expansion.perceptron, False, {}, "Kernel perceptrons"),
    ("omkl_{}pa", THESIS, expansion.pa1, False, {"C": None}, "PA-I learners"),
    ("omkl_rbp_{}", THESIS, budget.rbp, True, {}, "Randomised budget perceptrons"),
    ("omkl_forgetron_{}", THESIS, budget.forgetron, True, {}, "Forgetrons"),
    ("omkl_bogd_{}", THESIS, budget.bogd, True, {"eta": None, "lam": 1e-6}, "Learners by bounded gradient descent"),
    ("omkl_bpas_{}", THESIS, budget.bpas, True, {"C": None}, "Budget PA learners"),
)


def pool(polynomials: bool = True) -> list[Any]:
    """The kernels of the thesis: (x'z)^p for p = 1, 2, 3, and Gaussians with sigma = 2^-6, …, 2^6."""
    first = [catalogue.Polynomial(degree, c=0.0, gamma=1.0) for degree in (1, 2, 3)] if polynomials else []
    return first + [catalogue.Gaussian(0.5 / sigma**2) for sigma in WIDTHS]


def _ensemble(
    task: str, build: Callable[..., Any], kernels: Any, common: dict[str, Any], polynomials: bool = True, **own: Any
) -> Any:
    """One learner ``build(task, kernel=..., **own)`` for every kernel; ``common`` goes to the ensemble."""
    chosen = pool(polynomials) if kernels is None else list(kernels)
    kind: Any = MultiKernelRegressor if task == "regression" else MultiKernelClassifier
    weights = {name: common.pop(name) for name in WEIGHTS if name in common}
    chances = {name: common.pop(name) for name in DRAWN if name in common}
    if weights and weights != WEIGHTS:
        common.setdefault("combination", HedgeWeights(**weights))
    if chances and common.get("updates", "stochastic") == "stochastic":
        common["updates"] = StochasticUpdates(**chances)
    return kind([build(task, kernel=kernel, **own) for kernel in chosen], **common)


def _pair(
    name: str, reference: str, learner: Callable[..., Any], budgeted: bool, own: dict[str, Any], summary: str
) -> None:
    """Two recipes: all learners learn, each on an equal part of the budget; or those drawn, on a shared budget."""
    options = {"kernels": None} | ({"budget": 1600} if budgeted else {}) | own | {"epsilon": None} | WEIGHTS
    names = [*own, "epsilon"]

    def build(task: str, kernels: Any, **given: Any) -> Any:
        inner = {key: given.pop(key) for key in names}
        if "C" in inner:
            inner["C"] = _limit(task, inner["C"])
        if budgeted:
            inner["budget"] = _part(given.pop("budget"), kernels)
        return _ensemble(task, learner, kernels, given, **inner)

    def drawn(task: str, **given: Any) -> Any:
        return build(task, **({"capacity": "shared"} if budgeted else {}) | given)

    each, one = (", each with an equal part of the budget", ", on one budget for all") if budgeted else ("", "")
    enter(
        name.format("dd"), reference, TASKS, f"{summary} with Hedge weights, all of them updated{each}.", options, build
    )
    text = f"{summary} with Hedge weights{one}; a row changes a learner and its weight only if it is drawn."
    enter(name.format("sd"), reference, TASKS, text, options | DRAWN, drawn)


def _part(budget: int, kernels: Any) -> int:
    """The part of a budget that every kernel gets."""
    whole("budget", budget)
    number = len(pool()) if kernels is None else len(list(kernels))
    if budget < number:
        raise ValueError(f"a budget of {budget} support vectors is too small for {number} kernels")
    return budget // number


def _limit(task: str, C: float | None) -> float | None:
    """C of the thesis for labels; in regression that of a single learner."""
    return 0.1 if C is None and task != "regression" else C


@recipe(BOTH)
def omkl_u(task: str, kernels: Any = None, epsilon: float | None = None, **common: Any) -> Any:
    """Kernel perceptrons that vote with equal weights."""
    return _ensemble(task, expansion.perceptron, kernels, {"combination": "uniform", **common}, epsilon=epsilon)


for _row in PAIRS:
    _pair(*_row)


@recipe(f"{THESIS}, algorithm 14")
def omkl_spa(
    task: str,
    kernels: Any = None,
    budget: int | None = None,
    eta: float | None = None,
    alpha: float = 1.0,
    beta: float = 3.0,
    epsilon: float | None = None,
    discount: float | str = "auto",
    share: float = 0.0,
    **common: Any,
) -> Any:
    """Sparse PA with Hedge weights: a row joins learner i with probability min(alpha, loss)/beta × theta_i/max theta.

    ``budget`` is for each kernel; without it about alpha/beta of the rows join.
    """
    common = {"updates": "stochastic", "discount": discount, "share": share, **common}
    own: dict[str, Any] = {"budget": budget, "eta": eta, "alpha": alpha, "beta": beta, "epsilon": epsilon}
    return _ensemble(task, expansion.spa, kernels, common, average=False, **own)


@recipe(f"{THESIS}, algorithm 15")
def omkl_fogd(
    task: str,
    kernels: Any = None,
    n_components: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    discount: float | str = "auto",
    share: float = 0.0,
    **common: Any,
) -> Any:
    """FOGD with Hedge weights: ``n_components`` frequencies for each Gaussian, all of them from one product per row.

    Without ``eta`` the steps are AdaGrad's and need no tuning.
    """
    own: dict[str, Any] = {"n_components": n_components, "eta": eta, "epsilon": epsilon}
    common = {"discount": discount, "share": share, **common}
    return _ensemble(task, feature.fogd, kernels, common, polynomials=False, **own)


@recipe(f"{THESIS}, algorithm 16")
def omkl_nogd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    rank: int | None = None,
    eta: float | None = None,
    epsilon: float | None = None,
    discount: float | str = "auto",
    share: float = 0.0,
    **common: Any,
) -> Any:
    """NOGD with Hedge weights; each kernel has an equal part of the budget of landmarks."""
    own: dict[str, Any] = {"budget": _part(budget, kernels), "rank": rank, "eta": eta, "epsilon": epsilon}
    common = {"discount": discount, "share": share, **common}
    return _ensemble(task, feature.nogd, kernels, common, **own)
