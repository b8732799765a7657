"""The papers' names, each a composition of the library's parts.

>>> from kernelstream import zoo
>>> zoo.make("fogd", task="binary", n_components=200, gamma=0.5)
FeatureClassifier(features=RandomFourier(gamma=0.5, n_components=200))
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .estimators import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor
from .features import Nystroem, for_kernel
from .losses import CrammerSinger, Hinge, Loss, Squared
from .updates import OGD

TASKS = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Recipe:
    """An algorithm of the zoo: its name, where it comes from, the tasks it serves and how it is composed."""

    name: str
    reference: str
    tasks: tuple[str, ...]
    build: Callable[..., Any]

    @property
    def summary(self) -> str:
        """First line of the recipe's docstring."""
        return (inspect.getdoc(self.build) or "").split("\n")[0]

    @property
    def parameters(self) -> list[str]:
        """Parameters the recipe takes, besides ``task``."""
        return [name for name in inspect.signature(self.build).parameters if name not in ("task", "common")]


_RECIPES: dict[str, Recipe] = {}


def recipe(reference: str, tasks: tuple[str, ...] = TASKS) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a function ``name(task, **params) -> estimator`` becomes an algorithm of the zoo."""

    def enter(build: Callable[..., Any]) -> Callable[..., Any]:
        _RECIPES[build.__name__] = Recipe(build.__name__, reference, tasks, build)
        return build

    return enter


def names(task: str | None = None) -> list[str]:
    """Names of all algorithms, or of those that serve a task."""
    return sorted(name for name, found in _RECIPES.items() if task is None or task in found.tasks)


def get(name: str) -> Recipe:
    """The recipe of a name."""
    if name in _RECIPES:
        return _RECIPES[name]
    close = difflib.get_close_matches(name, _RECIPES, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown algorithm {name!r}{hint} Known: {', '.join(names())}")


def make(name: str, task: str = "binary", **params: Any) -> Any:
    """An estimator by the name its paper gave it.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    task : {"binary", "multiclass", "regression"}
        What is to be learned.
    **params
        Parameters of the recipe (``kernel``, ``gamma``, ``eta``, ``n_components``, ``budget``, …) and of the estimator
        (``standardize``, ``engine``, ``random_state``, …).

    Examples
    --------
    >>> make("nogd", task="regression", budget=50, eta=0.1, gamma=2.0).budget
    50
    """
    found = get(name)
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    if task not in found.tasks:
        raise ValueError(f"{name!r} serves {', '.join(found.tasks)}, not {task}")
    try:
        return found.build(task=task, **params)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        unknown = str(error).rsplit("argument ", 1)[-1]
        raise ValueError(f"{name!r} has no parameter {unknown}; it takes {', '.join(found.parameters)}") from None


def gradient_loss(task: str, epsilon: float | None) -> Loss:
    """The loss of the papers' gradient learners: hinge, Crammer-Singer, or squared with a dead zone epsilon."""
    if task == "regression":
        return Squared(epsilon or 0.0)
    if epsilon is not None:
        raise ValueError("epsilon is the dead zone of regression; classification has none")
    return Hinge() if task == "binary" else CrammerSinger()


def _or_loss(loss: Any, task: str, epsilon: float | None) -> Any:
    if loss is None:
        return gradient_loss(task, epsilon)
    if epsilon is not None:
        raise ValueError("give epsilon inside the loss object, or no loss")
    return loss


JMLR = "Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning, JMLR 17 (2016)"


@recipe(f"{JMLR}, algorithm 1")
def fogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    n_components: int = 400,
    eta: float | None = None,
    epsilon: float | None = None,
    loss: Any = None,
    **common: Any,
) -> Any:
    """Online gradient descent on random Fourier features.

    ``n_components`` is the number D of frequencies (2D features, scaled by 1/sqrt(D): the paper's eta is ours divided by D).
    Without ``eta`` the steps are AdaGrad's and need no tuning; with it they are the paper's constant ones.
    """
    features = for_kernel(kernel, n_components=n_components, gamma=gamma)
    loss = _or_loss(loss, task, epsilon)
    update = "auto" if eta is None else OGD(eta)
    if task == "regression":
        return FeatureRegressor(features, loss, update, **{"center": eta is None, **common})
    return FeatureClassifier(features, loss, update, **common)


@recipe(f"{JMLR}, algorithm 2")
def nogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    rank: int | None = None,
    eta: float | None = None,
    epsilon: float | None = None,
    landmarks: Any = "support",
    loss: Any = None,
    **common: Any,
) -> Any:
    """Kernel gradient descent until the budget is full, then on Nyström features of the support set.

    ``landmarks`` other than "support" (uniform, kmeans++, leverage, rpcholesky, or an array) are chosen among the first rows
    instead. ``refresh=ROWS`` lets the support landmarks move. Without ``eta`` no step needs tuning.
    """
    loss = _or_loss(loss, task, epsilon)
    update = "auto" if eta is None else OGD(eta)
    if task == "regression":
        common = {"center": eta is None, **common}
    if isinstance(landmarks, str) and landmarks == "support":
        kind: Any = NystroemRegressor if task == "regression" else NystroemClassifier
        return kind(kernel, gamma, budget, rank, loss, update, **common)
    rank = max(1, round(0.2 * budget)) if rank is None else rank
    kind = FeatureRegressor if task == "regression" else FeatureClassifier
    return kind(Nystroem(kernel, budget, gamma, landmarks, rank), loss, update, **common)
