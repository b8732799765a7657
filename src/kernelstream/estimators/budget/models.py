r"""Learners in the kernel expansion ``f(x) = sum_j alpha_j k(s_j, x)``: a kernel × a loss × an update × a budget
strategy.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from ... import losses
from ...budgets import Budget
from ...updates import Update
from .._contract.classifier import StreamClassifier
from .._contract.kernel import kernel
from .._contract.regressor import StreamRegressor
from .._described import described
from .base import KernelExpansion, dual_coef, n_support, support_vectors


@described()
@dataclass(eq=False, repr=False)
class BudgetClassifier(StreamClassifier):
    r"""Online classifier in the kernel expansion, with at most ``budget`` support vectors.

    .. math:: f(x) = \sum_{j \le B} \alpha_j k(s_j, x)

    A row with a loss joins the support set with the coefficients that its ``update`` gives it; the ``strategy`` decides
    how the set stays within the budget [1]_ [2]_. Classes share one support set.

    Parameters
    ----------
    budget : int or None, default=100
        Largest number of support vectors; None lets the set grow with the stream.
    strategy : Budget or str, default="auto"
        One of :mod:`kernelstream.budgets`. "auto" means :class:`~kernelstream.budgets.Replace`, or
        :class:`~kernelstream.budgets.Stop` without a budget.
    update : Update or str, default="auto"
        Any update of the form (decay, tau). "auto" means :class:`~kernelstream.updates.NormAdaGrad`.
    random_state : int, Generator, RandomState or None, default=None
        Source of the seed of strategies that draw at random.

    Attributes
    ----------
    support_vectors_ : (n_support, d) array
        The rows that make up the function, scaled if the model scales columns.
    dual_coef_ : (n_outputs, n_support) array
        Coefficients of the support vectors.
    n_support_ : int
        Number of support vectors now.
    kernel_ : Kernel
        With its bandwidth.

    See Also
    --------
    BudgetRegressor : The same for numbers.
    NystroemClassifier : The support vectors become landmarks of features.
    FeatureClassifier : Random features instead of support vectors.

    Notes
    -----
    A row costs one row of the Gram matrix, time proportional to B d, and what the strategy needs if it joins. Without a
    budget, time and memory grow with the rows that join.

    References
    ----------
    .. [1] Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52 (2004).
    .. [2] Lu, Hoi, Wang, Zhao, Liu: Large scale online kernel learning, JMLR 17 (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import BudgetClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = BudgetClassifier(gamma=2.0, budget=50).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.97
    True
    """

    kernel_, n_support_, support_vectors_, dual_coef_ = kernel, n_support, support_vectors, dual_coef

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    budget: int | None = 100
    strategy: Budget | str = "auto"
    loss: losses.Loss | str = "hinge"
    update: Update | str = "auto"
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = KernelExpansion


@described(like=BudgetClassifier)
@dataclass(eq=False, repr=False)
class BudgetRegressor(StreamRegressor):
    r"""Online regression in the kernel expansion, with at most ``budget`` support vectors.

    .. math:: f(x) = \bar y + \sum_{j \le B} \alpha_j k(s_j, x)

    A row with a loss joins the support set with the coefficient that its ``update`` gives it; the ``strategy`` decides
    how the set stays within the budget [1]_ [2]_.

    Parameters
    ----------
    center : bool or "standard", default=True
        Learn the difference from the running mean ybar of the targets. "standard" does so in units of their standard
        deviation in the first 100 rows: steps, limits and tubes given as numbers then mean the same for every target.

    See Also
    --------
    BudgetClassifier : The same for labels.
    NystroemRegressor : The support vectors become landmarks of features.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import BudgetRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> BudgetRegressor(gamma=1.0).fit(X[:2500], y[:2500]).score(X[2500:], y[2500:]) > 0.97
    True
    """

    kernel_, n_support_, support_vectors_, dual_coef_ = kernel, n_support, support_vectors, dual_coef

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    budget: int | None = 100
    strategy: Budget | str = "auto"
    loss: losses.Loss | str = "squared"
    update: Update | str = "auto"
    _: KW_ONLY
    center: bool | str = True
    standardize: bool | str = "auto"

    _learns = KernelExpansion
