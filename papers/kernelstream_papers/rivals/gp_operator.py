r"""The variance of a Gaussian process by the operator that the paper on doubly stochastic gradients prints."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from kernelstream import DoublyStochasticGP, estimators
from kernelstream.core.overflow import quiet, require_finite
from kernelstream.develop import State, StreamRegressor, WithKernel, checked_rows, described, positive, whole
from kernelstream.passes.doubly.blocks import FeatureBlocks
from kernelstream.passes.doubly.descent import batches, top_eigenvalue
from kernelstream.random import SeedStream
from kernelstream.rows import Rows
from kernelstream.state.schema import Array, Schema
from kernelstream.state.turns import in_turn


class OperatorDescent(WithKernel):
    """``theta`` (P, P) of the operator and ``w`` (P,) of the mean, P features of all iterations."""

    noise: float
    iterations: int
    batch_size: int
    block_size: int
    eta: float | str
    theta0: float

    def check_parameters(self) -> None:
        for name in ("noise", "theta0", *(() if self.eta == "auto" else ("eta",))):
            positive(name, getattr(self, name))
        for name in ("iterations", "batch_size", "block_size"):
            whole(name, getattr(self, name))
        if not self.given.kernel_object.has_features:
            raise ValueError(f"{self.given.kernel_object!r} has no random features")

    def blocks(self, state: State) -> tuple[FeatureBlocks, FeatureBlocks]:
        """The two streams of features, phi and phi'."""

        def made() -> tuple[FeatureBlocks, FeatureBlocks]:
            args = self.kernel(state), state["seed"], state["n_features"], self.block_size, np.float64, self.ops
            return FeatureBlocks(*args, SeedStream.GP_OPERATOR), FeatureBlocks(*args)

        return self.derived.cached("blocks", made)

    def features(self, blocks: FeatureBlocks, X: Rows, stop: int) -> np.ndarray:
        """Features of rows in all blocks before ``stop``, (n, stop width)."""
        X = X.astype(np.float64, copy=False)
        return np.concatenate([np.empty((X.shape[0], 0)), *(blocks.features(X, i) for i in range(stop))], axis=1)

    @quiet
    def solve(self, state: State, X: Rows, Y: np.ndarray, weight: np.ndarray | None) -> None:
        self.estimate(state, X)
        n, (phi, other) = X.shape[0], self.blocks(state)
        a, y, width = np.ones(n) if weight is None else weight, Y[:, 0], phi.width
        first = 1.0 / (top_eigenvalue(self.kernel(state), X) * a.mean()) if self.eta == "auto" else self.eta
        theta, w = np.zeros((self.iterations * width,) * 2), np.zeros(self.iterations * width)
        for t, rows in enumerate(batches(n, min(self.batch_size, n), self.iterations, state["seed"])):
            Z, old, new = X[rows], slice(0, t * width), slice(t * width, (t + 1) * width)
            rate = float(first) * self.theta0 / (self.theta0 + t + 1)
            before, after = self.features(other, Z, t), other.features(Z.astype(np.float64, copy=False), t)
            step = rate * a[rows, None] / len(rows) * after
            decay = 1.0 - rate * self.noise / n
            theta[old, new] = -theta[old, old] @ before.T @ step
            theta[new, new] = phi.features(Z.astype(np.float64, copy=False), t).T @ step
            theta[old, old] *= decay
            w[new] = (y[rows] - before @ w[old]) @ step
            w[old] *= decay
        require_finite(theta, w)
        state |= {"theta": theta, "w": w}

    def score(self, state: State, X: Rows) -> np.ndarray:
        return (self.features(self.blocks(state)[1], X, self.iterations) @ state["w"])[:, None]

    def variance(self, state: State, X: Rows) -> np.ndarray:
        """``k(x, x) - A(x, x)`` of rows, between 0 and k(x, x), (n,)."""
        left, right = (self.features(blocks, X, self.iterations) for blocks in self.blocks(state))
        prior = self.kernel(state).diag(X).astype(np.float64)
        return np.clip(prior - np.einsum("ij,ij->i", left @ state["theta"], right), 0.0, prior)

    def schema(self, state: State, trained: bool) -> Schema:
        draws, d = self.block_size, state["n_features"]
        per_draw = self.given.kernel_object.per_draw(d)
        size = self.iterations * per_draw * (draws if per_draw <= 2 else max(1, 2 * draws // per_draw))
        return self.kernel_schema(state, True) | {"theta": Array((size, size)), "w": Array((size,))}


@estimators.register
@described(like=DoublyStochasticGP)
@dataclass(eq=False, repr=False)
class OperatorGP(StreamRegressor):
    r"""Posterior of a Gaussian process with the variance by an operator of two streams of features, as printed.

    The operator :math:`A = C(C + \frac{s^2}{n})^{-1}`, :math:`C = \frac1n \sum_i k(x_i, \cdot) \otimes k(x_i, \cdot)`,
    is :math:`\sum_{i \le j} \phi_i' \theta_{ij} \phi_j^*` for two independent streams of random features
    :math:`\phi_i`, :math:`\phi_j^*`, a block of each in every iteration t [1]_,

    .. math:: \theta_{ij} \leftarrow \Big(1 - \gamma_t \frac{s^2}{n}\Big) \theta_{ij}, \quad
        \theta_{it} = -\gamma_t \sum_{j \ge i}^{t-1} \theta_{ij} \phi_j^*(x) \phi_t^*(x)', \quad
        \theta_{tt} = \gamma_t \phi_t(x) \phi_t^*(x)',

    means over a batch of rows x, and :math:`\gamma_t = \eta\theta_0/(\theta_0 + t)`. The variance at x is
    :math:`k(x, x) - A(x, x)`; the mean is a kernel ridge regression by the same steps.

    Parameters
    ----------
    kernel : Kernel or str, default="gaussian"
        Kernel with random features.
    gamma : float, "median", "scale" or None, default=None
        Bandwidth of a kernel given by name; by default from the median distance.
    noise : float, default=0.1
        Variance of the noise.
    iterations : int, default=40
        Steps, each with its own features: memory and time grow with the square of their number.
    batch_size : int, default=64
        Rows of a step.
    block_size : int, default=32
        Draws of features in a step.
    eta : float or "auto", default="auto"
        First step; "auto" is 1 over the largest eigenvalue of K/n.
    theta0 : float, default=10.0
        Steps after which they have shrunk to a half.

    Attributes
    ----------
    state_ : dict
        Everything learned, as arrays, numbers and strings by name.

    See Also
    --------
    kernelstream.DoublyStochasticGP : The same operator with less noise, because every step serves all features.

    Notes
    -----
    The features of the two streams are independent, and so is their noise in k(x, x) - A(x, x): with the default sizes
    a few hundredths of k(x, x). ``sample_weight`` multiplies the gradients of rows.

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014,
       section 4 and appendix D.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.rivals import OperatorGP
    >>> X = np.random.default_rng(0).uniform(-2, 2, (500, 1))
    >>> model = OperatorGP(gamma=1.0, noise=1.0, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    >>> mean, std = model.predict([[1.0], [6.0]], return_std=True)
    >>> bool(std[0] < 0.5), bool(std[1] > 0.9)
    (True, True)
    """

    _learner: ClassVar[OperatorDescent]
    loss = "squared"

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    noise: float = 0.1
    _: KW_ONLY
    iterations: int = 40
    batch_size: int = 64
    block_size: int = 32
    eta: float | str = "auto"
    theta0: float = 10.0

    _learns = OperatorDescent

    @in_turn
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Posterior mean, and with ``return_std`` the standard deviation of f (without the noise).

        Parameters
        ----------
        X : (n, d) array or CSR
        return_std : bool

        Returns
        -------
        (n,) array, or two of them
        """
        mean = self._scores(X)[:, 0]
        if not return_std:
            return mean
        return mean, np.sqrt(self._learner.variance(self.state_, checked_rows(self, X)))
