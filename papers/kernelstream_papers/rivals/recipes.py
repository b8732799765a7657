"""The rivals as recipes of the zoo."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

from kernelstream import BinningClassifier, BinningRegressor
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import Nystroem, RandomFeatures, for_kernel
from kernelstream.losses import EpsilonInsensitive
from kernelstream.zoo import LABELS, NOVELTY, TASKS, enter, recipe
from kernelstream.zoo.multi_kernel import pool

from .fixed_feature import FixedFeatureClassifier, FixedFeatureRegressor
from .gp_operator import OperatorGP
from .group_sparse import GroupSparseClassifier
from .kernel_sdca import KernelSDCAClassifier, KernelSDCARegressor
from .margin import ConfidenceWeightedClassifier, LargeMarginClassifier
from .metagrad import MetaGradClassifier
from .pros_n_kons import ProsNKons, ProsNKonsClassifier
from .ratios import DensityNovelty
from .solvers import UniformCoordinateDescent
from .uniclass import SparseOneClass

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
    LABELS,
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


@recipe("Wu, Yen, Chen, Yan: Revisiting random binning features, KDD 2016, algorithm 2")
def random_binning_rcd(
    task: str, kernel: Any = "laplacian", gamma: Any = None, n_components: int = 128, lam: float | None = None
) -> Any:
    """L1-penalised model on random binning features, by coordinates drawn uniformly as the paper prints it."""
    kind: Any = BinningRegressor if task == "regression" else BinningClassifier
    return kind(kernel, gamma, n_components, lam=lam, solver=UniformCoordinateDescent())


def _enter_margin(name: str, kind: Any, rule: Any, reference: str, text: str, **own: Any) -> None:
    """A recipe on the natural features of a kernel; ``rule`` is the estimator's, or makes it of the options."""

    def compose(task: str, kernel: Any, gamma: Any, n_components: int, **given: Any) -> Any:
        chosen = rule(given) if callable(rule) else rule
        return kind(for_kernel(kernel, n_components=n_components, gamma=gamma), chosen, **given)

    enter(name, reference, LABELS, text, {"kernel": "gaussian", "gamma": None, "n_components": 100, **own}, compose)


def _scw(given: dict[str, Any]) -> str:
    return f"scw{given.pop('variant')}"


def _romma(given: dict[str, Any]) -> str:
    return "aggressive_romma" if given.pop("aggressive") else "romma"


_enter_margin(
    "sop", ConfidenceWeightedClassifier, "sop",
    "Cesa-Bianchi, Conconi, Gentile: A second-order perceptron algorithm, SIAM J. Computing 34 (2005)",
    "The second-order perceptron: ridge regression on the rows that were mistakes.", lam=1.0, diagonal=False,
)  # fmt: skip
_enter_margin(
    "cw", ConfidenceWeightedClassifier, "cw",
    "Dredze, Crammer, Pereira: Confidence-weighted linear classification, ICML 2008",
    "The nearest Gaussian over weights that is sure enough of every row.", confidence=0.9, lam=1.0, diagonal=False,
)  # fmt: skip
_enter_margin(
    "scw", ConfidenceWeightedClassifier, _scw,
    "Wang, Zhao, Hoi: Exact soft confidence-weighted learning, ICML 2012",
    "SCW-I, or SCW-II with ``variant=2``: confidence-weighted learning that may miss a row, at a price.",
    variant=1, confidence=0.9, C=1.0, lam=1.0, diagonal=False,
)  # fmt: skip
_enter_margin(
    "alma", LargeMarginClassifier, "alma",
    "Gentile: A new approximate maximal margin classification algorithm, JMLR 2 (2001)",
    "ALMA: the perceptron in the unit ball, with a margin that it may miss by a part 1 - ``alpha``.", alpha=0.9,
)  # fmt: skip
_enter_margin(
    "romma", LargeMarginClassifier, _romma, "Li, Long: The relaxed online maximum margin algorithm, ML 46 (2002)",
    "ROMMA: the shortest weights that are right about this row and no less sure than the last.", aggressive=False,
)  # fmt: skip
_enter_margin(
    "ogd_ball", LargeMarginClassifier, "ogd",
    "Zinkevich: Online convex programming and generalized infinitesimal gradient ascent, ICML 2003",
    "Online gradient descent, projected on a ball after every step.", eta=1.0, radius=10.0,
)  # fmt: skip


@recipe("van Erven, Koolen: MetaGrad: multiple learning rates in online learning, NIPS 2016", LABELS)
def metagrad(
    task: str, kernel: Any = "gaussian", gamma: Any = None, n_components: int = 100, radius: float = 10.0,
    horizon: int = 1 << 20,
) -> Any:  # fmt: skip
    """Gradient descent with many learning rates side by side, in a ball; the better ones count more."""
    features = for_kernel(kernel, n_components=n_components, gamma=gamma)
    return MetaGradClassifier(features, radius, horizon=horizon)


@recipe(
    "Martins, Figueiredo, Aguiar, Smith, Xing: Online multiple kernel learning for structured prediction, 2010", LABELS
)
def opmkl(task: str, kernels: Any = None, n_components: int = 50, lam: float = 1e-3, eta: float = 1.0) -> Any:
    """One function of many kernels, group-sparse: a penalty on the squared sum of norms leaves most kernels out.

    ``n_components`` are draws for each kernel; the kernels, by default Gaussians with sigma from 2^-6 to 2^6, must have
    the same number of features for a draw.
    """
    chosen = pool(polynomials=False) if kernels is None else list(kernels)
    features = RandomFeatures(reduce(operator.add, chosen), n_components=n_components)
    return GroupSparseClassifier(features, len(chosen), lam, eta)


STEP, SCHEDULE = DoublyStep().get_params(), DoublySchedule().get_params()


def _relative_novelty(task: str, kernel: Any, gamma: Any, rho: float, lam: Any, **given: Any) -> Any:
    step, schedule = ({name: given[name] for name in part} for part in (STEP, SCHEDULE))
    parts = {"step": "auto" if step == STEP else DoublyStep(**step), "schedule": DoublySchedule(**schedule)}
    return DensityNovelty(kernel, gamma, rho, lam, **parts)


enter(
    "doubly_relative_novelty", DAI.replace("table 2", "section 4, relative novelty and ratios by r_KL"), ("binary",),
    "Ratio of the densities of two samples, where it is above exp(-rho), by doubly stochastic gradients.",
    {"kernel": "gaussian", "gamma": None, "rho": 4.0, "lam": "auto"} | STEP | SCHEDULE, _relative_novelty,
)  # fmt: skip


@recipe("Lu: Scalable online kernel learning, PhD thesis, SMU, 2017, section 3.3.3", (NOVELTY,))
def spa_novelty(
    task: str, kernel: Any = "gaussian", gamma: Any = None, radius: float = 1.0, alpha: float = 0.1, beta: float = 2.0,
    eta: float = 0.01,
) -> Any:  # fmt: skip
    """SPA for uniclass prediction: novel is what lies outside of a ball, in the space of the kernel, of few rows."""
    return SparseOneClass(kernel, gamma, radius, alpha, beta, eta)


@recipe(DAI.replace("table 2", "appendix D"), ("regression",))
def gp_operator(
    task: str, kernel: Any = "gaussian", gamma: Any = None, noise: float = 0.1, iterations: int = 40,
    batch_size: int = 64, block_size: int = 32,
) -> Any:  # fmt: skip
    """Posterior of a Gaussian process, its variance by the operator theta_ij of two streams of features, as printed."""
    return OperatorGP(kernel, gamma, noise, iterations=iterations, batch_size=batch_size, block_size=block_size)
