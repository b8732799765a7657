"""Base of all losses, and the catalogue of their names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..registry.names import Catalogue
from ..registry.parameters import WithParameters
from ..registry.twins import numbers_of
from ._duals import Dual


class Plain:
    """The few numpy functions that this library's formulas use, for Python floats: many times quicker than numpy's."""

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


def names(kind: str | None = None) -> list[str]:
    """Names in the catalogue, sorted; of one ``kind`` (binary, regression, multiclass) if given.

    >>> from kernelstream import losses
    >>> len(losses.names("binary"))
    4
    """
    return [name for name in CATALOGUE.names() if kind in (None, CATALOGUE.parts[name].kind)]


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
    loss = CATALOGUE.get(spec)
    loss.check()
    if task == "multiclass" and loss.kind == "binary":
        return loss.multiclass()
    served = {None: (loss.kind,), "classification": ("binary", "multiclass")}.get(task, (task,))
    if loss.kind not in served:
        raise ValueError(f"loss {loss.name!r} is for {loss.kind} targets, not for {task}")
    return loss


class Loss(WithParameters):
    """Base class of all losses.

    A new loss gives ``name``, ``kind`` and the two formulas ``_value(y, f, xp)`` and ``_gradient(y, f, xp)``. ``xp`` is
    numpy; y and f are arrays of one shape or two numpy floats, so a formula may use any function of numpy that takes
    numbers as well as arrays (``xp.tanh``, ``xp.logaddexp``, ``xp.where``, ``xp.clip``, …) and should decide by
    ``xp.where``, not by ``if``. A class with ``plain = True`` in its own body gets Python floats and ``Plain``
    where there is one number: quicker, for formulas that use no other functions.

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
    smoothness : float or None
        The largest second derivative, of a loss that has ``curvature`` (what Newton steps and coordinate descent need);
        None where the derivative jumps.
    """

    name: str = ""
    kind: str = ""
    bound: float | None = None
    piecewise_linear: bool = False
    smoothness: float | None = None
    plain: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.plain = cls.__dict__.get("plain", False)  # not inherited: a derived class may have other formulas

    def value(self, y: Any, f: Any) -> Any:
        """Loss of the scores ``f`` for the targets ``y``: (n,), (n,) -> (n,), or numbers -> number."""
        return self._of(self._value, y, f)

    def gradient(self, y: Any, f: Any) -> Any:
        """Derivative of the loss in ``f``, in the shape of ``f``; at a kink, the side the class documents."""
        return self._of(self._gradient, y, f)

    def _of(self, formula: Callable[[Any, Any, Any], Any], y: Any, f: Any) -> Any:
        """A formula for two numbers or two arrays."""
        numbers = isinstance(f, float) and isinstance(y, (float, int))
        if numbers and self.plain:
            return formula(float(y), float(f), Plain)
        y, f = (np.float64(y), np.float64(f)) if numbers else arrays(y, f)
        with np.errstate(over="ignore", under="ignore"):
            found = formula(y, f, np)
            return float(found) if numbers else found.astype(f.dtype, copy=False)[()]

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        """Second derivative in ``f``, in the shape of ``f``; at a kink of the derivative, the smaller one."""
        raise NotImplementedError

    def dual(self) -> Dual | None:
        """What dual coordinate ascent does with a row of this loss; None where there is no such step."""
        return None

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
        if self.kind == "multiclass":
            return self
        return CATALOGUE.parts["one_vs_rest"](self)

    def native(self) -> tuple[str, list[float]] | None:
        """Name and parameters of the compiled twin, which has the loss's own name; None unless all are numbers."""
        return numbers_of(self)


CATALOGUE = Catalogue("loss", Loss)
register = CATALOGUE.register


def dual_of(loss: Loss) -> Dual:
    """The dual step of a loss that has one, or a ValueError."""
    found = loss.dual()
    if found is None:
        able = [name for name, cls in CATALOGUE.parts.items() if cls.dual is not Loss.dual]
        raise ValueError(f"dual coordinate ascent serves the losses {', '.join(sorted(able))}, not {loss!r}")
    return found


def arrays(y: Any, f: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as floating arrays in the precision of ``f``."""
    f = np.asarray(f)
    if f.dtype.kind != "f":
        f = f.astype(np.float64)
    return np.asarray(y, dtype=f.dtype), f
