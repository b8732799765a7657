r"""Kernel ridge regression and Kernel-AWV after every row: exact, and therefore with all rows kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from ...checks import one_of, positive
from ...core.overflow import quiet, require_finite
from ...core.threads import cuts
from ...rows import Rows, dense
from ...second_order import more_ridge
from ...state import undo as _undo
from ...state.change import Change
from ...state.schema import Array, Count, Schema, length
from .._contract.base import State
from .._contract.classifier import StreamClassifier
from .._contract.kernel import WithKernel
from .._contract.regressor import StreamRegressor
from .._contract.state import blank
from .._described import described
from .base import targets
from .ridge import FORECASTERS

FIRST_ROOM = 64  # rows for which there is room at first; the room doubles


class GrowingFactor(WithKernel):
    r"""The growing Cholesky factor of ``K + lambda I``.

    With ``K + lambda I = L L'`` and ``e = L^-1 y``, a new row has ``l = L^-1 k(X, x)``, the kernel ridge forecast is
    ``l'e``, its variance (in units of the noise) ``v = k(x, x) - l'l``, and (l, sqrt(v + lambda)) is the next row of L.
    """

    _by_row = frozenset({"rows", "L", "e", "targets"})

    lam: float
    forecaster: str

    def reset(self, state: State) -> None:
        state |= blank(self._arrays(state, FIRST_ROOM)) | {"n_rows": 0}

    def _arrays(self, state: State, room: int) -> Schema:
        """Rows, their factor and targets, with room for so many."""
        columns = Array((room, state["n_outputs"]), any_order=True)
        rows = Array((room, state["n_features"]), state["dtype"])
        return {"rows": rows, "L": Array((room, room)), "e": columns, "targets": columns}

    def _project(self, state: State, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``l`` (n, m) of rows X (m, d), and forecasts of kernel ridge regression (m, k)."""
        n = state["n_rows"]
        if not n:
            return np.zeros((0, len(X))), np.zeros((len(X), state["n_outputs"]))
        K = self._gram(state, X, state["rows"][:n])
        W = solve_triangular(state["L"][:n, :n], K.T, lower=True, check_finite=False)
        return W, W.T @ state["e"][:n]

    def _gram(self, state: State, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Kernel values in float64 whatever the type of the rows: the factor magnifies their rounding."""
        return self.kernel(state).pairwise(X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False))

    def _shrunk(self, P: np.ndarray, v: np.ndarray) -> np.ndarray:
        """AWV adds the row with the target 0: ``f(x) lambda/(lambda + v)``."""
        return P if self.forecaster == "ridge" else P * (self.lam / (self.lam + v))[:, None]

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        y = targets(state, y)
        weight = np.ones(len(y)) if weight is None else weight
        block = self.ops.BLOCK
        parts = [
            self._learn_block(state, dense(X[i : i + block]), y[i : i + block], weight[i : i + block])
            for i in range(0, len(y), block)
        ]
        state["t"] += int(np.count_nonzero(weight))
        return np.concatenate(parts)

    @quiet
    def _learn_block(self, state: State, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        W, P = self._project(state, X)
        K = self._gram(state, X, X)
        C = K - W.T @ W
        kept = np.flatnonzero(weight)
        L = _factor(C[np.ix_(kept, kept)], self.lam / weight[kept], K) if len(kept) else C[:0, :0]
        e = solve_triangular(L, y[kept] - P[kept], lower=True, check_finite=False) if len(kept) else y[:0]
        # of its block, a row sees the kept rows before it
        inner = solve_triangular(L, C[kept], lower=True, check_finite=False) if len(kept) else C[:0]
        inner = np.where(kept[:, None] < np.arange(len(X)), inner, 0.0)
        P = P + inner.T @ e
        v = np.maximum(C.diagonal() - (inner**2).sum(axis=0), 0.0)
        require_finite(P, L, e)
        self._append(state, X[kept], W[:, kept], L, e, y[kept])
        return self._shrunk(P, v)

    def _append(self, state: State, X: np.ndarray, W: np.ndarray, L: np.ndarray, e: np.ndarray, y: np.ndarray) -> None:
        n, end = state["n_rows"], state["n_rows"] + len(X)
        room = len(state["rows"])
        if end > room:
            while room < end:
                room *= 2
            grow = room - len(state["rows"])
            for name in ("rows", "e", "targets"):
                state[name] = np.pad(state[name], ((0, grow), (0, 0)))
            state["L"] = np.pad(state["L"], ((0, grow), (0, grow)))
        for name in self._by_row:
            _undo.rows(state[name], slice(n, end))
        state["rows"][n:end], state["e"][n:end], state["targets"][n:end] = X, e, y
        state["L"][n:end, :n], state["L"][n:end, n:end] = W.T, L
        state["n_rows"] = end

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores = np.empty((X.shape[0], state["n_outputs"]))
        kernel = self.kernel(state)
        for rows in cuts(X.shape[0], 256):
            W, P = self._project(state, dense(X[rows]))
            v = np.maximum(np.asarray(kernel.diag(X[rows]), dtype=np.float64) - (W**2).sum(axis=0), 0.0)
            scores[rows] = self._shrunk(P, v)
        return scores

    def schema(self, state: State, trained: bool) -> Schema:
        schema = self.kernel_schema(state, trained)
        if not trained:
            return schema
        room = max(1, length(state, "rows"))
        return schema | self._arrays(state, room) | {"n_rows": Count(0, room)}

    def check_parameters(self) -> None:
        positive("lam", self.lam)
        one_of("forecaster", self.forecaster, FORECASTERS)

    def mix_outputs(self, state: State, change: Change) -> None:
        """A class that appears had the target -1 on all rows before."""
        n = state["n_rows"]
        targets = np.where(change.fresh, -1.0, change.sign * state["targets"][:, change.source])
        targets[n:] = 0.0
        state["targets"], state["e"] = np.ascontiguousarray(targets), np.zeros(targets.shape)
        state["e"][:n] = solve_triangular(state["L"][:n, :n], targets[:n], lower=True) if n else 0.0


def _factor(C: np.ndarray, noise: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor of ``C + diag(noise)``; more is added where C, the rest of K, is only rounding."""
    extra = 0.0
    while True:
        L, failed = lapack.dpotrf(C + np.diag(noise + extra), lower=1, clean=1)
        if not failed:
            return L
        extra = more_ridge(K, extra)


@described()
@dataclass(eq=False, repr=False)
class KernelAWV(StreamRegressor):
    r"""Kernel-AWV: at every row the best function of the kernel's space, exactly.

    .. math:: \hat y_t = f_t(x_t), \qquad
              f_t = \arg\min_f \sum_{s<t} (y_s - f(x_s))^2 + \lambda \|f\|^2 + f(x_t)^2

    (with ``forecaster="ridge"`` without the last term) [1]_. All rows are kept: row t takes time t² and the model has
    n²/2 numbers. It is a yardstick for :class:`~kernelstream.OnlineRidge`, which has constant cost.

    Parameters
    ----------
    lam : float, default=1.0
        Penalty, next to the *sum* of the squared errors: the larger, the smoother the function.
    forecaster : {"awv", "ridge"}, default="awv"
        "awv" includes the last term of the formula, "ridge" does not.
    engine : {"auto", "native", "python"}, default="auto"
        "python" takes one row after the other, the others blocks of rows.
    random_state : ignored
        Nothing here is random.

    Attributes
    ----------
    state_ : dict
        All rows, and the Cholesky factor of their Gram matrix.

    See Also
    --------
    KernelAWVClassifier : The same for labels.
    kernelstream.OnlineRidge : The same recursion on features, at constant cost.

    Notes
    -----
    The minimiser is a linear solve with the Gram matrix of all rows, whose Cholesky factor grows by a row each time.

    References
    ----------
    .. [1] Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale problems,
       NeurIPS 2019, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelAWV
    >>> X = np.random.default_rng(0).uniform(-2, 2, (300, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> KernelAWV(gamma=1.0, lam=0.01).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.99
    True
    """

    _several_targets = True

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    lam: float = 1.0
    forecaster: str = "awv"

    _learns = GrowingFactor


@described(like=KernelAWV)
@dataclass(eq=False, repr=False)
class KernelAWVClassifier(StreamClassifier):
    r"""Kernel-AWV on targets -1 and +1, one output per class (two classes share one).

    .. math:: f_t = \arg\min_f \sum_{s<t} (y_s - f(x_s))^2 + \lambda \|f\|^2 + f(x_t)^2

    (with ``forecaster="ridge"`` without the last term) [1]_. All rows are kept: row t takes time t².

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Weight of each class in the squared error.

    See Also
    --------
    KernelAWV : The same for numbers.
    kernelstream.OnlineRidgeClassifier : The same recursion on features, at constant cost.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import KernelAWVClassifier
    >>> X, y = make_moons(400, noise=0.1, random_state=0)
    >>> KernelAWVClassifier(gamma=2.0).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.97
    True
    """

    loss = "hinge"  # how labels are coded

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    lam: float = 1.0
    forecaster: str = "awv"

    _learns = GrowingFactor
