"""Learners on cells of random grids: over few columns with edges at quantiles, or over many columns, hashed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .._contract.classifier import StreamClassifier
from .._contract.regressor import StreamRegressor
from .._contract.shown import shown
from .._described import described
from .base import CellTables


@described()
@dataclass(eq=False, repr=False)
class CellsClassifier(StreamClassifier):
    r"""Classifier on cells of random grids, with a separate step size for every cell.

    .. math:: f(x) = b + \sum_{r \le R} w_{c_r(x)}

    with :math:`c_r(x)` the cell of grid r that the row is in; steps like those of AdaGrad move the R weights that a row
    meets [1]_ [2]_.

    Parameters
    ----------
    n_grids : int, default=128
        Number R of grids, and of weights that a row meets.
    grids : {"columns", "hashed"}, default="columns"
        "columns": grids over one to six columns with edges at quantiles, 256 cells each. Whenever the number of rows
        has doubled, and later every 16,384 rows, the quarter of the grids that helped least is drawn again from columns
        that help; each new grid is the best of eight on a sample. The units of the columns do not matter. "hashed":
        random binning over up to 16 columns, 2^18 cells for all grids together; it needs columns of similar units.
    eta : float or "auto", default="auto"
        Step size; "auto" means 0.7, or 1.5 with forgetting.
    forgetting : float, default=1.0
        Below 1, steps do not shrink forever: a cell follows about the last 1/(1 - forgetting) of its rows.
    standardize : bool or "auto", default="auto"
        Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
        "auto" does so for hashed grids.

    Attributes
    ----------
    relevance_ : (d,) array
        How much each column has helped recently.

    See Also
    --------
    CellsRegressor : The same for numbers.
    BinningClassifier : Random binning solved on all rows at once.

    Notes
    -----
    A row meets one cell of every grid: time per row is proportional to the number of grids, whatever the number of
    columns.

    References
    ----------
    .. [1] Wu, Yen, Chen, Yan: Revisiting random binning features: fast convergence and strong parallelizability, KDD
       2016.
    .. [2] Duchi, Hazan, Singer: Adaptive subgradient methods for online learning and stochastic optimization, JMLR 12
       (2011).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import CellsClassifier
    >>> X, y = make_moons(3000, noise=0.1, random_state=0)
    >>> CellsClassifier(random_state=0).fit(X[:2500], y[:2500]).score(X[2500:], y[2500:]) > 0.97
    True
    """

    loss = "logistic"

    relevance_ = shown(CellTables.relevance)

    _learns = CellTables

    n_grids: int = 128
    grids: str = "columns"
    _: KW_ONLY
    eta: float | str = "auto"
    forgetting: float = 1.0
    standardize: bool | str = "auto"


@described(like=CellsClassifier)
@dataclass(eq=False, repr=False)
class CellsRegressor(StreamRegressor):
    r"""Regression on cells of random grids, with a separate step size for every cell.

    .. math:: f(x) = \bar y + b + \sum_{r \le R} w_{c_r(x)}

    with :math:`c_r(x)` the cell of grid r in which the row lies; a step of AdaGrad's kind moves the R weights that a
    row meets [1]_ [2]_. Residuals count for at most five deviations of the target.

    Parameters
    ----------
    eta : float or "auto", default="auto"
        Step size in deviations of the target; "auto" means 0.2 (0.25 for hashed grids), or 0.5 with forgetting.

    See Also
    --------
    CellsClassifier : The same for labels.
    BinningRegressor : Random binning solved on all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import CellsRegressor
    >>> X = np.random.default_rng(0).uniform(size=(6000, 5))
    >>> y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    >>> CellsRegressor(random_state=0).fit(X[:5000], y[:5000]).score(X[5000:], y[5000:]) > 0.85
    True
    """

    loss = "squared"
    relevance_ = shown(CellTables.relevance)

    _learns = CellTables

    n_grids: int = 128
    grids: str = "columns"
    _: KW_ONLY
    eta: float | str = "auto"
    forgetting: float = 1.0
    standardize: bool | str = "auto"
