r"""First-order updates: what one row does to a function ``f``.

An update turns the loss of a row into two numbers, ``(decay, tau)``, and the function becomes
``f <- decay * f + tau * k(x, .)``; on explicit features that reads ``w <- decay * w + tau * z``. For a multi-class
model ``tau`` is a vector with one entry per class. *Diagonal* updates (:class:`AdaGrad`) instead return ``(eta, g)``
and move every weight by its own step.

``memory`` is the update's own small array, one row per remembered number and one column per output; it belongs to
the model's state, so the objects here never change.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from ._checks import flag, fraction, positive
from .losses import Loss
from .registry.names import check_own, enter, find, listed
from .state.change import Change

_REGISTRY: dict[str, type[Update]] = {}
_FORMER = {"ada_grad": "adagrad", "norm_ada_grad": "norm_adagrad"}  # names that model files may still carry

TINY = 1e-12  # keeps the square roots of AdaGrad away from 0 / 0
REACH = 10.0  # deviations of the target up to which a residual counts, where steps are automatic
SETTLED = 8  # rows after which the deviation is one to go by


def register(cls: type[Update]) -> type[Update]:
    """Class decorator: make an update known by its ``name``."""
    enter(_REGISTRY, "update", cls.name, cls)
    return cls


def names() -> list[str]:
    """Names of all updates."""
    return listed(_REGISTRY)


def get(spec: str | Update) -> Update:
    """Update from a name (default parameters) or an object.

    Examples
    --------
    >>> get("adagrad")
    AdaGrad()
    """
    if isinstance(spec, Update):
        check_own(_REGISTRY, "update", spec)
        return spec
    if not isinstance(spec, str):
        raise ValueError(f"update must be a name or an Update object, got {spec!r}")
    return find(_REGISTRY, "update", _FORMER.get(spec, spec))()


class Update(BaseEstimator):
    """Base of all updates: immutable parameters, one method ``step``."""

    name: ClassVar[str] = ""
    n_memory: ClassVar[int] = 0  # rows of `memory`
    n_shared: ClassVar[int] = 0  # how many of them, the first, serve all outputs together and use column 0 only
    diagonal: ClassVar[bool] = False  # True: needs explicit features and an array as large as w
    fade: float = 1.0  # of a diagonal update: factor of its sums of squares before each row

    def check(self, loss: Loss) -> None:
        """Raise ValueError for parameters out of range or a loss this update cannot serve."""

    def memory(self, n_outputs: int, n_weights: int = 1) -> np.ndarray:
        """Initial memory, (n_memory, n_outputs); ``n_weights`` is the number of explicit features."""
        return np.zeros((self.n_memory, n_outputs))

    def carry(self, memory: np.ndarray, change: Change) -> np.ndarray:
        """Memory when the outputs change: columns follow their output, new ones start empty."""
        carried = np.where(change.fresh, self.memory(len(change)), memory[:, change.source])
        carried[: self.n_shared, 0] = memory[: self.n_shared, 0]
        return carried

    def step(self, loss: Loss, y: Any, f: Any, k_xx: float, t: int, memory: np.ndarray) -> tuple[Any, Any]:
        """``(decay, tau)`` for a row with target y, score f, ``k(x, x)`` and number t = 1, 2, …"""
        raise NotImplementedError

    def native(self) -> tuple[str, list[float]] | None:
        """Name and parameters of the compiled twin, which has the update's own name; None where there is none."""
        return None


_SCHEDULES = ("constant", "sqrt", "inverse")


@register
class OGD(Update):
    r"""Online gradient descent, ``f <- (1 - eta_t lam) f - eta_t l'(f, y) k(x, .)``.

    Where the derivative of the loss has no bound (squared, squared hinge), no step is longer than ``1/k(x, x)``, the
    one that removes the loss of the row: longer ones would overshoot without end.

    Parameters
    ----------
    eta : float
        Step size.
    schedule : {"constant", "sqrt", "inverse"}
        ``eta_t = eta``, ``eta / sqrt(t)`` or ``1 / (lam t)`` (which needs ``lam > 0``, and eta left
        at 1).
    lam : float
        Strength of the regulariser ``lam/2 ||f||^2``; 0 for none.

    Examples
    --------
    >>> from kernelstream.losses import get as loss
    >>> OGD(eta=0.5).step(loss("hinge"), 1.0, 0.0, 1.0, 1, None)
    (1.0, 0.5)
    """

    name = "ogd"

    def __init__(self, eta: float = 1.0, schedule: str = "constant", lam: float = 0.0):
        self.eta = eta
        self.schedule = schedule
        self.lam = lam

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        if self.schedule not in _SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(_SCHEDULES)}, got {self.schedule!r}")
        if self.schedule == "inverse" and self.lam == 0:
            raise ValueError("schedule='inverse' steps by 1/(lam t): it needs lam > 0")
        if self.schedule == "inverse" and self.eta != 1.0:
            raise ValueError("schedule='inverse' steps by 1/(lam t): leave eta at 1")

    def rate(self, t: int) -> float:
        """The step size eta_t."""
        if self.schedule == "constant":
            return self.eta
        return self.eta / math.sqrt(t) if self.schedule == "sqrt" else 1.0 / (self.lam * t)

    def step(self, loss, y, f, k_xx, t, memory):
        eta = stable_rate(self.rate(t), loss, k_xx)
        return 1.0 - eta * self.lam, -eta * loss.gradient(y, f)

    def native(self):
        return "ogd", [self.eta, float(_SCHEDULES.index(self.schedule)), self.lam]


@register
class Pegasos(Update):
    r"""Pegasos, ``f <- (1 - eta_t lam) f - eta_t l'(f, y) k(x, .)`` with ``eta_t = 1/(lam t)``.

    Where the derivative of the loss has no bound (squared, squared hinge), the first of these steps would overshoot by
    1/lam, and the next ones more. There the step is the implicit one, ``eta_t = 1/(lam t + k(x, x))``, which takes the
    derivative at the function after the step and never overshoots.

    Shalev-Shwartz, Singer, Srebro: Pegasos, primal estimated sub-gradient solver for SVM, ICML 2007; Kulis, Bartlett:
    Implicit online learning, ICML 2010.

    Parameters
    ----------
    lam : float
        Regulariser.
    """

    name = "pegasos"

    def __init__(self, lam: float = 1e-4):
        self.lam = lam

    def check(self, loss: Loss) -> None:
        positive("lam", self.lam)

    def step(self, loss, y, f, k_xx, t, memory):
        if loss.bound is not None:
            return 1.0 - 1.0 / t, -loss.gradient(y, f) / (self.lam * t)
        eta = 1.0 / (self.lam * t + k_xx)
        return 1.0 - eta * self.lam, -eta * loss.gradient(y, f)

    def native(self):
        return "pegasos", [self.lam]


@register
class NORMA(Update):
    r"""NORMA: OGD with decay ``1 - eta lam``; regression learns its tube (Kivinen, Smola, Williamson 2004).

    With the epsilon-insensitive loss the tube starts at the loss's epsilon and adapts:
    ``epsilon += (1 - nu) eta`` outside the tube and ``epsilon -= nu eta`` inside, never below 0.

    Parameters
    ----------
    eta, lam : float
        Step size and regulariser.
    nu : float
        Share of rows that should end up outside the tube.
    """

    name = "norma"
    n_memory = 2  # the tube's width, and whether it has been set

    def __init__(self, eta: float = 0.1, lam: float = 1e-4, nu: float = 0.5):
        self.eta = eta
        self.lam = lam
        self.nu = nu

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        if positive("nu", self.nu) > 1:
            raise ValueError(f"nu must be in (0, 1], got {self.nu!r}")

    def step(self, loss, y, f, k_xx, t, memory):
        eta = stable_rate(self.eta, loss, k_xx)
        decay = 1.0 - eta * self.lam
        if loss.name != "epsilon_insensitive":
            return decay, -eta * loss.gradient(y, f)
        epsilon = memory[0, 0] if memory[1, 0] else loss.epsilon
        outside = abs(f - y) > epsilon
        memory[0, 0] = max(0.0, epsilon + ((1 - self.nu) if outside else -self.nu) * self.eta)
        memory[1, 0] = 1.0
        return decay, math.copysign(self.eta, y - f) if outside else 0.0

    def native(self):
        return "norma", [self.eta, self.lam, self.nu]


class Novelty(Update):
    r"""NORMA's novelty detection: ``f < rho`` adds ``eta k(x, .)`` (Kivinen, Smola, Williamson 2004).

    The threshold learns: ``rho -= (1 - nu) eta`` if f < rho, else ``rho += nu eta``. There is no target and no loss;
    :class:`~kernelstream.BudgetOneClass` uses it, and it is not among :func:`names`.
    """

    name = "novelty"
    n_memory = 1  # rho

    def __init__(self, eta: float = 0.05, lam: float = 0.01, nu: float = 0.1):
        self.eta = eta
        self.lam = lam
        self.nu = nu

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        positive("lam", self.lam, zero=True)
        if self.eta * self.lam >= 1:
            raise ValueError(f"eta * lam must be below 1, or nothing is remembered; got {self.eta!r} * {self.lam!r}")
        if not 0 < positive("nu", self.nu, zero=True) < 1:
            raise ValueError(f"nu must be between 0 and 1, got {self.nu!r}")

    def step(self, loss, y, f, k_xx, t, memory):
        rho = memory[0, 0]
        memory[0, 0] = self._moved(rho, f)
        return 1.0 - self.eta * self.lam, self.eta if f < rho else 0.0

    def _moved(self, rho: float, f: float) -> float:
        return rho - (1 - self.nu) * self.eta if f < rho else rho + self.nu * self.eta

    def thresholds(self, f: np.ndarray, rho: float, weight: np.ndarray | None) -> np.ndarray:
        """rho before each of the rows with scores f (n,), given the first; rows of weight 0 leave it alone."""
        path = np.empty(len(f))
        for i, score in enumerate(f.tolist()):
            path[i] = rho
            if weight is None or weight[i] > 0:
                rho = self._moved(rho, score)
        return path

    def native(self):
        return "novelty", [self.eta, self.lam, self.nu]


@register
class Perceptron(Update):
    r"""Perceptron: on a mistake ``f <- f + eta y k(x, .)`` (Rosenblatt 1958).

    A mistake is a wrong predicted label (f = 0 predicts +1), whatever the loss; multi-class moves the true class up and
    the best wrong class down; regression moves by ``eta sign(y - f)`` wherever the loss is not zero.

    Parameters
    ----------
    eta : float
        Size of a step; it changes nothing but the scale of f in classification.
    ties : bool
        Whether f = 0 is acted on for both labels (y f <= 0, the Forgetron's rule) instead of for y = -1 only.
    """

    name = "perceptron"

    def __init__(self, eta: float = 1.0, ties: bool = False):
        self.eta = eta
        self.ties = ties

    def check(self, loss: Loss) -> None:
        positive("eta", self.eta)
        flag("ties", self.ties)

    def step(self, loss, y, f, k_xx, t, memory):
        if loss.kind == "binary":
            wrong = y * f <= 0 if self.ties else (f >= 0) != (y > 0)
            return 1.0, (self.eta * y if wrong else 0.0)
        if loss.kind == "regression":
            return 1.0, (math.copysign(self.eta, y - f) if loss.value(y, f) > 0 else 0.0)
        tau = np.zeros(len(f))
        best = int(np.argmax(f))
        if best != y:
            tau[best], tau[y] = -self.eta, self.eta
        return 1.0, tau

    def native(self):
        return "perceptron", [self.eta, float(self.ties)]


@register
class PassiveAggressive(Update):
    r"""Smallest change of f that removes the loss on x_t, limited by C (Crammer et al. 2006).

    With ``l`` the loss, ``g`` its gradient and ``n = ||g||^2 k(x, x)``: PA ``tau = l/n`` (C infinite), PA-I ``min(C,
    l/n)``, PA-II ``l / (n + 1/(2C))``; ``f <- f - tau g k(x, .)``. For the Crammer-Singer loss two classes move and
    ``n = 2 k(x, x)``. A row with ``k(x, x) = 0``, on which no step has an effect, gets tau = C, or 0 if that is
    infinite.

    Parameters
    ----------
    C : float
        Aggressiveness; ``inf`` is plain PA.
    variant : {1, 2}
        PA-I or PA-II.
    """

    name = "passive_aggressive"

    def __init__(self, C: float = 1.0, variant: int = 1):
        self.C = C
        self.variant = variant

    def check(self, loss: Loss) -> None:
        positive("C", self.C, infinite=True)
        if self.variant not in (1, 2):
            raise ValueError(f"variant must be 1 (PA-I) or 2 (PA-II), got {self.variant!r}")
        if not loss.piecewise_linear:
            raise ValueError(
                f"PassiveAggressive removes the loss in one step and needs a piecewise linear one "
                f"(hinge, crammer_singer, absolute, epsilon_insensitive, perceptron); {loss.name!r} is not"
            )

    def step(self, loss, y, f, k_xx, t, memory):
        g = loss.gradient(y, f)
        n = float(np.dot(g, g)) * k_xx
        tau = self.C if math.inf > self.C else 0.0
        if n != 0.0:
            value = loss.value(y, f)
            wanted = min(self.C, value / n) if self.variant == 1 else value / (n + 0.5 / self.C)
            if math.isfinite(wanted):  # else a row next to 0, without a limit: out of reach
                tau = wanted
        return 1.0, -tau * g

    def native(self):
        return "passive_aggressive", [self.C, float(self.variant)]


@register
class NormAdaGrad(Update):
    r"""AdaGrad with one step size per function (per class): ``tau = -eta g / sqrt(sum g_s^2 k(x_s, x_s))``.

    The sum runs over the rows so far, this one included (Streeter, McMahan 2010; Ward, Wu, Bottou 2019). Works in the
    kernel expansion as well as on features.

    Parameters
    ----------
    eta : float or "auto"
        Step scale; "auto" is ``8 / sqrt(m)``, m the mean k(x, x), in regression times 0.3 × the running standard
        deviation of the target (``docs/default_update.md`` has the measurements), of which no residual then counts
        for more than ten.
    """

    name = "norm_adagrad"
    n_memory = 5  # what auto_rate remembers; sum of squared gradients
    n_shared = 4
    AUTO: ClassVar[float] = 8.0

    def __init__(self, eta: float | str = "auto"):
        self.eta = eta

    def check(self, loss: Loss) -> None:
        check_auto(self.eta)

    def step(self, loss, y, f, k_xx, t, memory):
        automatic = isinstance(self.eta, str)
        eta: Any = auto_rate(self.AUTO, loss, y, k_xx, memory) if automatic else self.eta
        g = loss.gradient(y, f)
        if automatic:
            g = within_reach(g, loss, memory)
        memory[4] += g * g * k_xx
        size = np.sqrt(memory[4] + TINY)
        return 1.0, -eta * g / (size if loss.kind == "multiclass" else size[0])

    def native(self):
        return "norm_adagrad", [auto_code(self.eta)]


@register
class AdaGrad(Update):
    r"""AdaGrad, a step size per weight: ``G_i <- mu G_i + (g z_i)^2``, ``w_i -= eta g z_i / sqrt(G_i)`` (Duchi, Hazan,
    Singer 2011).

    Diagonal: ``step`` gives ``(eta_t, g)`` and the pass moves every weight by itself.

    Parameters
    ----------
    eta : float or "auto"
        Step scale; "auto" is ``14 / sqrt(P m)`` with P weights per output and m the mean z'z, in regression times 0.3 ×
        the running standard deviation of the target (``docs/default_update.md`` has the measurements), of which no
        residual then counts for more than ten.
    forgetting : float, default=1.0
        mu in (0, 1]. Below 1 the steps do not shrink for ever: a weight follows about 1/(1 - mu) rows.
    """

    name = "adagrad"
    n_memory = 5  # what auto_rate remembers; number of weights
    n_shared = 5
    diagonal = True
    AUTO: ClassVar[float] = 14.0

    def __init__(self, eta: float | str = "auto", forgetting: float = 1.0):
        self.eta = eta
        self.forgetting = forgetting

    @property
    def fade(self) -> float:  # type: ignore[override]
        """Factor of the sums of squares before each row."""
        return float(self.forgetting)

    def check(self, loss: Loss) -> None:
        check_auto(self.eta)
        fraction("forgetting", self.forgetting, one=True)

    def memory(self, n_outputs: int, n_weights: int = 1) -> np.ndarray:
        memory = super().memory(n_outputs)
        memory[4, 0] = n_weights
        return memory

    def step(self, loss, y, f, k_xx, t, memory):
        eta = self.rate(loss, y, k_xx, memory)
        return eta, self.limited(loss.gradient(y, f), loss, memory)

    def limited(self, g: Any, loss: Loss, memory: np.ndarray) -> Any:
        """The derivative of the last row that :meth:`rate` was asked for, as it counts."""
        return within_reach(g, loss, memory) if isinstance(self.eta, str) else g

    def rate(self, loss: Loss, y: Any, k_xx: float, memory: np.ndarray) -> float:
        """eta_t, which does not depend on the score."""
        if not isinstance(self.eta, str):
            return self.eta
        return auto_rate(self.AUTO / math.sqrt(max(1.0, memory[4, 0])), loss, y, k_xx, memory)

    def native(self):
        return "adagrad", [auto_code(self.eta), self.fade]


@register
class CoinBetting(Update):
    r"""Parameter-free coin betting (Orabona, Tommasi 2017): a bet on each gradient, the size set by the wealth won so
    far.

    With ``theta = -sum g_s k(x_s, .)``, ``L`` the largest ``|g| sqrt(k(x, x))`` seen, ``G`` their sum and ``R`` the
    reward ``sum -g_s f_s`` (never below 0): ``f = theta (1 + R/L) / (G + L)``. No step size anywhere. Each class bets
    for itself.
    """

    name = "coin_betting"
    n_memory = 4  # L, G, R and the factor of theta in use

    def step(self, loss, y, f, k_xx, t, memory):
        g = loss.gradient(y, f)
        L, G, R, s = memory
        size = np.abs(g) * math.sqrt(k_xx)
        np.maximum(L, size, out=L)
        G += size
        np.maximum(R - g * f, 0.0, out=R)
        ratio = np.divide(R, L, out=np.zeros_like(L), where=L > 0)
        new = np.divide(1 + ratio, G + L, out=np.ones_like(L), where=L > 0)
        decay = np.divide(new, s, out=np.ones_like(s), where=s > 0)
        tau = -new * g
        s[:] = np.where(L > 0, new, 0.0)
        return (decay, tau) if loss.kind == "multiclass" else (float(decay[0]), float(tau[0]))

    def native(self):
        return "coin_betting", []


@register
class Averaged(Update):
    r"""Predict with the mean of all iterates, ``(1/t) sum_s f_s``, while another update learns (Polyak, Juditsky 1992).

    Parameters
    ----------
    update : Update or str
        The update that learns.
    """

    name = "averaged"

    def __init__(self, update: Update | str = "ogd"):
        self.update = update

    def check(self, loss: Loss) -> None:
        if isinstance(self.update, Averaged):
            raise ValueError("Averaged(Averaged(...)) averages twice: give the inner update itself")
        get(self.update).check(loss)

    def step(self, loss, y, f, k_xx, t, memory):
        return get(self.update).step(loss, y, f, k_xx, t, memory)


def unwrap(update: Update) -> tuple[Update, bool]:
    """The update that learns, and whether its iterates are averaged."""
    return (get(update.update), True) if isinstance(update, Averaged) else (update, False)


def stable_rate(eta: float, loss: Loss, k_xx: float) -> float:
    """The step eta, or where the derivative of the loss has no bound at most ``1/k(x, x)``."""
    return 1.0 / k_xx if loss.bound is None and eta * k_xx > 1.0 else eta


def check_auto(eta: float | str) -> None:
    """Accept "auto" or a positive number."""
    if eta != "auto":
        if isinstance(eta, str):
            raise ValueError(f"eta must be a number > 0 or 'auto', got {eta!r}")
        positive("eta", eta)


def auto_code(eta: float | str) -> float:
    """eta as the C++ twins take it: a negative number means "auto"."""
    return -1.0 if isinstance(eta, str) else float(eta)


def auto_rate(factor: float, loss: Loss, y: Any, k_xx: float, memory: np.ndarray) -> float:
    """``factor / sqrt(mean k(x, x))``, in regression times 0.3 × the deviation of y, both over the rows so far.

    Column 0 of ``memory`` holds the number of rows, mean and sum of squared deviations of y, and mean k(x, x). A
    kernel or a target in other units then gives the same model in those units.
    """
    memory[0, 0] += 1
    memory[3, 0] += (k_xx - memory[3, 0]) / memory[0, 0]
    rate = factor / math.sqrt(memory[3, 0]) if memory[3, 0] > 0 else 0.0
    if loss.kind != "regression":
        return rate
    delta = y - memory[1, 0]
    memory[1, 0] += delta / memory[0, 0]
    memory[2, 0] += delta * (y - memory[1, 0])
    return rate * 0.3 * math.sqrt(memory[2, 0] / memory[0, 0])


def within_reach(g: Any, loss: Loss, memory: np.ndarray) -> Any:
    """The derivative g of a row after :func:`auto_rate`: at most REACH deviations of the target, where it has no bound.

    One row can then not throw the weights, and what AdaGrad remembers of it does not end the learning.
    """
    count, squares = memory[0, 0], memory[2, 0]
    if loss.kind != "regression" or loss.bound is not None or count <= SETTLED:
        return g
    reach = REACH * math.sqrt(squares / count)
    return min(max(g, -reach), reach)
