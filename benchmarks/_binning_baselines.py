"""What random binning is compared with: other approximations of one kernel, all with ``fit`` and ``predict``.

Every model solves regularised least squares with the same kernel and penalty (classes as -1 and +1, one against the
rest), so that only the approximation differs. ``R`` is the number of grids (random binning), of columns (Fourier), of
landmarks (Nyström) or of rows in a block (independent blocks).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.cluster import MiniBatchKMeans

from kernelstream import BinningClassifier, BinningRegressor, engine, kernels, solvers
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.losses import Squared
from kernelstream.solvers import DenseMatrix, Problem


class Coded:
    """Targets as columns of numbers, and back: subclasses write ``_fit(X, Y)`` and ``_scores(X)``."""

    regression = False

    def fit(self, X: np.ndarray, y: np.ndarray) -> Coded:
        Y = y[:, None].astype(np.float64)
        if not self.regression:
            self.classes_, codes = np.unique(y, return_inverse=True)
            Y = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
            Y = Y[:, 1:] if len(self.classes_) == 2 else Y
        self.offset_ = Y.mean(axis=0)
        self._fit(X, Y - self.offset_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        F = np.concatenate([self._scores(X[at : at + 20_000]) for at in range(0, len(X), 20_000)]) + self.offset_
        if self.regression:
            return F[:, 0]
        return self.classes_[(F[:, 0] >= 0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)]


class OnFeatures(Coded):
    """A dense feature map and a solver of :mod:`kernelstream.solvers`."""

    def __init__(self, features: Any, lam: float, solver: Any = "cg", regression: bool = False):
        self.features, self.lam, self.solver, self.regression = features, lam, solver, regression

    def _fit(self, X, Y):
        Z = self.features.fit_transform(X)
        problem = Problem(DenseMatrix(Z), Y, Squared(), self.lam, engine.get("native"), dtype=Z.dtype)
        self.coef_ = solvers.get(self.solver).solve(problem).W

    def _scores(self, X):
        return self.features.transform(X) @ self.coef_


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


class Exact(Coded):
    """Kernel ridge regression, ``(K + lam I) alpha = y``, on a GPU where torch has one."""

    def __init__(self, kernel: Any, lam: float, regression: bool = False, gpu: bool = True):
        self.kernel, self.lam, self.regression, self.gpu = kernel, lam, regression, gpu and _has_gpu()

    def _fit(self, X, Y):
        self.X_ = X
        if self.gpu:
            import torch

            K = torch.empty((len(X), len(X)), dtype=torch.float64, device="cuda")
            for at in range(0, len(X), 2000):
                K[at : at + 2000] = self._gpu_kernel(X[at : at + 2000])
            K.diagonal().add_(self.lam)
            factor = torch.linalg.cholesky(K)
            del K
            self.alpha_ = torch.cholesky_solve(torch.tensor(Y, device="cuda"), factor)
            return
        K = self.kernel.pairwise(X, X).astype(np.float64)
        K[np.diag_indices_from(K)] += self.lam
        self.alpha_ = cho_solve(cho_factor(K, overwrite_a=True, check_finite=False), Y, check_finite=False)

    def _gpu_kernel(self, X):
        import torch

        if not hasattr(self, "on_gpu"):
            self.on_gpu = torch.tensor(self.X_, device="cuda")
        return torch.exp(-self.kernel.gamma * torch.cdist(torch.tensor(X, device="cuda"), self.on_gpu, p=1))

    def _scores(self, X):
        if self.gpu:
            parts = [self._gpu_kernel(X[at : at + 2000]).double() @ self.alpha_ for at in range(0, len(X), 2000)]
            return np.concatenate([part.cpu().numpy() for part in parts])
        return self.kernel.pairwise(X, self.X_) @ self.alpha_


class Blocks(Coded):
    """Independent blocks: rows are clustered, and the kernel between two clusters is taken to be 0."""

    def __init__(self, kernel: Any, R: int, lam: float, regression: bool = False):
        self.kernel, self.R, self.lam, self.regression = kernel, R, lam, regression

    def _fit(self, X, Y):
        count = max(1, round(len(X) / self.R))
        start = np.random.default_rng(0).permutation(len(X))[:count]
        means = MiniBatchKMeans(count, init=X[start], n_init=1, max_iter=3, batch_size=4096, random_state=0)
        self.means_ = means.fit(X)
        self.models_, self.outputs_ = {}, Y.shape[1]
        for c, rows in _groups(self.means_.labels_):
            kept = rows[: 4 * self.R]  # clusters are uneven: the largest would cost more than all others
            self.models_[c] = Exact(self.kernel, self.lam, True, gpu=False)
            self.models_[c].offset_ = 0.0
            self.models_[c]._fit(X[kept], Y[kept])

    def _scores(self, X):
        F = np.zeros((len(X), self.outputs_))
        for c, rows in _groups(self.means_.predict(X)):
            if c in self.models_:
                F[rows] = self.models_[c]._scores(X[rows])
        return F


def _groups(labels: np.ndarray):
    order = np.argsort(labels, kind="stable")
    names, first = np.unique(labels[order], return_index=True)
    return zip(names.tolist(), np.split(order, first[1:]))


def make(method: str, R: int, gamma: float, lam: float, regression: bool, seed: int = 0, n_jobs: int = 1) -> Any:
    """A model of the Laplacian kernel by the name of its approximation."""
    kernel = kernels.Laplacian(gamma)
    if method == "binning":
        kind: Any = BinningRegressor if regression else BinningClassifier
        return kind(kernel, n_components=R, lam=lam, random_state=seed, n_jobs=n_jobs)
    if method == "fourier":
        return OnFeatures(RandomFourier(kernel, max(1, R // 2), random_state=seed), lam, regression=regression)
    if method == "nystroem":
        return OnFeatures(Nystroem(kernel, R, landmarks="uniform", random_state=seed), lam, regression=regression)
    if method == "blocks":
        return Blocks(kernel, R, lam, regression)
    return Exact(kernel, lam, regression)
