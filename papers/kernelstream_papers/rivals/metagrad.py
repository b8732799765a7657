r"""MetaGrad: online gradient descent that tries many learning rates side by side."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from kernelstream import estimators
from kernelstream.develop import State, StreamClassifier, described, entry, positive, whole
from kernelstream.features import FeatureMap

from .margin import LargeMarginClassifier, RowSteps


def nearest(v: np.ndarray, s: np.ndarray, radius: float) -> np.ndarray:
    """The u with |u| <= radius that is nearest to v, distances of coordinate j counted as ``(u_j - v_j)^2 / s_j``."""
    if v @ v <= radius**2:
        return v
    far = math.sqrt(v @ v) / (radius * s.min())  # there |u| <= radius
    nu = brentq(lambda nu: np.linalg.norm(v / (1.0 + nu * s)) - radius, 0.0, far, xtol=1e-14, rtol=1e-12)
    u = v / (1.0 + nu * s)
    return u * min(1.0, radius / np.linalg.norm(u))


class ManyRates(RowSteps):
    """A slave for every rate, and the master ``w``, their mean; ``lost`` is what a slave lost more than the best."""

    signed = frozenset({"w", "slaves"})
    radius: float
    G: float
    horizon: int

    def check_parameters(self) -> None:
        positive("radius", self.radius)
        positive("G", self.G)
        whole("horizon", self.horizon)

    @property
    def _rates(self) -> np.ndarray:
        """``2^-i / (5 D G)`` for i = 0, …, ceil(log2(T)/2), with D = 2 radius."""
        return 0.5 ** np.arange(math.ceil(0.5 * math.log2(self.horizon)) + 1) / (10.0 * self.radius * self.G)

    def fresh(self, width: int) -> dict[str, np.ndarray]:
        k = len(self._rates)
        return super().fresh(width) | {
            "slaves": np.zeros((k, width)), "squares": np.zeros(width), "lost": np.zeros(k),
        }  # fmt: skip

    def move(self, state: State, z: np.ndarray, y: np.ndarray, f: np.ndarray, t: int, weight: float) -> None:
        eta, i = self._rates, np.arange(len(self._rates))
        for c in np.flatnonzero(y * f < 1):  # elsewhere the gradient is 0
            g, w, slaves = -weight * y[c] * z, state["w"][c], state["slaves"][c]
            away = slaves - w
            lost = state["lost"][c] + eta * (away @ g) + eta**2 * (away**2 @ g**2)
            state["lost"][c] = lost - lost.min()
            state["squares"][c] += g**2
            spread = 1.0 / (0.25 / self.radius**2 + 2.0 * eta[:, None] ** 2 * state["squares"][c])
            moved = slaves - spread * (eta[:, None] * g + 2.0 * eta[:, None] ** 2 * g**2 * away)
            for k, (v, s) in enumerate(zip(moved, spread, strict=True)):
                slaves[k] = nearest(v, s, self.radius)
            share = eta * np.exp(-state["lost"][c]) / ((i + 1) * (i + 2))
            state["w"][c] = share @ slaves / share.sum()


@estimators.register
@described(like=LargeMarginClassifier)
@dataclass(eq=False, repr=False)
class MetaGradClassifier(StreamClassifier):
    r"""MetaGrad in its diagonal form: the mean of descents with many learning rates, the better ones counting more.

    With the gradient g of the hinge at the weights w that predict, the slave of rate :math:`\eta` has the surrogate
    loss :math:`\ell_\eta(u) = -\eta (w - u)'g + \eta^2 \sum_j (u_j - w_j)^2 g_j^2` and takes the step [1]_

    .. math:: u \leftarrow \Pi\big(u - S(\eta g + 2\eta^2 g^2 (u - w))\big), \qquad
        S_j^{-1} = D^{-2} + 2\eta^2 \textstyle\sum_t g_{tj}^2,

    where :math:`\Pi` is the nearest point of a ball of diameter D by :math:`S^{-1}`, and
    :math:`w = \sum \pi_\eta \eta u_\eta / \sum \pi_\eta \eta`, :math:`\pi_\eta \propto
    \exp(-\sum_t \ell_{t\eta}(u_{t\eta})) / ((i + 1)(i + 2))` for :math:`\eta = 2^{-i}/(5DG)`.

    Parameters
    ----------
    radius : float, default=10.0
        Of the ball, D/2.
    G : float, default=1.0
        The longest gradient: the norm of the features, 1 for Fourier features.
    horizon : int, default=1048576
        Rows expected, T: there are ``ceil(log2(T)/2) + 1`` rates.

    See Also
    --------
    LargeMarginClassifier : One rate.
    kernelstream.FeatureClassifier : Steps that need no tuning, many times faster.

    Notes
    -----
    A row with a loss costs about a millisecond. ``sample_weight`` multiplies the gradients.

    References
    ----------
    .. [1] van Erven, Koolen: MetaGrad: multiple learning rates in online learning, NIPS 2016, algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream_papers.rivals import MetaGradClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> MetaGradClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.9
    True
    """

    loss = "hinge"  # how labels are coded
    _learner: ClassVar[ManyRates]
    coef_ = entry("w", "Weights of the features, (outputs, P).")

    features: FeatureMap | str = "fourier"
    radius: float = 10.0
    G: float = 1.0
    horizon: int = 1 << 20
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = ManyRates

    _loss_rule = staticmethod(estimators.AROWClassifier._loss_rule)
