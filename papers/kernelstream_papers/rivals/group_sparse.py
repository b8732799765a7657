r"""Many kernels, few of them used: online proximal steps with the squared L2,1 norm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from kernelstream import estimators
from kernelstream.develop import State, StreamClassifier, described, entry, positive, whole
from kernelstream.features import FeatureMap

from .margin import LargeMarginClassifier, RowSteps


def shrunk(norms: np.ndarray, mu: float) -> np.ndarray:
    """The x >= 0 that minimises ``|x - norms|^2 / 2 + mu/2 (sum x)^2``: all norms less a number, 0 where negative."""
    if mu == 0.0:
        return norms
    largest = np.sort(norms)[::-1]
    less = np.cumsum(largest) / (1.0 / mu + np.arange(1, len(norms) + 1))
    return np.maximum(norms - less[np.append(0, np.flatnonzero(largest > less))[-1]], 0.0)


class GroupSteps(RowSteps):
    """A step along the gradient of the hinge, then one that shortens the weights of every kernel."""

    groups: int
    lam: float
    eta: float

    def check_parameters(self) -> None:
        whole("groups", self.groups)
        positive("lam", self.lam)
        positive("eta", self.eta)

    def reset(self, state: State) -> None:
        width = self.mapping(state).n_out
        if width % self.groups:
            raise ValueError(f"{width} features cannot be parted into {self.groups} equal groups")
        super().reset(state)

    def move(self, state: State, z: np.ndarray, y: np.ndarray, f: np.ndarray, t: int, weight: float) -> None:
        w, rate = state["w"], weight * self.eta / math.sqrt(t)
        w += rate * np.outer((y * f < 1) * y, z)
        for u in w.reshape(len(w), self.groups, -1):  # a view
            norms = np.linalg.norm(u, axis=1)
            u *= (shrunk(norms, rate * self.lam) / np.where(norms > 0, norms, 1.0))[:, None]


@estimators.register
@described(like=LargeMarginClassifier)
@dataclass(eq=False, repr=False)
class GroupSparseClassifier(StreamClassifier):
    r"""Sum of one function of every kernel, where most kernels get none: online proximal multiple kernel learning.

    .. math:: \min_{f_1, \dots, f_m} \frac\lambda2 \Big(\sum_i \|f_i\|\Big)^2
        + \frac1T \sum_t \max\Big(0, 1 - y_t \sum_i f_i(x_t)\Big)

    by a step of :math:`\eta/\sqrt t` along the gradient of a row's loss and the exact minimum of the penalty beside the
    distance from there: the norms of all functions fall by one number, those below it to 0 [1]_. The functions are
    linear in features of their kernels; several classes are learned one against the rest.

    Parameters
    ----------
    features : FeatureMap or str, default="fourier"
        Features of all kernels, one kernel after the other: those of a sum of kernels.
    groups : int, default=1
        Number of kernels; each has an equal part of the features.
    lam : float, default=0.001
        Penalty, next to the *mean* of the losses.
    eta : float, default=1.0
        First step; step t is ``eta/sqrt(t)``.

    See Also
    --------
    kernelstream.MultiKernelClassifier : A learner for every kernel, weighed by its mistakes.

    Notes
    -----
    A row costs about 50 microseconds and a few for every kernel. The paper also projects the weights on a ball that
    holds the minimum, which its proximal steps do not need. ``sample_weight`` multiplies the steps.

    References
    ----------
    .. [1] Martins, Figueiredo, Aguiar, Smith, Xing: Online multiple kernel learning for structured prediction,
       arXiv:1010.2770, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream.features import RandomFeatures
    >>> from kernelstream.kernels import Gaussian
    >>> from kernelstream_papers.rivals import GroupSparseClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> three = RandomFeatures(Gaussian(1e-4) + Gaussian(2.0) + Gaussian(1e4), n_components=50)
    >>> model = GroupSparseClassifier(three, 3, lam=0.01, random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.9
    True
    >>> np.round(model.norms_[0]) > 0
    array([False,  True, False])
    """

    loss = "hinge"  # how labels are coded
    _learner: ClassVar[GroupSteps]
    coef_ = entry("w", "Weights of the features, (outputs, P).")

    features: FeatureMap | str = "fourier"
    groups: int = 1
    lam: float = 1e-3
    eta: float = 1.0
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = GroupSteps

    @property
    def norms_(self) -> np.ndarray:
        """Norms of the functions of the kernels, (outputs, groups)."""
        w = self.coef_
        return np.linalg.norm(w.reshape(len(w), self.groups, -1), axis=2)

    _loss_rule = staticmethod(estimators.AROWClassifier._loss_rule)
