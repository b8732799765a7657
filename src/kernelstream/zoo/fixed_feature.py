"""Recipes that doubly stochastic gradients are compared with: linear solvers on a fixed set of features."""

from __future__ import annotations

from typing import Any

from ..baselines import FixedFeatureClassifier, FixedFeatureRegressor
from ..features import Nystroem, for_kernel
from ._registry import TASKS, enter

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
