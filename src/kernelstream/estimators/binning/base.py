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

_SCORED = 32_768  # rows scored at once


class BinningEstimator(StreamEstimator):
    """Everything but the target and the way in which weights are found."""

    kernel: Any
    gamma: Any
    n_components: int
    loss: Any

    # ---------------------------------------------------------------- components
    @property
    def _given(self) -> KernelParameters:
        return self._cached("given", lambda: KernelParameters(self.kernel, self.gamma))

    @property
    def _free(self) -> bool:
        """Whether the model chooses the bandwidth, and then also the widths of the columns."""
        return isinstance(self.kernel, str) and self.gamma is None

    @property
    def _threads(self) -> int:
        return most_threads()

    def _kernel(self, state: State) -> Any:
        return self._given.resolved({"gamma": state.get("gamma")})

    def _grids(self, state: State) -> _grids.Grids:
        def draw() -> _grids.Grids:
            d, dtype = state["n_features"], np.dtype(state["dtype"])
            return _grids.draw(self._kernel(state), state["seed"], d, self.n_components, dtype, state.get("width"))

        return self._cached("grids", draw)

    def _one_width(self) -> bool:
        return not self._free and self._given.takes_width

    def _check_parameters(self) -> None:
        whole("n_components", self.n_components)
        kernel = self._given.kernel_object
        if not hasattr(kernel, "pitches"):
            _grids.draw(kernel, 0, 1, 1, np.float64)  # raises for kernels that have no grids

    # ---------------------------------------------------------------- scores
    def _weights(self, state: State) -> tuple[np.ndarray, Any]:
        """Weights (columns, outputs) and the constant score."""
        raise NotImplementedError

    def _cell_matrix(self, state: State, X: Rows) -> CellMatrix:
        raise NotImplementedError

    def _score(self, state: State, X: Rows) -> np.ndarray:
        W, offset = self._weights(state)
        return np.concatenate([self._cell_matrix(state, X[rows]).dot(W) for rows in cuts(X.shape[0], _SCORED)]) + offset

    def _grid_schema(self, state: State, trained: bool) -> Schema:
        """What decides the grids besides the seed."""
        if not (trained and self._given.kernel_needs_data):
            return {}
        width: Schema = {"width": Array((state["n_features"],), low=POSITIVE)} if self._free else {}
        return width | self._given.kernel_schema()

    @property
    def gamma_(self) -> float:
        """The bandwidth in use (of columns divided by their range, if it was left to the model)."""
        state = self.state_
        return float(state["gamma"]) if "gamma" in state else float(self._given.kernel_object.gamma)
