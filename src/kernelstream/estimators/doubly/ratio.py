r"""Log density ratios by doubly stochastic gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...passes.doubly.novelty import RatioLoss
from .._contract.classifier import StreamClassifier
from .._contract.labels import Labels
from .._described import described
from .base import PARTS, Doubly, fit, kernel
from .models import DoublyStochasticClassifier
from .step import DoublySchedule, DoublyStep

STEEP = 0.25  # of the usual first step


class Ratio(Doubly):
    """A step and a penalty that suit the losses of density ratios, whose curvature has no bound."""

    def first_step(self, state: Any, kernel: Any, X: Any) -> float:
        eta = super().first_step(state, kernel, X)
        return STEEP * eta if self.step.eta == "auto" else eta

    def penalty(self, state: Any, n: int) -> float:
        return 1.0 / n if self.lam == "auto" else float(self.lam)


class TwoSamples(Labels):
    """Labels that name one of two samples."""

    def check(self, state: Any, y: Any, classes: Any, n: int, weight: Any) -> Any:
        labels, declared = super().check(state, y, classes, n, weight)
        known = [] if state is None else state["classes"]
        counted = labels if weight is None else labels[weight > 0]
        all_of_them = set(np.unique(counted)) | set(known) | set([] if declared is None else declared[0])
        if len(all_of_them) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"a density ratio has two samples, and y names {len(all_of_them)}"
            )
        return labels, declared


@described(like=DoublyStochasticClassifier)
@dataclass(eq=False, repr=False)
class DensityRatioEstimator(StreamClassifier):
    r"""Logarithm of the ratio of two densities, :math:`f \approx \log(q/p)`, from rows of both.

    .. math:: \min_f E_{z \sim p}[e^{f(z)}] - E_{x \sim q}[f(x)] + \frac\lambda2 \|f\|^2

    by doubly stochastic gradients [1]_, whose minimum for :math:`\lambda = 0` is :math:`\log(q/p)` [2]_. y says where a
    row comes from: the larger label means q, the smaller p. Both samples count alike, however many rows they have. As a
    classifier it predicts under which of the two densities a row is more probable.

    Parameters
    ----------
    lam : float or "auto", default="auto"
        Penalty ``lam/2 ||f||^2``, next to the *mean* of the losses; "auto" means 1/n for the n rows of ``fit``, 6.5e-4
        in a stream.
    step : DoublyStep or "auto", default="auto"
        Step sizes, averaging and preconditioning.
    engine : {"auto", "native", "python"}, default="auto"
        "native" runs the compiled loops, "python" their readable specification; "auto" is "native" where it is
        installed.

    Attributes
    ----------
    classes_ : array
        The label of p and that of q.

    See Also
    --------
    DoublyStochasticClassifier : The same recursion for other losses.

    Notes
    -----
    Ratios above :math:`e^{10}` are not resolved: beyond, the tangent continues the exponential, so that nothing
    overflows. In a stream the unit is a batch, see :class:`DoublyStochasticClassifier`.

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014.
    .. [2] Nguyen, Wainwright, Jordan: Estimating divergence functionals and the likelihood ratio by convex risk
       minimization, IEEE Transactions on Information Theory 56 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import DensityRatioEstimator
    >>> from kernelstream.estimators import DoublySchedule
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (2000, 1)), rng.normal(1, 1, (1000, 1))])
    >>> model = DensityRatioEstimator(schedule=DoublySchedule(block_size=64), random_state=0)
    >>> model = model.fit(X, np.repeat([0, 1], [2000, 1000]))
    >>> x = np.linspace(-1, 2, 7)[:, None]
    >>> bool(np.abs(model.log_ratio(x) - (x[:, 0] - 0.5)).max() < 0.3)  # the logarithm of N(1, 1) / N(0, 1)
    True
    """

    loss = RatioLoss()
    class_weight: Any = field(default="balanced", init=False)
    _named_parts: ClassVar = PARTS
    fit, kernel_ = fit, kernel

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    lam: float | str = "auto"
    step: DoublyStep | str = "auto"
    _: KW_ONLY
    schedule: DoublySchedule | str = "auto"
    standardize: bool | str = "auto"

    def log_ratio(self, X: Any) -> np.ndarray:
        """``log q(x)/p(x)`` of rows X (n, d); (n,). The same as ``decision_function``."""
        return self.decision_function(X)

    def ratio(self, X: Any) -> np.ndarray:
        """``q(x)/p(x)`` of rows X (n, d); (n,): weights that turn means over p into means over q."""
        return np.exp(self.log_ratio(X))

    # ---------------------------------------------------------------- hooks
    _loss_rule = staticmethod(lambda parameters, n_classes: RatioLoss())
    _targets = TwoSamples
    _learns = Ratio

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
