"""What all learners on random binning features share: the grids, their bandwidth, and scores from cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._checks import whole
from ...core import grids as _grids
from ...core.cell_matrix import CellMatrix
from ...core.threads import cuts
from ...features.binning import most_threads
from ...kernels.parameters import KernelParameters
from ...rows import Rows
from ...state.schema import POSITIVE, Array, Schema
from .._contract.base import State, StreamEstimator
from .._contract.learner import Learner

_SCORED = 32_768  # rows scored at once


class Binning(Learner):
    """Everything but the way in which weights are found.

    Parameters
    ----------
    est : StreamEstimator
    kernel, gamma, n_components : see :class:`~kernelstream.BinningClassifier`
    """

    def __init__(self, est: StreamEstimator, kernel: Any, gamma: Any, n_components: int):
        super().__init__(est)
        self.given, self.n_components = KernelParameters(kernel, gamma), n_components

    @property
    def free(self) -> bool:
        """Whether the model chooses the bandwidth, and then also the widths of the columns."""
        return isinstance(self.given.kernel, str) and self.given.gamma is None

    @property
    def threads(self) -> int:
        """For cells and products."""
        return most_threads()

    def kernel(self, state: State) -> Any:
        """The kernel with its bandwidth."""
        return self.given.resolved({"gamma": state.get("gamma")})

    def grids(self, state: State) -> _grids.Grids:
        """The grids, made again from the seed."""

        def draw() -> _grids.Grids:
            d, dtype = state["n_features"], np.dtype(state["dtype"])
            return _grids.draw(self.kernel(state), state["seed"], d, self.n_components, dtype, state.get("width"))

        return self.est._cached("grids", draw)

    def one_width(self) -> bool:
        return not self.free and self.given.takes_width

    def check_parameters(self) -> None:
        whole("n_components", self.n_components)
        kernel = self.given.kernel_object
        if not hasattr(kernel, "pitches"):
            _grids.draw(kernel, 0, 1, 1, np.float64)  # raises for kernels that have no grids

    # ---------------------------------------------------------------- scores
    def weights(self, state: State) -> tuple[np.ndarray, Any]:
        """Weights (columns, outputs) and the constant score."""
        raise NotImplementedError

    def cell_matrix(self, state: State, X: Rows) -> CellMatrix:
        """Rows in their cells."""
        raise NotImplementedError

    def score(self, state: State, X: Rows) -> np.ndarray:
        W, offset = self.weights(state)
        return np.concatenate([self.cell_matrix(state, X[rows]).dot(W) for rows in cuts(X.shape[0], _SCORED)]) + offset

    def grid_schema(self, state: State, trained: bool) -> Schema:
        """What decides the grids besides the seed."""
        if not (trained and self.given.kernel_needs_data):
            return {}
        width: Schema = {"width": Array((state["n_features"],), low=POSITIVE)} if self.free else {}
        return width | self.given.kernel_schema()


class BinningShell(StreamEstimator):
    """For type checkers: estimators on random binning features are like this."""

    _learner: Binning


def gamma(est: BinningShell) -> float:
    """The bandwidth in use (of columns divided by their range, if it was left to the model)."""
    state = est.state_
    return float(state["gamma"]) if "gamma" in state else float(est._learner.given.kernel_object.gamma)
