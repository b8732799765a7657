"""Multi-class losses: y in 0..C-1 and scores f (n, C); or one row, y a number and f (C,)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from ..checks import flag
from ._base import Loss, arrays, get, register

__all__ = ["CrammerSinger", "MulticlassLoss", "MulticlassPerceptron", "OneVsRest", "Softmax"]


class MulticlassLoss(Loss):
    """Base of the multi-class losses.

    Their formulas get y (n,) integers and f (n, C), or one row, an integer and f (C,), with at least two classes: a
    single column means a single class, and its loss is 0. ``_value`` gives one number per row, ``_gradient`` an array
    like f.
    """

    kind = "multiclass"

    def value(self, y: Any, f: Any) -> Any:
        """Loss of each row: (n,), (n, C) -> (n,), or number, (C,) -> number."""
        f = arrays(0, f)[1]
        return np.zeros(f.shape[:-1], f.dtype)[()] if f.shape[-1] == 1 else self._of(self._value, y, f)

    def gradient(self, y: Any, f: Any) -> Any:
        """Derivative of each row's loss in its scores, in the shape of ``f``."""
        f = arrays(0, f)[1]
        return np.zeros(f.shape, f.dtype) if f.shape[-1] == 1 else self._of(self._gradient, y, f)

    def _of(self, formula: Callable[[Any, Any, Any], Any], y: Any, f: Any) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return formula(int(y) if f.ndim == 1 else np.asarray(y, dtype=np.intp), f, np)


def _at(y: Any, f: np.ndarray) -> Any:
    """Index of the scores that f holds for the classes y."""
    return y if f.ndim == 1 else (np.arange(len(f)), y)


def _rival(y: Any, f: np.ndarray) -> tuple[Any, Any, Any]:
    """Best wrong class s (lowest index among ties), its score and the score of y, per row."""
    at = _at(y, f)
    others = f.copy()
    others[at] = -np.inf
    s = others.argmax(axis=-1)
    return s, others[_at(s, f)], f[at]


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
class CrammerSinger(MulticlassLoss):
    """max(0, 1 - f_y + max_{s != y} f_s); derivative +1 at s and -1 at y where the loss is positive.

    Among equal rivals s is the lowest index.

    Parameters
    ----------
    closed : bool, default=False
        Take that derivative also where f_y - f_s = 1, the kink.
    """

    name = "crammer_singer"
    piecewise_linear = True
    bound = 1.0

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed

    def check(self) -> None:
        flag("closed", self.closed)

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        _, f_s, f_y = _rival(y, f)
        return np.maximum(0.0, 1.0 - (f_y - f_s))

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        s, f_s, f_y = _rival(y, f)
        margin = f_y - f_s
        return _two_columns(y, s, margin <= 1.0 if self.closed else margin < 1.0, f)


@register
class MulticlassPerceptron(MulticlassLoss):
    """max(0, max_{s != y} f_s - f_y); derivative +1 at s and -1 at y where the predicted class is wrong.

    A tie between y and a lower index predicts the lower index, so it counts as wrong.
    """

    name = "multiclass_perceptron"
    piecewise_linear = True
    bound = 1.0

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        _, f_s, f_y = _rival(y, f)
        return np.maximum(0.0, f_s - f_y)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        s, _, _ = _rival(y, f)
        return _two_columns(y, s, f.argmax(axis=-1) != y, f)


@register
class Softmax(MulticlassLoss):
    """Softmax cross-entropy, log(sum_c exp(f_c)) - f_y; it has probabilities."""

    name = "softmax"
    bound = 1.0

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        top = f.max(axis=-1)
        return np.log(np.exp(f - top[..., None]).sum(axis=-1)) + (top - f[_at(y, f)])

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        g = self.probability(f)
        g[_at(y, f)] -= 1.0
        return g

    def probability(self, f: Any) -> np.ndarray:
        """Class probabilities: (n, C) -> (n, C).

        >>> from kernelstream.losses import Softmax
        >>> Softmax().probability([[0.0, 0.0]]).tolist()
        [[0.5, 0.5]]
        """
        f = arrays(0, f)[1]
        with np.errstate(over="ignore", under="ignore"):
            p = np.exp(f - f.max(axis=-1, keepdims=True))
            return p / p.sum(axis=-1, keepdims=True)


def _inner_has_probability(self: OneVsRest) -> bool:
    return hasattr(self.inner, "probability")


@register
class OneVsRest(MulticlassLoss):
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

    def native(self) -> tuple[str, list[float]] | None:
        """``"one_vs_rest:NAME"`` and the parameters of the binary loss NAME."""
        inner = self.inner.native()
        return None if inner is None else (f"{self.name}:{inner[0]}", inner[1])

    def _signs(self, y: Any, f: Any) -> Any:
        signs = np.full_like(f, -1.0)
        signs[_at(y, f)] = 1.0
        return signs

    def _value(self, y: Any, f: Any, xp: Any) -> Any:
        return self.inner.value(self._signs(y, f), f).sum(axis=-1)

    def _gradient(self, y: Any, f: Any, xp: Any) -> Any:
        return self.inner.gradient(self._signs(y, f), f)

    @available_if(_inner_has_probability)
    def probability(self, f: Any) -> np.ndarray:
        """The binary probabilities of the columns, normalised: (n, C) -> (n, C)."""
        f = arrays(0, f)[1]
        if self.inner.name == "logistic":
            # log sigmoid(f), normalised in log space: all columns may be so negative that every sigmoid is 0
            with np.errstate(under="ignore"):
                return Softmax().probability(-np.logaddexp(0.0, -f))
        p = self.inner.probability(f)
        total = p.sum(axis=-1, keepdims=True)
        return np.where(total > 0, p, 1.0) / np.where(total > 0, total, f.shape[-1])
