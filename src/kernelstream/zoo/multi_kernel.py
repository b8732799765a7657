"""Recipes with many kernels: online multiple kernel learning."""

from __future__ import annotations

from typing import Any

from .. import kernels as catalogue
from ..checks import whole
from ..estimators import HedgeWeights, MultiKernelClassifier, MultiKernelRegressor, StochasticUpdates
from ..estimators.ensemble.base import WIDTHS
from ._registry import TASKS, enter, get

THESIS = "Lu: Scalable online kernel learning, PhD thesis, Singapore Management University (2017), chapter 5"
OMKC = "Hoi, Jin, Zhao, Yang: Online multiple kernel classification, Machine Learning 90 (2013)"
BOTH = f"{OMKC}; {THESIS}"

WEIGHTS = HedgeWeights().get_params()
# algorithm 18: a learner that is not drawn neither learns the row nor pays for its loss
DRAWN = StochasticUpdates(counted="drawn").get_params()

# name, reference, learner, budgeted, options of the learner, what the learners are
PAIRS: tuple[tuple[str, str, str, bool, dict[str, Any], str], ...] = (
    ("omkl_{}", BOTH, "perceptron", False, {}, "Kernel perceptrons"),
    ("omkl_{}pa", THESIS, "pa1", False, {"C": None}, "PA-I learners"),
    ("omkl_rbp_{}", THESIS, "rbp", True, {}, "Randomised budget perceptrons"),
    ("omkl_forgetron_{}", THESIS, "forgetron", True, {}, "Forgetrons"),
    (
        "omkl_bogd_{}",
        THESIS,
        "bogd",
        True,
        {"eta": None, "lam": 1e-6, "oldest": False},
        "Learners by bounded gradient descent",
    ),
    ("omkl_bpas_{}", THESIS, "bpas", True, {"C": None}, "Budget PA learners"),
)


def pool(polynomials: bool = True) -> list[Any]:
    """The kernels of the thesis: (x'z)^p for p = 1, 2, 3, and Gaussians with sigma = 2^-6, …, 2^6."""
    first = [catalogue.Polynomial(degree, c=0.0, gamma=1.0) for degree in (1, 2, 3)] if polynomials else []
    return first + [catalogue.Gaussian(0.5 / sigma**2) for sigma in WIDTHS]


def _ensemble(task: str, learner: str, kernels: Any, given: dict[str, Any], polynomials: bool = True) -> Any:
    """One learner of a recipe for every kernel; weights and chances among what is given are the ensemble's."""
    chosen = pool(polynomials) if kernels is None else list(kernels)
    kind: Any = MultiKernelRegressor if task == "regression" else MultiKernelClassifier
    weights = {name: given.pop(name) for name in WEIGHTS if name in given}
    chances = {name: given.pop(name) for name in DRAWN if name in given}
    rest: dict[str, Any] = {name: given.pop(name) for name in ("combination", "updates", "capacity") if name in given}
    if weights and weights != WEIGHTS:
        rest["combination"] = HedgeWeights(**weights)
    if chances:
        rest["updates"] = StochasticUpdates(**chances)
    build = get(learner).build
    return kind([build(task, kernel=kernel, **given) for kernel in chosen], **rest)


def _pair(name: str, reference: str, learner: str, budgeted: bool, own: dict[str, Any], summary: str) -> None:
    """Two recipes: all learners learn, each on an equal part of the budget; or those drawn, on a shared budget."""
    options = {"kernels": None} | ({"budget": 1600} if budgeted else {}) | own | {"epsilon": None} | WEIGHTS

    def compose(task: str, kernels: Any, **given: Any) -> Any:
        if "C" in given:
            given["C"] = _limit(task, given["C"])
        if budgeted:
            given["budget"] = _part(given["budget"], kernels)
        return _ensemble(task, learner, kernels, given)

    def drawn(task: str, **given: Any) -> Any:
        return compose(task, **({"capacity": "shared"} if budgeted else {}), **given)

    each, one = (", each with an equal part of the budget", ", on one budget for all") if budgeted else ("", "")
    text = f"{summary} with Hedge weights, all of them updated{each}."
    enter(name.format("dd"), reference, TASKS, text, options, compose)
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


def _uniform(task: str, kernels: Any, **given: Any) -> Any:
    return _ensemble(task, "perceptron", kernels, {"combination": "uniform", **given})


def _spa(task: str, kernels: Any, **given: Any) -> Any:
    return _ensemble(task, "spa", kernels, {"updates": "stochastic", "average": False, **given})


def _fogd(task: str, kernels: Any, **given: Any) -> Any:
    return _ensemble(task, "fogd", kernels, given, polynomials=False)


def _nogd(task: str, kernels: Any, budget: int, **given: Any) -> Any:
    return _ensemble(task, "nogd", kernels, {"budget": _part(budget, kernels), **given})


for _row in PAIRS:
    _pair(*_row)
STEPS = {"eta": None, "epsilon": None}
enter(
    "omkl_u", BOTH, TASKS, "Kernel perceptrons that vote with equal weights.", {"kernels": None, "epsilon": None},
    _uniform,
)  # fmt: skip
enter(
    "omkl_spa", f"{THESIS}, algorithm 14", TASKS,
    "Sparse PA with Hedge weights: a row joins learner i with probability min(alpha, loss)/beta × theta_i/max theta."
    "\n\n``budget`` is for each kernel; without it about alpha/beta of the rows join.",
    {"kernels": None, "budget": None, "eta": None, "alpha": 1.0, "beta": 3.0, "epsilon": None} | WEIGHTS, _spa,
)  # fmt: skip
enter(
    "omkl_fogd", f"{THESIS}, algorithm 15", TASKS,
    "FOGD with Hedge weights: ``n_components`` frequencies for each Gaussian, all of them from one product per row.\n\n"
    "Without ``eta`` the steps are AdaGrad's and need no tuning.",
    {"kernels": None, "n_components": 100} | STEPS | WEIGHTS, _fogd,
)  # fmt: skip
enter(
    "omkl_nogd", f"{THESIS}, algorithm 16", TASKS,
    "NOGD with Hedge weights; each kernel has an equal part of the budget of landmarks.",
    {"kernels": None, "budget": 1600, "rank": None} | STEPS | WEIGHTS, _nogd,
)  # fmt: skip
