r"""Random binning features learned row by row, on cells hashed into a bounded number of columns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from ... import updates
from ...core.cell_matrix import CellMatrix
from ...core.threads import cuts
from ...features.binning import columns_per_grid
from ...losses import Loss
from ...rows import Rows, column_ranges, divided
from ...state import undo as _undo
from ...state.change import Change
from ...state.schema import Array, Schema
from ...state.turns import in_turn
from ...updates import AdaGrad, Averaged, Update, unwrap
from .._contract.base import State, StreamEstimator
from .._contract.classifier import StreamClassifier
from .._contract.regressor import StreamRegressor
from .._contract.state import scales
from .._contract.warm_up import WARM_UP
from .._described import described
from ..feature import mix_outputs
from .base import Binning, gamma

_BLOCK = 256  # rows of the pass
# A row moves R weights; AdaGrad's automatic step, which asks for a number of weights, is then 14/sqrt(6 R),
# 5.7/sqrt(R): 4 to 8 do best on ijcnn1, covtype, letter, cadata, casp and a9a with 32 and with 128 grids.
_LIKE_DENSE = 6
# Of 0.5 to 16 times the median rule 4 is best or next to it on those sets, cod-rna and mnist (all but a9a, where it
# costs 0.8 points); on covtype and letter it halves the mistakes of the rule itself, or nearly.
_SHARPER = 4.0


class HashedBinning(Binning):
    """Weights of hashed cells that learn by first-order steps.

    Parameters
    ----------
    est : OnlineBinningClassifier or OnlineBinningRegressor
    kernel, gamma, n_components, update, n_columns : see there
    """

    def __init__(self, est: StreamEstimator, kernel: Any, gamma: Any, n_components: int, update: Any, n_columns: int):
        super().__init__(est, kernel, gamma, n_components)
        self.given_update, self.n_columns = update, n_columns

    @cached_property
    def update(self) -> Update:
        """How a row changes the weights."""
        return self.auto_update() if self.given_update == "auto" else updates.get(self.given_update)

    def auto_update(self) -> Update:
        """The update that needs no step size."""
        return AdaGrad()

    @property
    def _by_row(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"w", "G"}) if unwrap(self.update)[0].diagonal else frozenset()

    @property
    def _columns(self) -> int:
        """Hashed columns per grid."""
        return columns_per_grid(self.n_columns, self.n_components)

    def check_parameters(self) -> None:
        super().check_parameters()
        columns_per_grid(self.n_columns, self.n_components)
        if isinstance(self.update, Averaged):
            raise ValueError("the mean of all iterates changes every column at every row: no averaging on hashed cells")
        self.update.check(self.est._loss_for(2))

    # ---------------------------------------------------------------- rows
    def warm_up_rows(self) -> int:
        return WARM_UP if self.given.kernel_needs_data else 0

    def estimate(self, state: State, X: Rows) -> None:
        """Bandwidth by its rule, after the columns are divided by their range where both are left to us."""
        state.pop("width", None)
        if self.free:
            state["width"] = column_ranges(X)
            X = divided(X, state["width"])
        state |= self.given.kernel_entries(X)
        if self.free:
            state["gamma"] *= _SHARPER

    def reset(self, state: State) -> None:
        outputs = state["n_outputs"]
        weights = np.zeros((self._columns * self.n_components, outputs), state["dtype"])
        update, _ = unwrap(self.update)
        memory = update.memory(outputs, _LIKE_DENSE * self.n_components)
        state |= {"w": weights, "scale": np.ones(outputs), "memory": memory}
        if update.diagonal:
            state["G"] = weights.copy()
        if is_regressor(self.est):
            state["center"] = np.zeros(2)

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        ops, grids, width = self.ops, self.grids(state), self._columns
        first = self.est._cached("first", lambda: width * np.arange(self.n_components)[:, None])  # column of each grid
        spec = self.est._cached(("spec", state["n_outputs"]), lambda: ops.spec(self.est._loss_now(state), self.update))
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in cuts(X.shape[0], _BLOCK):
            cells = ops.binning.bucket_cells(X[rows], grids, width, self.threads)
            if "G" in state:  # a row touches few weights, unless all shrink together
                touched = (cells + first).ravel()
                _undo.rows(state["w"], touched)
                _undo.rows(state["G"], touched)
            part = None if weight is None else weight[rows]
            scores[rows] = ops.binning.cell_pass(cells, width, y[rows], part, state, spec)
        return scores

    def mix_outputs(self, state: State, change: Change) -> None:
        names = [name for name in ("w", "G") if name in state]
        for name in names:
            state[name] = state[name].T
        mix_outputs(state, change, unwrap(self.update)[0])
        for name in names:
            state[name] = np.ascontiguousarray(state[name].T)

    # ---------------------------------------------------------------- scores
    def weights(self, state: State) -> tuple[np.ndarray, Any]:
        return state["w"] * state["scale"].astype(state["w"].dtype), state["center"][1] if "center" in state else 0.0

    def cell_matrix(self, state: State, X: Rows) -> CellMatrix:
        ops, width = self.ops.binning, self._columns
        starts = width * np.arange(self.n_components + 1, dtype=np.int64)
        return CellMatrix(ops.bucket_cells(X, self.grids(state), width, self.threads), starts, ops, self.threads)

    def schema(self, state: State, trained: bool) -> Schema:
        schema = self.grid_schema(state, trained)
        if not trained:
            return schema
        outputs, dtype = state["n_outputs"], state["dtype"]
        update, _ = unwrap(self.update)
        weights = (self._columns * self.n_components, outputs)
        return (
            schema
            | {"w": Array(weights, dtype), "scale": scales(state), "memory": Array(update.memory(outputs).shape)}
            | {"G": Array(weights, dtype, low=0.0, optional=not update.diagonal)}
            | ({"center": Array((2,))} if is_regressor(self.est) else {})
        )


@in_turn
def coef(est: StreamEstimator) -> np.ndarray:
    """Weights (outputs, columns)."""
    return (est.state_["w"] * est.state_["scale"]).T


@described()
@dataclass(eq=False, repr=False)
class OnlineBinningClassifier(StreamClassifier):
    r"""Classifier of a stream on random binning features: the Laplacian kernel, a row changing few of many weights.

    .. math:: f(x) = \frac{1}{\sqrt R} \sum_{r=1}^R w_{c_r(x)}, \qquad
        w_{c_r(x)} \leftarrow w_{c_r(x)} + \frac{\tau}{\sqrt R}

    with :math:`c_r(x)` the cell of grid r in which x lies, hashed into a bounded number of columns, and :math:`\tau`
    the step of a first-order update [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default="laplacian"
        A product kernel with a convex profile.
    gamma : float, "scale", "median" or None, default=None
        Bandwidth of a kernel given by name. None divides every column by its range in the first rows and takes 4 times
        the median rule.
    n_components : int, default=128
        Number R of grids, and of weights that a row meets.
    update : Update or str, default="auto"
        How a row changes the weights; "auto" is :class:`~kernelstream.updates.AdaGrad`, which needs no step size.
    n_columns : int, default=2**20
        Columns of all grids together: the memory of the model.
    class_weight : dict, "balanced" or None, default=None
        Factors of the loss by class.
    random_state : int, Generator, RandomState or None, default=None
        Where the seed of the grids comes from.

    Attributes
    ----------
    coef_ : (outputs, columns) array
        The weights.
    gamma_ : float
        The bandwidth in use.

    See Also
    --------
    BinningClassifier : The same features, solved on all rows at once.
    CellsClassifier : Cells of grids over few columns.

    Notes
    -----
    Two cells that share a column share its weight: with fewer columns than cells the model is rougher, not larger.

    References
    ----------
    .. [1] Wu, Yen, Chen, Yan: Revisiting random binning features: fast convergence and strong parallelizability, KDD
       2016.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import OnlineBinningClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = OnlineBinningClassifier(random_state=0).partial_fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.98
    True
    """

    coef_, gamma_ = property(coef), property(gamma)

    kernel: Any = "laplacian"
    gamma: float | str | None = None
    n_components: int = 128
    update: Update | str = "auto"
    _: KW_ONLY
    n_columns: int = 2**20
    loss: Loss | str = "hinge"
    class_weight: dict[Any, float] | str | None = None
    engine: Any = "auto"
    random_state: Any = None

    def _new_learner(self) -> HashedBinning:
        return HashedBinning(self, self.kernel, self.gamma, self.n_components, self.update, self.n_columns)


@described(like=OnlineBinningClassifier)
@dataclass(eq=False, repr=False)
class OnlineBinningRegressor(StreamRegressor):
    r"""Regression of a stream on random binning features: the Laplacian kernel, a row changing few of many weights.

    .. math:: f(x) = \bar y + \frac{1}{\sqrt R} \sum_{r=1}^R w_{c_r(x)}, \qquad
        w_{c_r(x)} \leftarrow w_{c_r(x)} + \frac{\tau}{\sqrt R}

    with :math:`\bar y` the mean of the targets so far, :math:`c_r(x)` the cell of grid r in which x lies, hashed into a
    bounded number of columns, and :math:`\tau` the step of a first-order update [1]_.

    Parameters
    ----------

    Attributes
    ----------
    coef_ : (1, columns) array
        The weights.

    See Also
    --------
    BinningRegressor : The same features, solved on all rows at once.
    CellsRegressor : Cells of grids over few columns.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OnlineBinningRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = OnlineBinningRegressor(random_state=0).partial_fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.98
    True
    """

    coef_, gamma_ = property(coef), property(gamma)

    kernel: Any = "laplacian"
    gamma: float | str | None = None
    n_components: int = 128
    update: Update | str = "auto"
    _: KW_ONLY
    n_columns: int = 2**20
    loss: Loss | str = "squared"
    engine: Any = "auto"
    random_state: Any = None

    def _new_learner(self) -> HashedBinning:
        return HashedBinning(self, self.kernel, self.gamma, self.n_components, self.update, self.n_columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one pass over a few hundred rows meets most cells once
        return tags
