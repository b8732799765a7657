"""Recipes and the way to find them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..checks import one_of
from ..extras import PAPERS
from ..kernels.parameters import KernelParameters
from ..registry.names import Catalogue, did_you_mean

TASKS = ("binary", "multiclass", "regression")
LABELS = ("binary", "multiclass")
NOVELTY = "novelty"  # rows without a target: what is unlike those before?

# Recipes that the papers only compare with, and the package in the folder papers/ brings.
SOLVERS = ("cd", "pegasos", "rbcd", "sbmd", "sdca")
MARGINS = ("alma", "cw", "ogd_ball", "romma", "scw", "sop")
REVIEWED = ("doubly_relative_novelty", "gp_operator", "metagrad", "opmkl", "spa_novelty")
RIVALS = (
    *MARGINS,
    *REVIEWED,
    "ksdca",
    "llsvm",
    "pros_n_kons",
    "random_binning_rcd",
    *(f"{features}_{solver}" for features in "rn" for solver in SOLVERS),
)

Compose = Callable[..., Any]


@dataclass(frozen=True)
class Recipe:
    """An algorithm of the zoo: a row with its name, its paper, its tasks, its options and how it is composed.

    Parameters
    ----------
    name, reference : str
    tasks : tuple of str
    text : str
        What it is; the first line is the summary.
    options : dict
        Its own parameters and their defaults. Parameters of the estimator can be given as well.
    compose : callable
        ``compose(task, **options)`` gives the estimator.
    otherwise : dict
        Tasks for which its defaults are poor, so that it needs the user's own parameters, and what to use instead.
    ours : bool
        An algorithm of this library, which has the defaults of its estimator. That of a paper takes rows as they come,
        unless it is asked to scale them.
    """

    name: str
    reference: str
    tasks: tuple[str, ...]
    text: str
    options: dict[str, Any]
    compose: Compose
    otherwise: dict[str, str] = field(default_factory=dict)
    ours: bool = False

    @property
    def summary(self) -> str:
        """First line of the text."""
        return self.text.split("\n")[0]

    @property
    def parameters(self) -> list[str]:
        """Names of the options."""
        return list(self.options)

    def build(self, task: str, **given: Any) -> Any:
        """The estimator, with options of the recipe and parameters of the estimator."""
        asked = {name: given.pop(name) for name in self.options if name in given}
        try:
            made = self.compose(task, **self.options | asked)
        except TypeError as error:  # some recipes compute with their options
            shown = ", ".join(f"{name}={value!r}" for name, value in asked.items())
            raise ValueError(f"{self.name!r} cannot use {shown}: {error}") from error
        known = made.get_params(deep=False)
        for name in given:
            if name not in known:
                hint = did_you_mean(name, self.options)
                raise ValueError(f"{self.name!r} has no parameter {name!r}: {hint}it takes {', '.join(self.options)}")
        made.set_params(**given)
        if not self.ours and "standardize" not in given:
            _take_rows_as_they_come(made)
        return made


CATALOGUE = Catalogue("algorithm", Recipe)


def enter(*row: Any, **more: Any) -> None:
    """Enter a row of a table: the fields of a :class:`Recipe`."""
    made = Recipe(*row, **more)
    CATALOGUE.enter(made.name, made)


def recipe(
    reference: str, tasks: tuple[str, ...] = TASKS, otherwise: dict[str, str] | None = None
) -> Callable[[Compose], Compose]:
    """Decorator: a function ``name(task, option=default, ...) -> estimator`` becomes an algorithm of the zoo."""

    def entered(compose: Compose) -> Compose:
        _, *options = inspect.signature(compose).parameters.values()
        defaults = {option.name: option.default for option in options}
        text = inspect.getdoc(compose) or ""
        enter(compose.__name__, reference, tasks, text, defaults, compose, otherwise or {})
        return compose

    return entered


def pair(classifier: Any, regressor: Any, fixed: Callable[[], dict[str, Any]] = dict) -> Compose:
    """How to compose a recipe whose options are parameters of its estimator; ``fixed`` gives some more of them."""

    def compose(task: str, **options: Any) -> Any:
        return (regressor if task == "regression" else classifier)(**options, **fixed())

    return compose


def _take_rows_as_they_come(made: Any) -> None:
    """An estimator without ``standardize="auto"``."""
    if getattr(made, "standardize", None) != "auto":
        return
    if "standardize" in made.get_params(deep=False):
        made.set_params(standardize=False)
    elif isinstance(made.kernel, str) and made.gamma is None:
        given = KernelParameters(made.kernel)
        if given.takes_width:  # it scales where the width is left to it: the same rule, by its name
            made.set_params(gamma=given.kernel_object.get_params()[given.kernel_object.bandwidth])


def names(task: str | None = None) -> list[str]:
    """Names of all algorithms, or of those that serve a task."""
    return [name for name in CATALOGUE.names() if task is None or task in CATALOGUE.parts[name].tasks]


def get(name: str) -> Recipe:
    """The recipe of a name."""
    if name in RIVALS and name not in CATALOGUE.names():
        raise ValueError(f"the algorithm {name!r} comes with the papers' experiments: {PAPERS}")
    return CATALOGUE.find(name)


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
    one_of("task", task, (*TASKS, NOVELTY))
    if task in found.otherwise:
        if not set(found.parameters) & set(params):
            raise ValueError(
                f"{name!r} performs poorly in {task} with its default parameters ({', '.join(found.parameters)}): "
                f"give some, or use {found.otherwise[task]}"
            )
    elif task not in found.tasks:
        raise ValueError(f"{name!r} serves {', '.join(found.tasks)}, not {task}")
    return found.build(task, **params)
