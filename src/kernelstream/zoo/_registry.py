"""Recipes and the way to find them by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..registry.names import did_you_mean, find, listed
from ..registry.names import enter as enter_name

TASKS = ("binary", "multiclass", "regression")
NOVELTY = "novelty"  # rows without a target: what is unlike those before?


@dataclass(frozen=True)
class Recipe:
    """An algorithm of the zoo: its name, where it comes from, the tasks it serves and how it is composed.

    ``otherwise`` names tasks for which its defaults are poor, so that it needs the user's own parameters, and what to
    take instead.
    """

    name: str
    reference: str
    tasks: tuple[str, ...]
    build: Callable[..., Any]
    otherwise: dict[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """First line of the recipe's docstring."""
        return (inspect.getdoc(self.build) or "").split("\n")[0]

    @property
    def parameters(self) -> list[str]:
        """Parameters the recipe takes, besides ``task``."""
        return [name for name in inspect.signature(self.build).parameters if name not in ("task", "common")]


_RECIPES: dict[str, Recipe] = {}


def recipe(
    reference: str, tasks: tuple[str, ...] = TASKS, otherwise: dict[str, str] | None = None, ours: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: a function ``name(task, **params) -> estimator`` becomes an algorithm of the zoo.

    The algorithm of a paper takes rows as they come, unless it is told to scale them; one of ``ours`` has the defaults
    of its estimator.
    """

    def entered(build: Callable[..., Any]) -> Callable[..., Any]:
        if not ours:
            build = _on_rows_as_they_come(build)
        enter_name({name: known.build for name, known in _RECIPES.items()}, "algorithm", build.__name__, build)
        _RECIPES[build.__name__] = Recipe(build.__name__, reference, tasks, build, otherwise or {})
        return build

    return entered


def _on_rows_as_they_come(build: Callable[..., Any]) -> Callable[..., Any]:
    """The same recipe without ``standardize="auto"``, where nothing is said about it."""

    @functools.wraps(build)
    def plain(*args: Any, **given: Any) -> Any:
        made = build(*args, **given)
        if "standardize" in given or getattr(made, "standardize", None) != "auto":
            return made
        if "standardize" in made.get_params(deep=False):
            return made.set_params(standardize=False)
        if made._one_width():  # it scales where the width is left to it: the same rule, by its name
            kernel = made._given.kernel_object
            made.set_params(gamma=kernel.get_params()[kernel.bandwidth])
        return made

    return plain


def enter(
    name: str, reference: str, tasks: tuple[str, ...], summary: str, options: dict[str, Any], make: Callable[..., Any]
) -> Callable[..., Any]:
    """Enter a recipe of a table, ``make(task, **options)``, whose relatives differ from it by a word.

    ``options`` has its parameters and their defaults; whatever else is given goes to ``make`` too.
    """

    def build(task: str, **given: Any) -> Any:
        return make(task, **(options | given))

    kind = inspect.Parameter
    listed_options = [kind(key, kind.POSITIONAL_OR_KEYWORD, default=value) for key, value in options.items()]
    first, last = kind("task", kind.POSITIONAL_OR_KEYWORD), kind("common", kind.VAR_KEYWORD)
    build.__signature__ = inspect.Signature([first, *listed_options, last])  # type: ignore[attr-defined]
    build.__name__, build.__doc__ = name, summary
    return recipe(reference, tasks)(build)


def names(task: str | None = None) -> list[str]:
    """Names of all algorithms, or of those that serve a task."""
    return [name for name in listed(_RECIPES) if task is None or task in _RECIPES[name].tasks]


def get(name: str) -> Recipe:
    """The recipe of a name."""
    return find(_RECIPES, "algorithm", name)


def make(name: str, task: str | None = None, **params: Any) -> Any:
    """An estimator by the name its paper gave it.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    task : {"binary", "multiclass", "regression", "novelty"} or None
        What is to be learned; None is the first task that the algorithm serves, "binary" for most.
    **params
        Parameters of the recipe (``kernel``, ``gamma``, ``eta``, ``n_components``, ``budget``, …) and of the estimator
        (``standardize``, ``engine``, ``random_state``, …).

    Examples
    --------
    >>> from kernelstream import zoo
    >>> zoo.make("nogd", task="regression", budget=50, eta=0.1, gamma=2.0).budget
    50
    """
    found = get(name)
    if task is None:
        task = found.tasks[0]
    if task not in (*TASKS, NOVELTY):
        raise ValueError(f"task must be one of {', '.join((*TASKS, NOVELTY))}, got {task!r}")
    if task in found.otherwise:
        if not set(found.parameters) & set(params):
            raise ValueError(
                f"{name!r} does badly in {task} without a choice of its parameters ({', '.join(found.parameters)}): "
                f"give some, or use {found.otherwise[task]}"
            )
    elif task not in found.tasks:
        raise ValueError(f"{name!r} serves {', '.join(found.tasks)}, not {task}")
    try:
        return found.build(task=task, **params)
    except TypeError:
        known = {*found.parameters, *found.build(task=task).get_params(deep=False)}
        unknown = next((param for param in params if param not in known), None)
        if unknown is None:
            raise
        hint = did_you_mean(unknown, found.parameters)
        raise ValueError(
            f"{name!r} has no parameter {unknown!r}: {hint}it takes {', '.join(found.parameters)}"
        ) from None
