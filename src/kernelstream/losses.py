"""Losses ``l(y, f)`` of a score ``f`` and their derivatives in ``f``.

Every loss is a small immutable parameter holder. ``value`` and ``gradient`` are elementwise and take numbers or arrays;
a formula is written once against a tiny namespace ``xp`` (numpy for arrays, plain Python for numbers), because the
python engine asks for one number per row and numpy would spend more time on its own bookkeeping than on the formula.

Conventions, for all learners: a score 0 predicts +1, a multi-class tie predicts the lowest index.

>>> from kernelstream import losses
>>> losses.get("hinge").value(1, 0.25)
0.75
>>> losses.get("hinge").gradient([1, -1, 1], [0.25, 0.25, 1.0]).tolist()
[-1.0, 1.0, 0.0]
"""

from __future__ import annotations

import difflib
import math
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

__all__ = [
    "Absolute",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassPerceptron",
    "OneVsRest",
    "Perceptron",
    "Quantile",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "get",
    "names",
    "register",
]

_REGISTRY: dict[str, type[Loss]] = {}
_T = TypeVar("_T", bound="type[Loss]")


class _Plain:
    """The few numpy functions the formulas use, for Python floats."""

    maximum = max
    minimum = min
    abs = abs
    exp = math.exp
    log1p = math.log1p

    @staticmethod
    def where(condition: bool, a: float, b: float) -> float:
        return a if condition else b

    @staticmethod
    def sign(r: float) -> float:
        return 1.0 if r > 0.0 else -1.0 if r < 0.0 else 0.0


def register(cls: _T) -> _T:
    """Class decorator that adds a loss to the catalogue under ``cls.name``."""
    _REGISTRY[cls.name] = cls
    return cls


def names(kind: str | None = None) -> list[str]:
    """Names in the catalogue, sorted; of one ``kind`` (binary, regression, multiclass) if given.

    >>> from kernelstream import losses
    >>> len(losses.names("binary"))
    4
    """
    return sorted(name for name, cls in _REGISTRY.items() if kind in (None, cls.kind))


def get(spec: str | Loss, task: str | None = None) -> Loss:
    """Turn a name or an object into a loss with valid parameters.

    Parameters
    ----------
    spec : str or Loss
        A name of the catalogue (default parameters) or a loss object.
    task : {"binary", "regression", "multiclass", "classification"} or None
        What the loss must serve. For "multiclass" a binary loss is replaced by its multi-class counterpart;
        "classification" takes a binary or a multi-class loss as it is.

    Returns
    -------
    Loss

    Examples
    --------
    >>> from kernelstream import losses
    >>> losses.get("hinge", task="multiclass")
    CrammerSinger()
    >>> losses.get("huber").value(0.0, 3.0)
    2.5
    """
    if isinstance(spec, str):
        if spec not in _REGISTRY:
            close = difflib.get_close_matches(spec.lower(), _REGISTRY, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(f"unknown loss {spec!r}: {hint}known losses are {', '.join(names())}")
        loss = _REGISTRY[spec]()
    elif isinstance(spec, Loss):
        loss = spec
    else:
        raise ValueError(f"a loss is a name or a Loss object, not {spec!r}")
    loss.check()
    if task == "multiclass" and loss.kind == "binary":
        return loss.multiclass()
    served = {None: (loss.kind,), "classification": ("binary", "multiclass")}.get(task, (task,))
    if loss.kind not in served:
        raise ValueError(f"loss {loss.name!r} is for {loss.kind} targets, not for {task}")
    return loss


class Loss(BaseEstimator):
    """Base class of all losses.

    A new loss gives ``name``, ``kind`` and the two formulas ``_value(y, f, xp)`` and ``_gradient(y, f, xp)``.

    Attributes
    ----------
    name : str
        Key in the catalogue.
    kind : {"binary", "regression", "multiclass"}
        Binary targets are -1 or +1, multi-class targets are column indices 0..C-1.
    bound : float or None
        The largest absolute value an entry of the gradient can take; None if there is none.
    piecewise_linear : bool
        Whether one step along the gradient can remove the loss exactly (what passive-aggressive updates need).
    """

    name: str = ""
    kind: str = ""
    bound: float | None = None
    piecewise_linear: bool = False

    def value(self, y: Any, f: Any) -> Any:
        """Loss of the scores ``f`` for the targets ``y``: (n,), (n,) -> (n,), or numbers -> number."""
        if isinstance(f, float) and isinstance(y, (float, int)):
            return self._value(float(y), float(f), _Plain)
        y, f = _arrays(y, f)
        with np.errstate(over="ignore", under="ignore"):
            return self._value(y, f, np).astype(f.dtype, copy=False)[()]

    def gradient(self, y: Any, f: Any) -> Any:
        """Derivative of the loss in ``f``, in the shape of ``f``; at a kink, the side the class documents."""
        if isinstance(f, float) and isinstance(y, (float, int)):
            return self._gradient(float(y), float(f), _Plain)
        y, f = _arrays(y, f)
        with np.errstate(over="ignore", under="ignore"):
            return self._gradient(y, f, np).astype(f.dtype, copy=False)[()]

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        raise NotImplementedError

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        raise NotImplementedError

    def check(self) -> None:
        """Raise a ValueError if a parameter is out of its range."""

    def multiclass(self) -> Loss:
        """The multi-class counterpart: one-vs-rest, unless a binary loss has a better one."""
        if self.kind == "regression":
            raise ValueError(f"loss {self.name!r} is for regression targets and has no multi-class counterpart")
        return self if self.kind == "multiclass" else OneVsRest(self)

    def native(self) -> tuple[str, list[float]]:
        """Name and numeric parameters (sorted by their names) of the compiled twin."""
        return self.name, [float(p) for p in self.get_params(deep=False).values()]

    def _require(self, parameter: str, ok: bool, must: str) -> None:
        if not ok:
            raise ValueError(f"{type(self).__name__}: {parameter} must be {must}, got {getattr(self, parameter)!r}")


def _arrays(y: Any, f: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as floating arrays in the precision of ``f``."""
    f = np.asarray(f)
    if f.dtype.kind != "f":
        f = f.astype(np.float64)
    return np.asarray(y, dtype=f.dtype), f


# --- binary: y in {-1, +1} --------------------------------------------------------------------------------------------


@register
class Hinge(Loss):
    """max(0, 1 - y f); derivative 0 where y f >= 1."""

    name = "hinge"
    piecewise_linear = True
    kind = "binary"
    bound = 1.0

    def _value(self, y, f, xp):
        return xp.maximum(0.0, 1.0 - y * f)

    def _gradient(self, y, f, xp):
        return xp.where(y * f < 1.0, -y, 0.0)

    def multiclass(self) -> Loss:
        """The Crammer-Singer hinge."""
        return CrammerSinger()


@register
class SquaredHinge(Loss):
    """max(0, 1 - y f)² / 2: the hinge without its kink."""

    name = "squared_hinge"
    kind = "binary"

    def _value(self, y, f, xp):
        gap = xp.maximum(0.0, 1.0 - y * f)
        return 0.5 * gap * gap

    def _gradient(self, y, f, xp):
        return -y * xp.maximum(0.0, 1.0 - y * f)


@register
class Logistic(Loss):
    """log(1 + exp(-y f)), exact for large scores of either sign."""

    name = "logistic"
    kind = "binary"
    bound = 1.0

    def _value(self, y, f, xp):
        margin = y * f
        return xp.maximum(0.0, -margin) + xp.log1p(xp.exp(-xp.abs(margin)))

    def _gradient(self, y, f, xp):
        return -y * _sigmoid(-y * f, xp)

    def probability(self, f: Any) -> Any:
        """P(y = +1) for the scores ``f``.

        >>> from kernelstream.losses import Logistic
        >>> Logistic().probability(0.0)
        0.5
        """
        if isinstance(f, float):
            return _sigmoid(float(f), _Plain)
        f = _arrays(0, f)[1]
        with np.errstate(under="ignore"):
            return _sigmoid(f, np)[()]

    def multiclass(self) -> Loss:
        """Softmax cross-entropy."""
        return Softmax()


def _sigmoid(f: Any, xp: Any) -> Any:
    e = xp.exp(-xp.abs(f))  # never overflows
    return xp.where(f >= 0.0, 1.0, e) / (1.0 + e)


@register
class Perceptron(Loss):
    """max(0, -y f); derivative -y where the predicted label is wrong, so at f = 0 only for y = -1."""

    name = "perceptron"
    piecewise_linear = True
    kind = "binary"
    bound = 1.0

    def _value(self, y, f, xp):
        return xp.maximum(0.0, -y * f)

    def _gradient(self, y, f, xp):
        return xp.where((f >= 0.0) != (y > 0.0), -y, 0.0)

    def multiclass(self) -> Loss:
        """The multi-class perceptron."""
        return MulticlassPerceptron()


# --- regression: r = f - y --------------------------------------------------------------------------------------------


@register
class Squared(Loss):
    """max(0, (f - y)² - epsilon²) / 2: half the squared error, flat where it is within epsilon.

    The derivative is ``f - y`` where ``|f - y| > epsilon`` and 0 elsewhere; the papers' regression learners act on
    exactly these rows.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half width of the dead zone.
    """

    name = "squared"
    kind = "regression"

    def __init__(self, epsilon: float = 0.0) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        self._require("epsilon", self.epsilon >= 0, "at least 0")

    def _value(self, y, f, xp):
        r = f - y
        return xp.maximum(0.0, 0.5 * (r * r - self.epsilon * self.epsilon))

    def _gradient(self, y, f, xp):
        r = f - y
        return xp.where(xp.abs(r) > self.epsilon, r, 0.0)


@register
class Absolute(Loss):
    """|f - y|; derivative 0 where f = y."""

    name = "absolute"
    piecewise_linear = True
    kind = "regression"
    bound = 1.0

    def _value(self, y, f, xp):
        return xp.abs(f - y)

    def _gradient(self, y, f, xp):
        return xp.sign(f - y)


@register
class EpsilonInsensitive(Loss):
    """max(0, |f - y| - epsilon); derivative 0 where \\|f - y\\| <= epsilon.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube.
    """

    name = "epsilon_insensitive"
    piecewise_linear = True
    kind = "regression"
    bound = 1.0

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        self._require("epsilon", self.epsilon >= 0, "at least 0")

    def _value(self, y, f, xp):
        return xp.maximum(0.0, xp.abs(f - y) - self.epsilon)

    def _gradient(self, y, f, xp):
        r = f - y
        return xp.where(xp.abs(r) > self.epsilon, xp.sign(r), 0.0)


@register
class Huber(Loss):
    """(f - y)²/2 up to delta, then straight: delta (|f - y| - delta/2).

    Parameters
    ----------
    delta : float, default=1.0
        Where the parabola meets the lines; also the bound of the derivative.
    """

    name = "huber"
    kind = "regression"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def check(self) -> None:
        self._require("delta", self.delta > 0, "positive")

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The largest absolute derivative, ``delta``."""
        return self.delta

    def _value(self, y, f, xp):
        r = xp.abs(f - y)
        near = xp.minimum(r, self.delta)
        return 0.5 * near * near + self.delta * (r - near)

    def _gradient(self, y, f, xp):
        return xp.maximum(-self.delta, xp.minimum(self.delta, f - y))


@register
class Quantile(Loss):
    """Pinball loss, whose minimiser is the tau-quantile; derivative 1 - tau where f >= y, else -tau.

    Parameters
    ----------
    tau : float, default=0.5
        The quantile, strictly between 0 and 1.
    """

    name = "quantile"
    kind = "regression"

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = tau

    def check(self) -> None:
        self._require("tau", 0 < self.tau < 1, "strictly between 0 and 1")

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The largest absolute derivative, ``max(tau, 1 - tau)``."""
        return max(self.tau, 1.0 - self.tau)

    def _value(self, y, f, xp):
        r = f - y
        return xp.maximum((1.0 - self.tau) * r, -self.tau * r)

    def _gradient(self, y, f, xp):
        return xp.where(f >= y, 1.0 - self.tau, -self.tau)


# --- multi-class: y in {0..C-1}, f (n, C); or one row, y a number and f (C,) -----------------------------------------


class _Multiclass(Loss):
    """Shapes of the multi-class losses; a single column means a single class, and its loss is 0."""

    kind = "multiclass"
    bound = 1.0

    def value(self, y: Any, f: Any) -> Any:
        """Loss of each row: (n,), (n, C) -> (n,), or number, (C,) -> number."""
        y, f = _rows(y, f)
        if f.shape[-1] == 1:
            return np.zeros(f.shape[:-1], f.dtype)[()]
        with np.errstate(over="ignore", under="ignore"):
            return self._value(y, f, np)

    def gradient(self, y: Any, f: Any) -> Any:
        """Derivative of each row's loss in its scores, in the shape of ``f``."""
        y, f = _rows(y, f)
        if f.shape[-1] == 1:
            return np.zeros(f.shape, f.dtype)
        with np.errstate(over="ignore", under="ignore"):
            return self._gradient(y, f, np)


def _rows(y: Any, f: Any) -> tuple[Any, np.ndarray]:
    """Integer codes and floating scores."""
    f = np.asarray(f)
    if f.dtype.kind != "f":
        f = f.astype(np.float64)
    return (int(y) if f.ndim == 1 else np.asarray(y, dtype=np.intp)), f


def _rival(y: Any, f: np.ndarray) -> tuple[Any, Any, Any]:
    """Best wrong class s (lowest index among ties), its score and the score of y, per row."""
    at = y if f.ndim == 1 else (np.arange(len(f)), y)
    others = f.copy()
    others[at] = -np.inf
    s = others.argmax(axis=-1)
    return s, others[s if f.ndim == 1 else (at[0], s)], f[at]


def _two_columns(y: Any, s: Any, act: Any, f: np.ndarray) -> np.ndarray:
    """+1 at s and -1 at y in the rows that act, 0 elsewhere."""
    g = np.zeros_like(f)
    if f.ndim == 1:
        if act:
            g[s], g[y] = 1.0, -1.0
    else:
        rows = np.flatnonzero(act)
        g[rows, s[rows]], g[rows, y[rows]] = 1.0, -1.0
    return g


@register
class CrammerSinger(_Multiclass):
    """max(0, 1 - f_y + max_{s != y} f_s); derivative +1 at s and -1 at y where the loss is positive.

    Among equal rivals s is the lowest index.
    """

    name = "crammer_singer"
    piecewise_linear = True

    def _value(self, y, f, xp):
        _, f_s, f_y = _rival(y, f)
        return np.maximum(0.0, 1.0 - (f_y - f_s))

    def _gradient(self, y, f, xp):
        s, f_s, f_y = _rival(y, f)
        return _two_columns(y, s, f_y - f_s < 1.0, f)


@register
class MulticlassPerceptron(_Multiclass):
    """max(0, max_{s != y} f_s - f_y); derivative +1 at s and -1 at y where the predicted class is wrong.

    A tie between y and a lower index predicts the lower index, so it counts as wrong.
    """

    name = "multiclass_perceptron"
    piecewise_linear = True

    def _value(self, y, f, xp):
        _, f_s, f_y = _rival(y, f)
        return np.maximum(0.0, f_s - f_y)

    def _gradient(self, y, f, xp):
        s, _, _ = _rival(y, f)
        return _two_columns(y, s, f.argmax(axis=-1) != y, f)


@register
class Softmax(_Multiclass):
    """Softmax cross-entropy, log(sum_c exp(f_c)) - f_y; it has probabilities."""

    name = "softmax"

    def _value(self, y, f, xp):
        f_y = f[y] if f.ndim == 1 else f[np.arange(len(f)), y]
        top = f.max(axis=-1)
        return np.log(np.exp(f - top[..., None]).sum(axis=-1)) + (top - f_y)

    def _gradient(self, y, f, xp):
        g = self.probability(f)
        g[y if f.ndim == 1 else (np.arange(len(f)), y)] -= 1.0
        return g

    def probability(self, f: Any) -> np.ndarray:
        """Class probabilities: (n, C) -> (n, C).

        >>> from kernelstream.losses import Softmax
        >>> Softmax().probability([[0.0, 0.0]]).tolist()
        [[0.5, 0.5]]
        """
        f = _arrays(0, f)[1]
        with np.errstate(over="ignore", under="ignore"):
            p = np.exp(f - f.max(axis=-1, keepdims=True))
            return p / p.sum(axis=-1, keepdims=True)


def _inner_has_probability(self: OneVsRest) -> bool:
    return hasattr(self.inner, "probability")


@register
class OneVsRest(_Multiclass):
    """Sum over the classes of a binary loss with target +1 in column y and -1 in the others.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        A binary loss. If it has probabilities, so has this one: its own, normalised to sum 1.

    Examples
    --------
    >>> from kernelstream.losses import OneVsRest
    >>> OneVsRest("squared_hinge").value([0], [[0.5, -1.0, 0.0]]).tolist()
    [0.625]
    """

    name = "one_vs_rest"

    def __init__(self, loss: str | Loss = "hinge") -> None:
        self.loss = loss

    @property
    def inner(self) -> Loss:
        """The binary loss as an object."""
        return self.loss if isinstance(self.loss, Loss) else get(self.loss)

    @property
    def bound(self) -> float | None:  # type: ignore[override]
        """That of the binary loss."""
        return self.inner.bound

    def check(self) -> None:
        get(self.loss, task="binary")

    def native(self) -> tuple[str, list[float]]:
        """``"one_vs_rest:NAME"`` and the parameters of the binary loss NAME."""
        name, parameters = self.inner.native()
        return f"{self.name}:{name}", parameters

    def _signs(self, y, f):
        signs = np.full_like(f, -1.0)
        signs[y if f.ndim == 1 else (np.arange(len(f)), y)] = 1.0
        return signs

    def _value(self, y, f, xp):
        return self.inner.value(self._signs(y, f), f).sum(axis=-1)

    def _gradient(self, y, f, xp):
        return self.inner.gradient(self._signs(y, f), f)

    @available_if(_inner_has_probability)
    def probability(self, f: Any) -> np.ndarray:
        """The binary probabilities of the columns, normalised: (n, C) -> (n, C)."""
        f = _arrays(0, f)[1]
        if isinstance(self.inner, Logistic):
            # log sigmoid(f), normalised in log space: all columns may be so negative that every sigmoid is 0
            with np.errstate(under="ignore"):
                return Softmax().probability(-np.logaddexp(0.0, -f))
        p = self.inner.probability(f)  # type: ignore[attr-defined]
        total = p.sum(axis=-1, keepdims=True)
        return np.where(total > 0, p, 1.0) / np.where(total > 0, total, f.shape[-1])
