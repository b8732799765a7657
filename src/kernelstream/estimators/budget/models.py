r"""Learners in the kernel expansion ``f(x) = sum_j alpha_j k(s_j, x)``: a kernel × a loss × an update × a budget
strategy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import losses
from ...budgets import Budget
from ...updates import Update
from .._contract.base import State
from .._contract.classifier import StreamClassifier
from .._contract.deviations import InDeviations, check_center
from .._contract.regressor import StreamRegressor
from .base import BudgetEstimator


class BudgetClassifier(StreamClassifier, BudgetEstimator):
    r"""Online classifier in the kernel expansion, ``f(x) = sum_j alpha_j k(s_j, x)`` with at most ``budget`` support
    vectors.

    A row with loss wants to join the support set with the coefficients its ``update`` gives it; the ``strategy`` says
    how the set keeps within the budget. Classes share one support set.

    Parameters
    ----------
    kernel : Kernel or str, default="gaussian"
    gamma : float, "scale", "median" or None
        Bandwidth of a kernel given by name; None is "median".
    budget : int or None, default=100
        Largest number of support vectors; None lets the set grow with the stream.
    strategy : Budget or str, default="auto"
        One of :mod:`kernelstream.budgets`. "auto" is :class:`~kernelstream.budgets.Replace`, and
        :class:`~kernelstream.budgets.Stop` when there is no budget.
    loss : Loss or str, default="hinge"
        Binary losses turn into their multi-class form when a third class appears.
    update : Update or str, default="auto"
        Any update of the form (decay, tau). "auto" is :class:`~kernelstream.updates.NormAdaGrad`.
    class_weight : dict, "balanced" or None
    engine : {"auto", "native", "python", "torch"} or TorchEngine
        "torch" makes the Gram blocks of a Gaussian kernel on a GPU; the pass over them stays on the processor.
    random_state : int, Generator, RandomState or None
        For strategies that draw lots.

    Attributes
    ----------
    support_vectors_ : (n_support, d) array
    dual_coef_ : (n_outputs, n_support) array
    n_support_ : int
    classes_ : array
    state_ : dict

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import BudgetClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = BudgetClassifier(gamma=2.0, budget=50).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.97
    True
    """

    on_device = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        gamma: float | str | None = None,
        budget: int | None = 100,
        strategy: Budget | str = "auto",
        loss: losses.Loss | str = "hinge",
        update: Update | str = "auto",
        *,
        class_weight: dict | str | None = None,
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.budget = budget
        self.strategy = strategy
        self.loss = loss
        self.update = update
        self.class_weight = class_weight
        self.engine = engine
        self.random_state = random_state

    def _check_parameters(self) -> None:
        self._check_together(self._loss_for(2))


class BudgetRegressor(StreamRegressor, InDeviations, BudgetEstimator):
    r"""Online regression in the kernel expansion, ``f(x) = ybar + sum_j alpha_j k(s_j, x)``; see
    :class:`BudgetClassifier`.

    Parameters
    ----------
    kernel, gamma, budget, strategy, update, engine, random_state
        See :class:`BudgetClassifier`.
    loss : Loss or str, default="squared"
    center : bool or "standard", default=True
        Learn the difference from the running mean ybar of the targets. "standard" does so in units of their deviation
        among the first 100 rows: steps, limits and tubes that are given as numbers then mean the same for every target.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import BudgetRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> BudgetRegressor(gamma=1.0).fit(X[:2500], y[:2500]).score(X[2500:], y[2500:]) > 0.97
    True
    """

    on_device = True

    def __init__(
        self,
        kernel: Any = "gaussian",
        gamma: float | str | None = None,
        budget: int | None = 100,
        strategy: Budget | str = "auto",
        loss: losses.Loss | str = "squared",
        update: Update | str = "auto",
        *,
        center: bool | str = True,
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.budget = budget
        self.strategy = strategy
        self.loss = loss
        self.update = update
        self.center = center
        self.engine = engine
        self.random_state = random_state

    def _reset(self, state: State) -> None:
        super()._reset(state)
        if self.center:
            state["center"] = np.zeros(2)

    def _check_parameters(self) -> None:
        check_center(self.center)
        self._check_together(losses.get(self.loss, task="regression"))
