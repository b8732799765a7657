"""The rivals as recipes of the zoo."""

from __future__ import annotations

from typing import Any

from kernelstream.features import Nystroem, for_kernel
from kernelstream.losses import EpsilonInsensitive
from kernelstream.zoo import TASKS, enter, recipe

from .fixed_feature import FixedFeatureClassifier, FixedFeatureRegressor
from .kernel_sdca import KernelSDCAClassifier, KernelSDCARegressor
from .pros_n_kons import ProsNKons, ProsNKonsClassifier

DAI = "Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, 2014, table 2"
WU = "Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016, section 4.2 (L1 on any features)"
SOLVERS = {
    "pegasos": "Pegasos",
    "sdca": "Stochastic dual coordinate ascent",
    "sbmd": "Stochastic block mirror descent",
    "rbcd": "Random block coordinate descent",
    "cd": "Coordinate descent with an L1 penalty",
}
ZHANG = "Zhang, Lan, Wang, Moerchen: Scaling up kernel SVM on limited resources: low-rank linearization, AISTATS 2012"
OPTIONS = {"kernel": "gaussian", "gamma": None, "n_components": 400, "lam": 1.0}


def _enter(name: str, letter: str, solver: str, summary: str, reference: str, landmarks: str = "uniform") -> None:
    """A recipe: r on random features of a kernel, n on Nyström features."""

    def compose(task: str, kernel: Any, gamma: Any, n_components: int, lam: float) -> Any:
        if letter == "r":
            features: Any = for_kernel(kernel, n_components=n_components, gamma=gamma)
        else:
            features = Nystroem(kernel, n_components, gamma, landmarks=landmarks)
        kind: Any = FixedFeatureRegressor if task == "regression" else FixedFeatureClassifier
        return kind(features, lam=lam, solver=solver)

    what = "random features of a kernel" if letter == "r" else "Nyström features"
    text = f"{summary} on {what}, over all rows; ``lam`` is next to the sum of losses."
    enter(name, reference, TASKS, text, OPTIONS, compose)


for _letter in ("r", "n"):
    for _solver, _summary in SOLVERS.items():
        _enter(f"{_letter}_{_solver}", _letter, _solver, _summary, WU if _solver == "cd" else DAI)
_enter("llsvm", "n", "sdca", "LLSVM: stochastic dual coordinate ascent", ZHANG, "kmeans++")


@recipe("Shalev-Shwartz, Zhang: Stochastic dual coordinate ascent methods, JMLR 14 (2013), in the kernel form")
def ksdca(
    task: str, kernel: Any = "gaussian", gamma: Any = None, lam: float = 1e-3, epsilon: float | None = None
) -> Any:
    """k-SDCA, the batch reference: the regularised minimum over all rows, by dual coordinate ascent."""
    if task == "regression":
        loss: Any = "squared" if epsilon is None else EpsilonInsensitive(epsilon)
        return KernelSDCARegressor(kernel, gamma, lam, loss)
    if epsilon is not None:
        raise ValueError("epsilon is the dead zone of regression; classification has none")
    return KernelSDCAClassifier(kernel, gamma, lam)


@recipe(
    "Calandriello, Lazaric, Valko: Efficient second-order online kernel learning with adaptive embedding, 2017",
    ("binary", "multiclass"),
    {"regression": "'ridge' or 'awv'"},
)
def pros_n_kons(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    epsilon: float | None = None,
    budget: int | str | None = "auto",
) -> Any:
    """Online Newton steps in a Nyström space grown by leverage sampling, restarted when it grows.

    ``alpha`` and ``beta`` are 1, ``epsilon`` 0.5; ``alpha`` is 0.5 where none of the three is given. Every row that
    joins makes the learner start again; "auto" is a budget of 50, or no budget where one of the three is given.
    """
    kind: Any = ProsNKons if task == "regression" else ProsNKonsClassifier
    if alpha is beta is epsilon is None:
        alpha, budget = 0.5, 50 if budget == "auto" else budget
    elif budget == "auto":
        budget = None
    sampling = (1.0 if alpha is None else alpha, 1.0 if beta is None else beta, 0.5 if epsilon is None else epsilon)
    return kind(kernel, gamma, *sampling, budget=budget)
