"""Strategies whose support vectors never leave: all rows join, or a random share of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import flag, positive
from ..updates import CoinBetting, Pegasos
from ._base import Budget, register


class Growing(Budget):
    """Base: ``admit`` says with which coefficient a row joins; once a budget is full nothing changes any more."""

    grows = True
    warn_at: int | None = 20_000  # size of the support set at which a warning is given

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        if self.warn_at is not None:
            positive("warn_at", self.warn_at)

    def admit(self, tau: np.ndarray, value: float, gradient: np.ndarray, k_xx: float, u: float) -> np.ndarray:
        """Coefficients (C,) of a row the update gives ``tau`` (C,), all zero when it stays out.

        ``value`` and ``gradient`` (C,) are those of its loss, ``u`` its uniform random number.
        """
        raise NotImplementedError


@register
class Stop(Growing):
    """Every row that acts joins, until the budget is full; then the function stays as it is (Stoptron).

    Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009). With ``budget=None`` the support set
    grows as long as there are rows that act.

    Parameters
    ----------
    warn_at : int or None
        Size of the support set at which a warning is given, once.
    """

    name = "stop"

    def __init__(self, warn_at: int | None = 20_000):
        self.warn_at = warn_at

    def admit(self, tau: Any, value: Any, gradient: Any, k_xx: Any, u: Any) -> Any:
        return tau


@register
class OSKL(Growing):
    """Online sparse kernel learning: a row joins with probability ``|l'|/G``, and its coefficient grows by ``G/|l'|``.

    Zhang, Yi, Jin, Lin, He: Online kernel learning with a near optimal sparsity bound, ICML 2013. With the update
    OGD(eta) the coefficient is ``-eta G sign(l')``.

    Parameters
    ----------
    G : float
        Bound of ``|l'|``, or more: 1/G of the rows that act join.
    average : bool
        Predict with the mean of the functions so far, as :class:`SPA` does.
    """

    name = "oskl"
    random = True

    def __init__(self, G: float = 20.0, average: bool = False):
        self.G = G
        self.average = average

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        positive("G", self.G)
        flag("average", self.average)
        if loss.bound is None:
            raise ValueError(f"OSKL needs a loss with a bounded derivative (G >= max |l'|); {loss.name!r} has none")
        if loss.bound > self.G:
            raise ValueError(
                f"G must be at least the bound {loss.bound} of the derivative of {loss.name!r}, got {self.G}"
            )
        if self.average:
            refuse_decay(self, update)

    def admit(self, tau: Any, value: Any, gradient: Any, k_xx: Any, u: Any) -> Any:
        size = float(np.abs(gradient).max())
        return tau * (self.G / size) if u * self.G < size else np.zeros_like(tau)

    def native(self) -> Any:
        return self.name, [self.G]


@register
class SPA(Growing):
    r"""Sparse passive aggressive learning: the larger the loss l, the likelier a row joins.

    ``rho = min(alpha, l)/beta`` is the probability, ``tau = min(eta/rho, l/k(x, x))`` the coefficient, eta the size of
    the update's step. At most alpha/beta of the rows join, in expectation (algorithm 7 of Lu's thesis; Lu, Zhao, Hoi:
    Online sparse passive aggressive learning with kernels, SDM 2016).

    Parameters
    ----------
    alpha, beta : float
        ``0 < alpha <= beta``.
    average : bool
        Predict with the mean ``(1/T) sum_{t <= T} f_t`` of the functions held before each of the T rows so far.
        Coefficients never change, so that of a vector that joined at row t is ``alpha_i (T - t)/T``.
    """

    name = "spa"
    random = True

    def __init__(self, alpha: float = 1.0, beta: float = 20.0, average: bool = True):
        self.alpha = alpha
        self.beta = beta
        self.average = average

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        positive("alpha", self.alpha)
        positive("beta", self.beta)
        flag("average", self.average)
        if self.alpha > self.beta:
            raise ValueError(f"SPA needs alpha <= beta, got alpha={self.alpha} and beta={self.beta}")
        refuse_decay(self, update)

    def admit(self, tau: Any, value: Any, gradient: Any, k_xx: Any, u: Any) -> Any:
        rho = min(self.alpha, value) / self.beta
        if u >= rho:
            return np.zeros_like(tau)
        eta = float(np.abs(tau).max())
        direction = tau / eta
        n = float(direction @ direction) * k_xx
        return direction * (min(eta / rho, value / n) if n > 0.0 else eta / rho)

    def native(self) -> Any:
        return self.name, [self.alpha, self.beta]


def refuse_decay(strategy: Growing, update: Any) -> None:
    """The mean of the functions is known from the rows at which vectors joined only if coefficients stay."""
    if isinstance(update, (Pegasos, CoinBetting)) or getattr(update, "lam", 0.0) != 0.0:
        raise ValueError(
            f"{type(strategy).__name__} never changes a coefficient; {type(update).__name__} shrinks them: use OGD "
            "without lam, or another update without decay"
        )
