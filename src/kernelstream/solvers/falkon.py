r"""Nearly exact kernel machines: Nyström centres and preconditioned conjugate gradients.

.. math:: \min_\alpha \sum_i a_i\, l\Bigl(y_i, b + \sum_j \alpha_j k(x_i, s_j)\Bigr)
          + \frac{\lambda}{2} \alpha' K_{SS}\, \alpha

With ``K_SS = T'T`` and ``w = T alpha`` this is a linear model on the features ``Z = K_XS T^-1`` with the penalty
``lam/2 ||w||^2``. The centres and a random sample of some rows for each give ``Z'A Z`` up to a factor near 1 in every
direction: divided by that, the conjugate gradients need few passes over the rows, whatever the kernel. (The papers
divide by what the centres alone say, which costs less and takes several times as many passes where lam is small; so do
we where a device has no room for their factors in float64.)

Rudi, Carratino, Rosasco: FALKON, an optimal large scale kernel method, NeurIPS 2017. Marteau-Ferey, Bach, Rudi:
Globally convergent Newton methods for ill-conditioned generalized self-concordant losses, NeurIPS 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import Kernel
from ..losses import Loss
from ..random import SeedStream, generator
from ..rows import Rows
from ..state.blas_threads import on_one_blas_thread
from ._problem import Problem, Solution
from .cg import ConjugateGradient, System, conjugate_gradients
from .kernel_blocks import Centers, Factor, KernelBlocks, least_addition
from .newton_cg import NewtonCG

SAMPLED = 4  # rows per centre that the preconditioner is made of, besides the centres


class CenterMatrix:
    """The features ``Z = k(X, S) T^-1`` with the products that solvers use, and descent that knows how to divide.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth.
    X : (n, d) array or CSR
        Rows.
    centers : (m,) array
        The rows that are the centres S.
    ops : module or Ops
        An engine.
    seed : int
        Of the sample of rows.
    """

    def __init__(self, kernel: Kernel, X: Rows, centers: np.ndarray, ops: Any, seed: int = 0):
        self.K = kernel_blocks(kernel, X, X[centers], ops, keep=True)
        factor = getattr(ops, "kernel_factor", Factor)  # an engine may have its own
        K = self.K.values.gram()
        self.factor: Any = factor(K, least_addition(K, self.K.dtype))
        n, m = self.shape = self.K.shape
        # centres stand for themselves: where one is alone, no other row tells how much there is in its direction
        others = np.setdiff1d(np.arange(n), centers)
        if len(others) > SAMPLED * m:
            others = np.sort(generator(seed, SeedStream.FALKON_ROWS).choice(others, SAMPLED * m, replace=False))
        self.sample, self.others = np.concatenate([centers, others]), len(others)

    def dot(self, V: np.ndarray) -> np.ndarray:
        """``Z V``, (m, C) -> (n, C) float64."""
        return self.K.dot(self.factor.solve(V))

    def tdot(self, U: np.ndarray) -> np.ndarray:
        """``Z'U``, (n, C) -> (m, C) float64."""
        return self.factor.tsolve(self.K.tdot(U))

    def coefficients(self, W: np.ndarray) -> np.ndarray:
        """``alpha = T^-1 w``, (m, C)."""
        return self.factor.solve(W)

    def descend(self, lam: float, system: System) -> tuple[list[float], bool]:
        """Conjugate gradients; see :func:`kernelstream.solvers.cg.descend`."""
        self._weigh(system.A, lam)

        def product(V: np.ndarray) -> np.ndarray:
            return self.factor.tsolve(self.K.normal(system.A, self.factor.solve(V))) + lam * V

        return conjugate_gradients(product, self.factor.precondition, system)

    def _weigh(self, A: np.ndarray, lam: float) -> None:
        """Precondition by what the sample says of ``Z'A Z``; the outputs share the mean of their weights."""
        rows = A.mean(axis=1)
        if self.factor.single:
            return self.factor.weigh_centers(float(rows.sum()) / self.shape[1], lam)
        a = rows[self.sample]
        m, known = len(a) - self.others, float(a.sum())
        if self.others < len(rows) - m:
            drawn = float(a[m:].sum())
            a[m:] *= (rows.sum() - (known - drawn)) / drawn if drawn > 0 else 1.0
        self.factor.weigh(self.K.moment(self.sample, a), lam)


def kernel_blocks(kernel: Kernel, X: Rows, S: Rows, ops: Any, keep: bool = False) -> Any:
    """Products with ``k(X, S)`` by an engine; see :class:`~kernelstream.solvers.kernel_blocks.KernelBlocks`."""
    own = getattr(ops, "kernel_blocks", None)
    return KernelBlocks(Centers(kernel, S, ops), X, keep) if own is None else own(kernel, X, S, keep)


@on_one_blas_thread
def falkon(
    Z: CenterMatrix,
    Y: np.ndarray,
    loss: Loss,
    lam: float,
    ops: Any,
    *,
    weight: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    report: Callable[[int, float], None] = lambda iteration, value: None,
) -> Solution:
    """Weights W (m, C) of the features Z; ``Z.coefficients(W)`` are those of the kernel expansion.

    Parameters
    ----------
    Z : CenterMatrix
    Y : (n, C) array
        Targets, or -1 and +1.
    loss : Loss
        "squared" (one system, by conjugate gradients), "logistic" or "squared_hinge" (Newton steps).
    lam : float
        Penalty, next to the *sum* of the losses.
    ops : module or Ops
    weight : (n,) array, optional
        Factors a_i.
    offset : (C,) array, optional
        The constant b.
    start : (m, C) array, optional
        Weights to begin with.
    tol : float
        Relative residual, or relative gradient, at which to stop.
    max_iter : int
        Passes over the rows for the squared loss, Newton steps for the others.
    """
    problem = Problem(Z, Y, loss, lam, ops, weight, start, offset, report=report)
    solver = ConjugateGradient(tol, max_iter) if loss.name == "squared" else NewtonCG(tol, max_iter)
    solver.serves(loss)
    return solver.solve(problem)
