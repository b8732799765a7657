"""Online novelty detection in the kernel expansion."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import budgets, losses
from ...budgets import Budget
from ...state.turns import in_turn
from ...updates import Novelty
from .._contract.base import State
from .._contract.kernel import kernel
from .._contract.outlier import StreamOutlier
from .._described import described
from .base import KernelExpansion, dual_coef, n_support, support_vectors
from .models import BudgetClassifier


class NoveltyExpansion(KernelExpansion):
    """A support set of a stream without targets."""

    auto_strategy = budgets.RemoveSmallest
    eta: float
    lam: float
    nu: float

    @cached_property
    def update(self) -> Novelty:
        """The coefficients with which a row joins."""
        return Novelty(self.eta, self.lam, self.nu)

    def check_parameters(self) -> None:
        strategy = self.strategy
        if isinstance(strategy, (budgets.SPA, budgets.OSKL, budgets.RemoveRedundant, budgets.ProjectronPP)):
            raise ValueError(
                f"{type(strategy).__name__} decides by the loss of labelled rows, but novelty detection has no labels: "
                f"choose another strategy"
            )
        super().check_parameters()

    def learn(self, state: State, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        before = float(state["memory"][0, 0])
        f = super().learn(state, X, y, weight)
        return f - self.update.thresholds(f[:, 0], before, weight)[:, None]


@described(like=BudgetClassifier)
@dataclass(eq=False, repr=False)
class BudgetOneClass(StreamOutlier):
    r"""NORMA for novelties: a row is novel where a function learned from the stream is below a threshold.

    .. math:: f(x) = \sum_j \alpha_j k(s_j, x) < \rho

    A novel row joins the support set with coefficient eta and lowers the threshold, ``rho -= (1 - nu) eta``; any other
    row raises it, ``rho += nu eta``. Before each row f shrinks by ``1 - eta lam``, so what is no longer seen becomes
    novel again. A share nu of a long stream is called novel [1]_.

    Parameters
    ----------
    budget : int or None, default=200
        Largest number of support vectors; None lets the set grow with the stream.
    strategy : Budget or str, default="auto"
        One of :mod:`kernelstream.budgets` that needs no loss. "auto" removes the smallest coefficient, which is the
        oldest because of the decay, or means :class:`~kernelstream.budgets.Stop` without a budget.
    nu : float, default=0.1
        Share of the rows that should be called novel.
    eta : float, default=0.05
        Step size: coefficient of a row that joins.
    lam : float, default=0.01
        Penalty, next to the *mean* of the losses: the model remembers about the latest ``1/(eta lam)`` rows.

    Attributes
    ----------
    offset_ : float
        The threshold rho: ``decision_function = score_samples - offset_``.
    dual_coef_ : (1, n_support) array
        Coefficients of the support vectors.

    See Also
    --------
    DoublyStochasticOneClass : The one-class support vector machine on random features.

    Notes
    -----
    There is no target: ``learn(X)`` returns the decision values held before each row was learned.

    References
    ----------
    .. [1] Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import BudgetOneClass
    >>> rng = np.random.default_rng(0)
    >>> model = BudgetOneClass(random_state=0).fit(rng.normal(size=(2000, 2)))
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    >>> novel = model.predict(rng.normal(size=(1000, 2))) < 0
    >>> bool(0.02 < novel.mean() < 0.2)
    True
    """

    kernel_, n_support_, support_vectors_, dual_coef_ = kernel, n_support, support_vectors, dual_coef

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    budget: int | None = 200
    strategy: Budget | str = "auto"
    nu: float = 0.1
    eta: float = 0.05
    lam: float = 0.01
    _: KW_ONLY
    standardize: bool | str = "auto"

    # ---------------------------------------------------------------- scikit-learn's contract
    @in_turn
    def score_samples(self, X: Any) -> np.ndarray:
        """f of rows, (n,): the larger, the more like the stream so far."""
        return self._scores(X)[:, 0]

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """``f - rho`` of rows, (n,): negative for novelties."""
        return self.score_samples(X) - self.offset_

    @property
    def offset_(self) -> float:
        """The threshold rho."""
        memory = self.state_.get("memory")
        return 0.0 if memory is None else float(memory[0, 0])

    # ---------------------------------------------------------------- hooks
    _learns = NoveltyExpansion

    # has no effect: neither the update nor the strategies use it
    _loss_rule = staticmethod(lambda parameters, n_classes: losses.Absolute())
