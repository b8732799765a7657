"""Options of algorithms, made from the registry: whatever a recipe of the zoo takes, the command line takes."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Sequence
from typing import Any

from ._base import UsageError
from ._values import pair, parameter

DEFAULT = "auto"
DEFAULT_NOVELTY = "norma_novelty"
# Help for parameters that only recipes have, or that no docstring describes.
WORDS = {
    "C": "bound of a step, or of a coefficient: larger learns more of a row",
    "alpha": "loss from which on a row joins in any case, or the ridge of a projection",
    "batch_size": "rows of a step",
    "beta": "the larger, the fewer rows join, or directions are kept",
    "block_size": "features that a step adds",
    "budget": "rows that are kept, for each kernel",
    "class_weight": "factors of the loss by class, or 'balanced'",
    "discount": "factor of a learner's weight for a mistake",
    "engine": "what does the work: auto, native, python or torch",
    "epsilon": "errors up to this one cost nothing, for losses that have such a zone",
    "eta": "step size; without it steps tune themselves where the algorithm can",
    "eta_g": "step of the kernel's parameters; 0 leaves it as it is",
    "forecaster": "awv (Azoury, Warmuth, Vovk) or ridge",
    "forgetting": "factor by which old rows fade, in (0, 1]",
    "gamma": "bandwidth of a kernel given by name: a number, scale or median",
    "gamma_max": "bound of a coefficient, in steps",
    "intercept": "add a constant feature",
    "kernel": "a name, or one with parameters such as polynomial(degree=3)",
    "kernels": "kernels that compete",
    "lam": "strength of the penalty",
    "landmarks": "rows that features compare with: support, uniform, kmeans++, leverage, rpcholesky",
    "loss": "what an error costs, by name",
    "max_blocks": "blocks of features that are kept; none lets the model grow",
    "n_centres": "components of a learned mixture",
    "n_components": "random features, for each kernel",
    "n_grids": "grids of cells",
    "passes": "how often to go through the rows, where all of them are there",
    "random_state": "where random numbers come from",
    "rank": "directions of the landmarks, or of a learned metric, that are used",
    "share": "part of all weight that is spread evenly after every row",
    "standardize": "scale every column by its running mean and deviation",
}
SEED = 0  # two runs of the same command give the same model


def add_algorithm(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Add ``--algorithm`` and the options of the algorithm that ``argv`` names."""
    from .. import zoo

    name = _named(argv)
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--algorithm", "-a", default=name, metavar="NAME",
        help=f"one of 'kernelstream list algorithms' ({DEFAULT}; for novelties {DEFAULT_NOVELTY})",
    )  # fmt: skip
    group.add_argument(
        "--task", choices=("auto", *zoo.TASKS, zoo.NOVELTY), default="auto",
        help="what is learned (default: by the first rows); novelty needs no target",
    )  # fmt: skip
    group.add_argument("--set", type=pair, action="append", default=[], metavar="NAME=VALUE", dest="assignments",
                       help="any other parameter, nested ones as features__sampling=orthogonal")  # fmt: skip
    try:
        recipe = zoo.get(name)
    except ValueError as error:
        parser.error(str(error))
    group = parser.add_argument_group(f"options of {name}", f"{recipe.summary} {recipe.reference}.")
    said = words_about(recipe)
    for option, default in options_of(recipe).items():
        flag = f"--{option.replace('_', '-')}"
        shown = f"({SEED if option == 'random_state' else default})"
        shown = f"{said[option]} {shown}".replace("%", "%%") if option in said else shown
        try:
            if isinstance(default, bool) or option == "standardize":
                group.add_argument(flag, action=argparse.BooleanOptionalAction, dest=f"param_{option}", help=shown)
            else:
                kind: Any = parameter
                group.add_argument(flag, type=kind, dest=f"param_{option}", metavar="VALUE", help=shown)
        except argparse.ArgumentError:  # the command uses the name for something else; --set still works
            continue


def _named(argv: Sequence[str]) -> str:
    """The algorithm on a command line that has not been parsed yet."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=True)
    early.add_argument("--algorithm", "-a")
    early.add_argument("--task")
    known, _ = early.parse_known_args([word for word in argv if word not in ("-h", "--help")])
    return known.algorithm or (DEFAULT_NOVELTY if known.task == "novelty" else DEFAULT)


def options_of(recipe: Any) -> dict[str, Any]:
    """Parameters and defaults of a recipe, then those of its estimator that it hands through."""
    signature = inspect.signature(recipe.build).parameters
    options = {name: signature[name].default for name in recipe.parameters}
    if "common" not in signature:
        return options
    made = recipe.build(task=recipe.tasks[0])
    for name, default in made.get_params(deep=False).items():
        if name in options or not (default is None or isinstance(default, (bool, int, float, str))):
            continue
        try:
            recipe.build(task=recipe.tasks[0], **{name: default})
        except (TypeError, ValueError):  # the recipe sets it by itself
            continue
        options[name] = default
    return options


_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def words_about(recipe: Any) -> dict[str, str]:
    """The first sentence of the documentation about each parameter: of the estimator, else of one of its parts."""
    made = recipe.build(task=recipe.tasks[0])
    homes = [made, *(part for part in made.get_params().values() if hasattr(part, "get_params"))]
    found = {name: WORDS[name] for name in ("engine", "loss", "passes", "random_state")}
    for home in homes:
        text = inspect.cleandoc(type(home).__doc__ or "") + "\n"
        for names, body in _ENTRY.findall(text):
            sentence = re.split(r"(?<=[.;:])\s", " ".join(body.split()), maxsplit=1)[0].rstrip(".;:")
            for name in names.split(", "):
                if sentence:
                    found.setdefault(name, re.sub(r":\w+:`~?\.?([^`]+)`|`+", r"\1", sentence[0].lower() + sentence[1:]))
    return WORDS | found


def finds_novelties(args: argparse.Namespace, notes: dict[str, Any]) -> bool:
    """Whether the rows need no target: by the task given, that of the model to go on with, or the algorithm."""
    from .. import zoo

    if args.task != "auto" or "task" in notes:
        return zoo.NOVELTY in (args.task, notes.get("task"))
    return zoo.get(args.algorithm).tasks == (zoo.NOVELTY,)


def build(args: argparse.Namespace, task: str) -> Any:
    """The estimator of the command line."""
    from .. import zoo

    params = {
        key.removeprefix("param_"): given
        for key, given in vars(args).items()
        if key.startswith("param_") and given is not None
    }
    if "random_state" in options_of(zoo.get(args.algorithm)):
        params.setdefault("random_state", SEED)
    try:
        est = zoo.make(args.algorithm, task, **params)
        for name, text in args.assignments:
            est.set_params(**{name: parameter(text)})
        check = getattr(est, "_check_parameters", None)
        if check is not None:
            check()
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{args.algorithm}: {error}") from None
    return est
