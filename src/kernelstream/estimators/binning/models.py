r"""Learners on random binning features: ``f(x) = w'z(x)``, z sparse, by solvers that take all rows at once."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ... import losses, solvers
from ...losses import Loss
from ...solvers import Solver
from .._contract.batch import history, lam, n_iter
from .._contract.classifier import StreamClassifier
from .._contract.context import one_against_rest
from .._contract.regressor import StreamRegressor
from .._contract.shown import shown
from .._described import described
from .base import Binning


@described()
@dataclass(eq=False, repr=False)
class BinningClassifier(StreamClassifier):
    r"""Classifier on random binning features: the Laplacian kernel at the price of a sparse linear model.

    .. math:: \min_w \sum_i l(y_i, b + w'z(x_i)) + \frac{\lambda}{2} \|w\|^2

    (:math:`\lambda |w|_1` for solver "cd"), with :class:`~kernelstream.features.RandomBinning` features z and b the
    constant score of least loss, which is the score of rows far from all others; several classes are learned one
    against the rest [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default="laplacian"
        A product kernel with a convex profile.
    gamma : float, "scale", "median" or None, default=None
        Bandwidth of a kernel given by name. None divides every column by its range and then finds gamma by a short
        search on held-out rows.
    n_components : int, default=128
        Number of grids, and of entries per row.
    lam : float or None, default=None
        Penalty, next to the *sum* of the losses; None chooses it on held-out rows.
    solver : Solver or str, default="cg"
        "cg" (least squares on -1 and +1), "newton-cg" (squared hinge or logistic), "cd" (L1 penalty: sparse models, all
        cores), or an object of :mod:`kernelstream.solvers` with its own tolerance.
    loss : Loss or str, default="auto"
        "auto" means squared for "cg", squared hinge for "newton-cg" and "cd". "logistic" provides probabilities itself.
    warm_start : bool, default=False
        Let ``fit`` keep grids and bandwidth and start from the current weights.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the grids.

    Attributes
    ----------
    classes_ : array
        Labels, sorted.
    coef_ : (outputs, columns) array, or CSR matrix for solver "cd"
        Weights of the features, one row for each output.
    gamma_ : float
        The bandwidth in use.
    lam_ : float
        The penalty in use.
    history_ : array
        Course of the solver, one number per iteration.
    n_iter_ : int
        Iterations of the solver.

    See Also
    --------
    BinningRegressor : The same for numbers.
    CellsClassifier : Cells of grids, learned row by row.

    Notes
    -----
    A row has one entry for every grid: time is proportional to rows times grids for every iteration, whatever the
    number of columns.

    References
    ----------
    .. [1] Wu, Yen, Chen, Yan: Revisiting random binning features: fast convergence and strong parallelizability, KDD
       2016.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import BinningClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = BinningClassifier(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.99
    True
    """

    coef_, gamma_, lam_ = shown(Binning.coef), shown(Binning.gamma), lam
    n_iter_, history_ = n_iter, history

    kernel: Any = "laplacian"
    gamma: float | str | None = None
    n_components: int = 128
    lam: float | None = None
    solver: Solver | str = "cg"
    _: KW_ONLY
    loss: Loss | str = "auto"
    warm_start: bool = False

    _learns = Binning

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        default = "squared" if solvers.get(parameters["solver"]).name == "cg" else "squared_hinge"
        return one_against_rest(losses.get(default if parameters["loss"] == "auto" else parameters["loss"]), n_classes)


@described(like=BinningClassifier)
@dataclass(eq=False, repr=False)
class BinningRegressor(StreamRegressor):
    r"""Regression on random binning features: the Laplacian kernel at the price of a sparse linear model.

    .. math:: \min_w \tfrac12 \sum_i (y_i - \bar y - w'z(x_i))^2 + \frac{\lambda}{2} \|w\|^2

    (:math:`\lambda |w|_1`, the lasso, for solver "cd"), with :class:`~kernelstream.features.RandomBinning` features z
    [1]_.

    Parameters
    ----------
    solver : Solver or str, default="cg"
        "cg" (ridge), "newton-cg" (the same by one Newton step), "cd" (lasso, all cores), or an object of
        :mod:`kernelstream.solvers` with its tolerance.
    loss : Loss or str, default="auto"
        "auto" means squared, which all solvers take for regression.

    Attributes
    ----------
    coef_ : (1, columns) array, or CSR matrix for solver "cd"
        Weights of the features, one row for each output.

    See Also
    --------
    BinningClassifier : The same for labels.
    CellsRegressor : Cells of grids, learned row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import BinningRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = BinningRegressor(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.99
    True
    """

    coef_, gamma_, lam_ = shown(Binning.coef), shown(Binning.gamma), lam
    n_iter_, history_ = n_iter, history

    kernel: Any = "laplacian"
    gamma: float | str | None = None
    n_components: int = 128
    lam: float | None = None
    solver: Solver | str = "cg"
    _: KW_ONLY
    loss: Loss | str = "auto"
    warm_start: bool = False

    _learns = Binning

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        return losses.get("squared" if parameters["loss"] == "auto" else parameters["loss"], task="regression")
