r"""Learners on random binning features: ``f(x) = w'z(x)``, z sparse, by batch solvers or row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ... import losses
from ...losses import Loss
from ...solvers import Solver
from ...state.schema import Array, Schema
from .._contract.base import State
from .._contract.classifier import StreamClassifier
from .._contract.regressor import StreamRegressor
from .base import BinningEstimator, is_online


class BinningClassifier(BinningEstimator, StreamClassifier):
    r"""Classifier on random binning features: the Laplacian kernel at the price of a sparse linear model.

    .. math:: \min_w \sum_i l(y_i, b + w'z(x_i)) + \frac{\lambda}{2} \|w\|^2

    (:math:`\lambda |w|_1` for solver "cd"), with :class:`~kernelstream.features.RandomBinning` features z and b the
    constant score of least loss, which is what rows far from all others get; several classes one against the rest [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default "laplacian"
        A product kernel with a convex profile.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name. None divides every column by its range and then finds gamma by a short
        search on held-out rows (4 times the median rule on the first rows, for solver "online").
    n_components : int, default 128
        Number of grids, and of entries per row.
    lam : float or None, default None
        Penalty, next to the *sum* of the losses; None searches for it on held-out rows.
    solver : Solver or str, default "cg"
        "cg" (least squares on -1 and +1), "newton-cg" (squared hinge or logistic), "cd" (L1 penalty: sparse models, all
        cores), "online" (row by row, ``partial_fit``), or an object of :mod:`kernelstream.solvers` with its tolerance.
    loss : Loss or str, default "auto"
        "auto" is squared for "cg", squared hinge for "newton-cg" and "cd", hinge for "online". "logistic" gives
        ``predict_proba``.
    class_weight : dict, "balanced" or None
        Factors of the loss by class.
    warm_start : bool, default False
        Let ``fit`` keep grids and bandwidth and begin with the weights it has.
    engine : {"auto", "native", "python", "torch"} or TorchEngine
        The compiled loops, or their readable specification; with "torch", solver "cg" runs on a GPU.
    random_state : int, Generator, RandomState or None
        Seed of the grids.

    Attributes
    ----------
    state_ : dict
        Everything learned.
    classes_ : array
        Labels, sorted.
    coef_ : (outputs, columns) array, or CSR matrix for solver "cd"
    gamma_, lam_ : float
        Bandwidth and penalty in use.
    history_, n_iter_ : array, int
        Course of a batch solver.

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

    on_device = True

    def __init__(
        self,
        kernel: Any = "laplacian",
        gamma: float | str | None = None,
        n_components: int = 128,
        lam: float | None = None,
        solver: Solver | str = "cg",
        *,
        loss: Loss | str = "auto",
        class_weight: dict | str | None = None,
        warm_start: bool = False,
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.lam = lam
        self.solver = solver
        self.loss = loss
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.engine = engine
        self.random_state = random_state

    @available_if(is_online)
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the scores held before each update; solver "online" only.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        classes : array, optional
            All labels that can occur.
        sample_weight : (n,) array, optional

        Returns
        -------
        (n,) or (n, n_classes) array
        """
        return super().learn(X, y, classes, sample_weight)

    @available_if(is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> BinningClassifier:
        """Learn the rows in order; solver "online" only. See :meth:`learn`."""
        self.learn(X, y, classes, sample_weight)
        return self

    def _solver_loss(self) -> Loss:
        default = "squared" if self._solver.name == "cg" else "squared_hinge"
        return losses.get(default if self.loss == "auto" else self.loss)

    def _loss_for(self, n_classes: int) -> Loss:
        if self._online:
            loss = losses.get("hinge" if self.loss == "auto" else self.loss, task="classification")
            return loss.multiclass() if n_classes > 2 and loss.kind == "binary" else loss
        loss = self._solver_loss()
        return losses.OneVsRest(loss) if n_classes > 2 and loss.kind == "binary" else loss

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._solver.serves(self._loss_for(2) if self._online else self._solver_loss())

    @staticmethod
    def _error(F, Y, weight):
        wrong = (F >= 0) != (Y > 0) if Y.shape[1] == 1 else F.argmax(axis=1) != Y.argmax(axis=1)
        return float(np.average(wrong.ravel(), weights=weight) + 1e-6 * np.square(F - Y).mean())


class BinningRegressor(BinningEstimator, StreamRegressor):
    r"""Regression on random binning features: the Laplacian kernel at the price of a sparse linear model.

    .. math:: \min_w \tfrac12 \sum_i (y_i - \bar y - w'z(x_i))^2 + \frac{\lambda}{2} \|w\|^2

    (:math:`\lambda |w|_1`, the lasso, for solver "cd"), with :class:`~kernelstream.features.RandomBinning` features z
    [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default "laplacian"
        A product kernel with a convex profile.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name. None divides every column by its range and then finds gamma by a short
        search on held-out rows (4 times the median rule on the first rows, for solver "online").
    n_components : int, default 128
        Number of grids, and of entries per row.
    lam : float or None, default None
        Penalty, next to the *sum* of the losses; None searches for it on held-out rows.
    solver : Solver or str, default "cg"
        "cg" (ridge), "newton-cg" (the same by one Newton step), "cd" (lasso, all cores), "online" (row by row,
        ``partial_fit``), or an object of :mod:`kernelstream.solvers` with its tolerance.
    loss : Loss or str, default "auto"
        "auto" is squared; solver "online" takes any loss of regression.
    warm_start : bool, default False
        Let ``fit`` keep grids and bandwidth and begin with the weights it has.
    engine : {"auto", "native", "python", "torch"} or TorchEngine
        The compiled loops, or their readable specification; with "torch", solver "cg" runs on a GPU.
    random_state : int, Generator, RandomState or None
        Seed of the grids.

    Attributes
    ----------
    state_ : dict
        Everything learned.
    coef_ : (1, columns) array, or CSR matrix for solver "cd"
    gamma_, lam_ : float
        Bandwidth and penalty in use.
    history_, n_iter_ : array, int
        Course of a batch solver.

    References
    ----------
    .. [1] Wu, Yen, Chen, Yan: Revisiting random binning features: fast convergence and strong parallelizability, KDD
       2016.

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

    on_device = True

    def __init__(
        self,
        kernel: Any = "laplacian",
        gamma: float | str | None = None,
        n_components: int = 128,
        lam: float | None = None,
        solver: Solver | str = "cg",
        *,
        loss: Loss | str = "auto",
        warm_start: bool = False,
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.lam = lam
        self.solver = solver
        self.loss = loss
        self.warm_start = warm_start
        self.engine = engine
        self.random_state = random_state

    @available_if(is_online)
    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the predictions made before each update; solver "online" only.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array of numbers
        sample_weight : (n,) array, optional

        Returns
        -------
        (n,) array
        """
        return super().learn(X, y, sample_weight)

    @available_if(is_online)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BinningRegressor:
        """Learn the rows in order; solver "online" only. See :meth:`learn`."""
        self.learn(X, y, sample_weight)
        return self

    def _solver_loss(self) -> Loss:
        return losses.get("squared" if self.loss == "auto" else self.loss, task="regression")

    def _loss_now(self, state: State) -> Loss:
        return self._cached("loss", self._solver_loss)

    def _reset(self, state: State) -> None:
        super()._reset(state)
        state["center"] = np.zeros(2)

    def _schema(self, state: State, trained: bool) -> Schema:
        schema = super()._schema(state, trained)
        return schema | ({"center": Array((2,))} if trained and self._online else {})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._solver.serves(self._solver_loss())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._online  # one pass over a few hundred rows meets most cells once
        return tags

    @staticmethod
    def _error(F, Y, weight):
        return float(np.average(np.square(F - Y).sum(axis=1), weights=weight))
