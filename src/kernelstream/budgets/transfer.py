"""Removed vectors that are kept as random features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import whole
from ..features import FeatureMap, Mapping, for_kernel
from ..kernels import Kernel
from ..state.schema import Array
from ._base import Budget, Row, SupportSet, register
from .removal import smallest


@register
class Transfer(Budget):
    r"""Move the smallest vector from the support set into random features: ``f = sum_j alpha_j k(s_j, .) + w'z(.)``,
    ``w += alpha_r z(s_r)``.

    Since ``z(x)'z(x') ~ k(x, x')``, nothing is forgotten, only rounded. The vector with the smallest ``|alpha|`` moves
    (the new one included), so the larger terms stay exact.

    Le, Nguyen, Nguyen, Phung: Dual space gradient descent for online learning (DualSGD), NIPS 2016.

    Parameters
    ----------
    n_components : int
        Frequencies (draws) of the random features.
    """

    name = "transfer"

    def __init__(self, n_components: int = 200):
        self.n_components = n_components

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        if not kernel.has_features:
            raise ValueError(
                f"Transfer moves support vectors into random features, which the kernel {kernel.name!r} does not have"
            )
        whole("n_components", self.n_components)

    def _features(self, kernel: Kernel) -> FeatureMap:
        return for_kernel(kernel, n_components=self.n_components)

    def mapping(self, kernel: Kernel, d: int, dtype: np.dtype, seed: int) -> Mapping:
        """The features z of rows of width d."""
        features = self._features(kernel)
        return features.build(features.prepare(None, seed), d, dtype)

    def schema(self, state: Any, capacity: Any, kernel: Any) -> Any:
        width, dtype = self._features(kernel).width({"seed": 0}, state["n_features"]), str(state["alpha"].dtype)
        return super().schema(state, capacity, kernel) | {
            "budget_w": Array((state["n_outputs"], width), dtype),  # without the factor `scale`, like alpha
            "budget_z": Array((capacity, width), dtype),  # features of the support vectors
        }

    def absorb(self, S: SupportSet, row: Row) -> None:
        assert S.Z is not None  # the features of the block, which this strategy asks for
        w, z = S.state["budget_w"], S.state["budget_z"]
        r = smallest(S, row) if S.full else S.n
        if r == S.capacity:
            w += np.outer(row.tau / S.scale, S.Z[row.i])
            return
        if S.full:
            w += np.outer(S.alpha[:, r], z[r])
        z[r] = S.Z[row.i]
        S.place(r, row, row.tau)
