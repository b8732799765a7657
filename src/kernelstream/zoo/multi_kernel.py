"""Recipes with many kernels: online multiple kernel learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import kernels as catalogue
from .._checks import whole
from ..estimators import MultiKernelClassifier, MultiKernelRegressor
from ..estimators.ensemble.models import WIDTHS
from . import expansion, feature
from ._registry import recipe

THESIS = "Lu: Online kernel learning for big data, PhD thesis, Singapore Management University (2017), chapter 5"
OMKC = "Hoi, Jin, Zhao, Yang: Online multiple kernel classification, Machine Learning 90 (2013)"
BOTH = f"{OMKC}; {THESIS}"

DD, SD = "deterministic", "stochastic"
DRAWN = {"updates": SD, "counted": "drawn"}  # algorithm 18: who is not drawn neither learns the row nor pays for it


def pool(polynomials: bool = True) -> list[Any]:
    """The kernels of the thesis: (x'z)^p for p = 1, 2, 3, and Gaussians with sigma = 2^-6, …, 2^6."""
    first = [catalogue.Polynomial(degree, c=0.0, gamma=1.0) for degree in (1, 2, 3)] if polynomials else []
    return first + [catalogue.Gaussian(0.5 / sigma**2) for sigma in WIDTHS]


def _ensemble(
    task: str, build: Callable[..., Any], kernels: Any, common: dict, polynomials: bool = True, **own: Any
) -> Any:
    """One learner ``build(task, kernel=..., **own)`` for every kernel; ``common`` goes to the ensemble."""
    chosen = pool(polynomials) if kernels is None else list(kernels)
    kind: Any = MultiKernelRegressor if task == "regression" else MultiKernelClassifier
    return kind([build(task, kernel=kernel, **own) for kernel in chosen], **common)


def _budgeted(
    task: str, build: Callable[..., Any], updates: str, kernels: Any, budget: int, common: dict, **own: Any
) -> Any:
    """A budget of support vectors for all kernels: equal parts with deterministic updates, else one for all."""
    common = {**(DRAWN | {"capacity": "shared"} if updates == SD else {}), **common}
    return _ensemble(task, build, kernels, common, budget=_part(budget, kernels), **own)


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


# ---------------------------------------------------------------------------------------------------- unbounded


@recipe(BOTH)
def omkl_u(task: str, kernels: Any = None, epsilon: float | None = None, **common: Any) -> Any:
    """Kernel perceptrons that vote with equal weights."""
    return _ensemble(task, expansion.perceptron, kernels, {"combination": "uniform", **common}, epsilon=epsilon)


@recipe(BOTH)
def omkl_dd(task: str, kernels: Any = None, epsilon: float | None = None, **common: Any) -> Any:
    """Kernel perceptrons with Hedge weights, all of them updated (OMKC with deterministic updates)."""
    return _ensemble(task, expansion.perceptron, kernels, common, epsilon=epsilon)


@recipe(BOTH)
def omkl_sd(task: str, kernels: Any = None, epsilon: float | None = None, **common: Any) -> Any:
    """Kernel perceptrons with Hedge weights; a row changes a learner and its weight only if it is drawn."""
    return _ensemble(task, expansion.perceptron, kernels, {**DRAWN, **common}, epsilon=epsilon)


@recipe(THESIS)
def omkl_ddpa(
    task: str, kernels: Any = None, C: float | None = None, epsilon: float | None = None, **common: Any
) -> Any:
    """PA-I learners with Hedge weights, all of them updated."""
    return _ensemble(task, expansion.pa1, kernels, common, C=_limit(task, C), epsilon=epsilon)


@recipe(THESIS)
def omkl_sdpa(
    task: str, kernels: Any = None, C: float | None = None, epsilon: float | None = None, **common: Any
) -> Any:
    """PA-I learners with Hedge weights; a row changes a learner and its weight only if it is drawn."""
    return _ensemble(task, expansion.pa1, kernels, {**DRAWN, **common}, C=_limit(task, C), epsilon=epsilon)


# ----------------------------------------------------------------------------------------------------- budgets


@recipe(THESIS)
def omkl_rbp_dd(task: str, kernels: Any = None, budget: int = 1600, epsilon: float | None = None, **common: Any) -> Any:
    """Randomised budget perceptrons with Hedge weights, all of them updated, each with an equal part of the budget."""
    return _budgeted(task, expansion.rbp, DD, kernels, budget, common, epsilon=epsilon)


@recipe(THESIS)
def omkl_rbp_sd(task: str, kernels: Any = None, budget: int = 1600, epsilon: float | None = None, **common: Any) -> Any:
    """Randomised budget perceptrons with Hedge weights, updated if drawn, on one budget for all."""
    return _budgeted(task, expansion.rbp, SD, kernels, budget, common, epsilon=epsilon)


@recipe(THESIS)
def omkl_forgetron_dd(
    task: str, kernels: Any = None, budget: int = 1600, epsilon: float | None = None, **common: Any
) -> Any:
    """Forgetrons with Hedge weights, all of them updated, each with an equal part of the budget."""
    return _budgeted(task, expansion.forgetron, DD, kernels, budget, common, epsilon=epsilon)


@recipe(THESIS)
def omkl_forgetron_sd(
    task: str, kernels: Any = None, budget: int = 1600, epsilon: float | None = None, **common: Any
) -> Any:
    """Forgetrons with Hedge weights, updated if drawn, on one budget for all."""
    return _budgeted(task, expansion.forgetron, SD, kernels, budget, common, epsilon=epsilon)


@recipe(THESIS)
def omkl_bogd_dd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    eta: float | None = None,
    lam: float = 1e-6,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Bounded gradient descent with Hedge weights, all updated, each learner with an equal part of the budget."""
    return _budgeted(task, expansion.bogd, DD, kernels, budget, common, eta=eta, lam=lam, epsilon=epsilon)


@recipe(THESIS)
def omkl_bogd_sd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    eta: float | None = None,
    lam: float = 1e-6,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Bounded gradient descent with Hedge weights, updated if drawn, on one budget for all."""
    return _budgeted(task, expansion.bogd, SD, kernels, budget, common, eta=eta, lam=lam, epsilon=epsilon)


@recipe(THESIS)
def omkl_bpas_dd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budget PA with Hedge weights, all learners updated, each with an equal part of the budget."""
    return _budgeted(task, expansion.bpas, DD, kernels, budget, common, C=_limit(task, C), epsilon=epsilon)


@recipe(THESIS)
def omkl_bpas_sd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    C: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Budget PA with Hedge weights, updated if drawn, on one budget for all."""
    return _budgeted(task, expansion.bpas, SD, kernels, budget, common, C=_limit(task, C), epsilon=epsilon)


# ------------------------------------------------------------------------------------------- sparse, and features


@recipe(f"{THESIS}, algorithm 14")
def omkl_spa(
    task: str,
    kernels: Any = None,
    budget: int | None = None,
    eta: float | None = None,
    alpha: float = 1.0,
    beta: float = 3.0,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """Sparse PA with Hedge weights: a row joins learner i with probability min(alpha, loss)/beta × theta_i/max theta.

    ``budget`` is for each kernel; without it about alpha/beta of the rows join.
    """
    common = {"updates": "stochastic", **common}
    own: dict[str, Any] = {
        "budget": budget,
        "eta": eta,
        "alpha": alpha,
        "beta": beta,
        "epsilon": epsilon,
        "average": False,
    }
    return _ensemble(task, expansion.spa, kernels, common, **own)


@recipe(f"{THESIS}, algorithm 15")
def omkl_fogd(
    task: str,
    kernels: Any = None,
    n_components: int = 100,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """FOGD with Hedge weights: ``n_components`` frequencies for each Gaussian, all of them from one product per row.

    Without ``eta`` the steps are AdaGrad's and need no tuning.
    """
    own: dict[str, Any] = {"n_components": n_components, "eta": eta, "epsilon": epsilon}
    return _ensemble(task, feature.fogd, kernels, common, polynomials=False, **own)


@recipe(f"{THESIS}, algorithm 16")
def omkl_nogd(
    task: str,
    kernels: Any = None,
    budget: int = 1600,
    rank: int | None = None,
    eta: float | None = None,
    epsilon: float | None = None,
    **common: Any,
) -> Any:
    """NOGD with Hedge weights; each kernel has an equal part of the budget of landmarks."""
    own: dict[str, Any] = {"budget": _part(budget, kernels), "rank": rank, "eta": eta, "epsilon": epsilon}
    return _ensemble(task, feature.nogd, kernels, common, **own)
