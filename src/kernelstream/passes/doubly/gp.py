r"""The recursions of a Gaussian process: posterior mean, and the variance in two forms.

With n rows, noise variance s2 and prior covariance a k, the posterior at x is

    mean = k_x'(K + r I)^-1 y,   variance = a (k(x, x) - k_x'(K + r I)^-1 k_x),   r = s2/a.

The mean is a regression with square loss and lam = r/n. The variance follows from further regressions on the same rows,
which are columns 1, 2, … of the same weights:

* *points given*: one for each point p, with the targets ``k(p, x_i)``; its value at p is the second term;
* *operator*: one for each random feature ``phi_j`` of a second, independent stream, with the targets ``phi_j(x_i)``. As
  ``E[phi(x) phi(z)'] = k(x, z)``, the sum ``A(x, z) = sum_j phi_j(x) g_j(z)`` over their values g_j is the operator
  ``A = C (C + lam)^-1``, ``C = (1/n) sum k(x_i, .) ⊗ k(x_i, .)``, in the form ``sum_ij phi_i(x)' theta_ij phi'_j(z)``.

The recursion of the paper adds to theta, in iteration t, the target of feature block t only. Here every iteration adds
those of all blocks, an estimate of the same gradient with less variance; and because ``A(x, x)`` then is near
``phi(x)'phi(x)`` for every draw of the features, the small difference of the two, the variance, is found to a few
percent with a hundred features, where independent noise in the two terms would hide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...rows import Rows
from ...state.nested import State
from .blocks import FeatureBlocks
from .descent import Descent


@dataclass
class GPDescent(Descent):
    """Column 0 learns the mean; the others what the variance needs, by one of two forms, if any."""

    points: Rows | None = None
    left: FeatureBlocks | None = None

    def _targets(self, X: Rows) -> np.ndarray:
        """Of the regressions for the variance, (n, their number)."""
        if self.left is not None:
            return self.left.features(X, 0)
        assert self.points is not None
        return self.blocks.kernel.pairwise(X, self.points)

    def learn_batch(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, F: np.ndarray) -> Any:
        G = F - y[:, None]
        if F.shape[1] > 1:
            G[:, 1:] = F[:, 1:] - state["offset"] - self._targets(X)
        return self.descend(state, X, G if weight is None else G * weight[:, None], F)

    # ---------------------------------------------------------------- answers
    def answering(self, state: State) -> np.ndarray:
        return super().answering(state)[:, :, :1]

    def variance(self, state: State, X: Rows) -> tuple[np.ndarray, np.ndarray]:
        """By the operator: ``k(x, x) - A(x, x)`` and ``k(x, x)``, both as the features estimate them, (n,) and (n,)."""
        assert self.left is not None
        phi = self.left.features(X, 0).astype(np.float64)
        g = self.blocks.scores(X, super().answering(state)[:, :, 1:])
        return np.einsum("ij,ij->i", phi, phi - g), np.einsum("ij,ij->i", phi, phi)

    def at_points(self, state: State, which: np.ndarray) -> np.ndarray:
        """Value of the regression of point ``which[i]`` at that point, (len(which),)."""
        assert self.points is not None
        X, total = self.points[which], np.zeros(len(which))
        for i, A in enumerate(super().answering(state)):
            total += np.einsum("ij,ji->i", self.blocks.features(X, i), A[:, 1 + which])
        return total
