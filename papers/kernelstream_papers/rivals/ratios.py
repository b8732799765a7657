r"""The ratio of two densities itself, not its logarithm: by r_KL, and by r_nv for relative novelty."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelstream import DensityRatioEstimator, estimators
from kernelstream.develop import StreamClassifier, described, positive
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.estimators.doubly.base import PARTS, fit, kernel, solve
from kernelstream.estimators.doubly.ratio import Ratio, TwoSamples
from kernelstream.losses import Loss


class RelativeNovelty(Loss):
    r"""``2 max(0, r)`` for rows of p (y = -1), ``2 c(r)`` for rows of q (y = +1), of ratios r = 1 + f.

    c is the dual of :math:`r_{nv}(\tau) = \max(0, \rho - \log\tau)` at -r: ``-exp(rho) r`` up to exp(-rho), and
    ``-1 - rho - log(r)`` above.
    """

    name = "relative_novelty"
    kind = "binary"
    bound = None

    def __init__(self, rho: float = 4.0):
        self.rho = rho

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        r, least = 1.0 + f, math.exp(-self.rho)
        above = xp.maximum(r, least)
        dual = -xp.log(above) - self.rho - (r - above + least) / least
        return 2.0 * xp.where(y > 0, dual, xp.maximum(r, 0.0))

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return 2.0 * xp.where(y > 0, -1.0 / xp.maximum(1.0 + f, math.exp(-self.rho)), xp.where(f > -1.0, 1.0, 0.0))

    def probability(self, f: Any) -> Any:
        """Of q against p, where a row comes from either as often: r/(1 + r)."""
        r = np.maximum(1.0 + np.asarray(f), math.exp(-self.rho))
        return r / (1.0 + r)


class RatioAbove(Ratio):
    """A ratio where it is above exp(-rho)."""

    rho: float

    def check_parameters(self) -> None:
        super().check_parameters()
        positive("rho", self.rho)


@estimators.register
@described(like=DensityRatioEstimator)
@dataclass(eq=False, repr=False)
class DensityNovelty(StreamClassifier):
    r"""The ratio of two densities, :math:`r \approx q/p`, where it is above :math:`e^{-\rho}`, from rows of both.

    .. math:: \min_r E_p[r] + E_q[r_{nv}^*(-r)] + \frac\lambda2 \|r - 1\|^2, \qquad
        r_{nv}(\tau) = \max(0, \rho - \log\tau),

    by doubly stochastic gradients [1]_. Rows of q are novel beside those of p where r is large [2]_. A large
    :math:`\rho` gives the estimator of the ratio by :math:`r_{KL}(\tau) = -\log\tau`, that is
    :math:`\min_r E_p[r] - E_q[\log r]` [3]_. y says where a row comes from: the larger label means q, the smaller p.
    Each of the two samples counts as much as the other, however many rows it has.

    Parameters
    ----------
    rho : float, default=4.0
        Ratios below exp(-rho) are of no interest: about 2 % for 4.

    See Also
    --------
    kernelstream.DensityRatioEstimator : The logarithm, which resolves small ratios as well as large ones.

    Notes
    -----
    The paper's p and q are exchanged. The function learned is r - 1, so that the two densities are equal before the
    first row.

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014,
       section 4.
    .. [2] Smola, Song, Teo: Relative novelty detection, AISTATS 2009.
    .. [3] Nguyen, Wainwright, Jordan: Estimating divergence functionals and the likelihood ratio by convex risk
       minimization, IEEE Transactions on Information Theory 56 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.estimators import DoublySchedule
    >>> from kernelstream_papers.rivals import DensityNovelty
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (2000, 1)), rng.normal(1, 1, (2000, 1))])
    >>> model = DensityNovelty(schedule=DoublySchedule(block_size=64), random_state=0)
    >>> model = model.fit(X, np.repeat([0, 1], 2000))
    >>> x = np.linspace(-1, 1.5, 6)[:, None]
    >>> bool(np.abs(model.ratio(x) - np.exp(x[:, 0] - 0.5)).max() < 0.3)  # N(1, 1) / N(0, 1)
    True
    """

    loss = RelativeNovelty()
    class_weight: Any = field(default="balanced", init=False)
    _named_parts: ClassVar = PARTS
    fit, _solve, kernel_ = fit, solve, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    rho: float = 4.0
    lam: float | str = "auto"
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    schedule: DoublySchedule | str = "auto"
    standardize: bool | str = "auto"

    _learns = RatioAbove
    _targets = TwoSamples

    def ratio(self, X: Any) -> np.ndarray:
        """``q(x)/p(x)`` of rows X (n, d); (n,). One more than ``decision_function``, and at least 0."""
        return np.maximum(1.0 + self.decision_function(X), 0.0)

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        return RelativeNovelty(parameters["rho"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
