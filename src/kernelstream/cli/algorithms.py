"""Options of algorithms, made from the registry: whatever a recipe of the zoo takes, the command line takes."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence
from typing import Any

from ..registry.names import did_you_mean
from .base import UsageError
from .values import pair, parameter

DEFAULT = "auto"
DEFAULT_NOVELTY = "kernel_novelty"
# What each option does, in whichever recipe.
OPTION_WORDS = {
    "C": "bound of a step or a coefficient: larger values learn more from a row",
    "G": "bound of the derivative of the loss: the larger, the fewer rows join",
    "aggressive": "move after every row with too small a margin, not after mistakes only",
    "alpha": "loss above which a row always joins, or the ridge of a projection",
    "average": "predict with the mean of the functions of all rows so far",
    "batch_size": "rows of a step",
    "beta": "the larger, the fewer rows join, or the more directions are kept",
    "block_size": "features that a step adds",
    "budget": "rows that are kept, for each kernel",
    "capacity": "fixed: every learner has a budget of its own; shared: one for all",
    "center": "learn the difference from the mean of the targets",
    "class_weight": "factors of the loss by class, or 'balanced'",
    "combination": "hedge: weights that follow the mistakes; uniform: equal weights",
    "confidence": "probability that the weights classify a row correctly after its update",
    "contamination": "share of the rows that should be called unusual",
    "counted": "when a wrong learner loses weight: in every row, or only when it was drawn",
    "degree": "degree of the Taylor series, or auto",
    "delta": "error above which the loss is linear",
    "diagonal": "keep only the diagonal of the matrix",
    "discount": "factor of a learner's weight for a mistake",
    "engine": "implementation: auto, native, python or torch",
    "epsilon": "errors up to this size cost nothing, for losses with such a zone",
    "eta": "step size; by default chosen automatically where the algorithm can",
    "eta_g": "step size for the kernel's parameters; 0 keeps them fixed",
    "forecaster": "awv (Azoury, Warmuth, Vovk) or ridge",
    "forgetting": "factor by which old rows fade, in (0, 1]",
    "gamma": "bandwidth of a kernel given by name: a number, scale or median",
    "gamma_max": "bound of a coefficient, in steps",
    "grids": "grids over few columns, or hashed ones over all columns",
    "groups": "kernels among which the features are divided",
    "horizon": "number of rows to come, from which beta or the learning rates follow",
    "intercept": "add a constant feature",
    "iterations": "steps, each with features of its own",
    "kernel": "a name, or one with parameters such as polynomial(degree=3)",
    "kernels": "kernels that compete",
    "lam": "strength of the penalty",
    "landmarks": "how landmarks are chosen: support, uniform, kmeans++, leverage or rpcholesky",
    "loss": "what an error costs, by name",
    "max_blocks": "blocks of features that are kept; none lets the model grow",
    "max_features": "most features of the Taylor series",
    "max_iter": "most passes over the rows, or Newton steps",
    "memory": "rows that are remembered; older ones fade",
    "n_centers": "rows that serve as centres",
    "n_centres": "components of a learned mixture",
    "n_components": "random features, for each kernel",
    "n_grids": "grids of cells",
    "neighbours": "number of the neighbour whose distance is the width of the kernel",
    "noise": "variance of the noise",
    "normalize_y": "take mean and variance of the prior from the first targets",
    "nu": "share of the rows outside the tube, or called novel",
    "oldest": "remove the oldest row, leaving the others unchanged",
    "passes": "passes over the rows, for models that are fitted to all rows at once",
    "precondition": "damping of preconditioned steps; 0 for plain ones",
    "radius": "of the ball that the weights stay in",
    "random_state": "seed of the random numbers",
    "rank": "directions of the landmarks, or of a learned metric, that are used",
    "recent": "use the last labels to predict the next one",
    "refresh": "rows after which the landmarks are chosen again",
    "rho": "densities are told apart where their ratio is above exp(-rho)",
    "rows": "rows of the window",
    "rule": "how a row changes the weights, by name",
    "schedule": "rows of a batch, features of a block, blocks and passes",
    "share": "share of the total weight that is spread evenly after every row",
    "size": "small, medium or large: time and memory against accuracy",
    "smoothing": "least probability with which a learner is drawn",
    "solver": "solver for all rows at once, by name",
    "spectrum": "what of the kernel is learned, by name",
    "standardize": "scale every column by its mean and deviation",
    "step": "step sizes, averaging and preconditioning",
    "strategy": "what to do when the budget is full, by name",
    "tau": "quantile, between 0 and 1",
    "theta0": "iterations after which the step size has halved",
    "tol": "relative error at which to stop",
    "update": "how a row changes the weights, by name",
    "updates": "all: every learner learns every row; stochastic: only those drawn",
    "variance_features": "random features from which the variance is learned",
    "variant": "1 or 2, the two forms of the paper",
    "vote": "add up votes, or scores",
    "warm_start": "start fit from the current weights",
}
OBJECTS = ("columns", "members", "points")  # parameters that cannot be given on a command line
SEED = 0  # two runs of the same command give the same model


def add_algorithm(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Add ``--algorithm`` and the options of the algorithm that ``argv`` names."""
    from .. import zoo

    name = _named(argv)
    recipe = recipe_of(name)
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
    group = parser.add_argument_group(f"options of {name}", f"{recipe.summary} {recipe.reference}.")
    for option, default in options_of(recipe).items():
        flag = f"--{option.replace('_', '-')}"
        shown = f"({SEED if option == 'random_state' else default})"
        shown = f"{OPTION_WORDS[option]} {shown}".replace("%", "%%") if option in OPTION_WORDS else shown
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


def recipe_of(name: str) -> Any:
    """The recipe of an algorithm on the command line."""
    from .. import zoo

    try:
        return zoo.get(name)
    except ValueError as error:
        hint = f"{did_you_mean(name, zoo.names())}'kernelstream list algorithms' shows all"
        raise UsageError(str(error) if name in zoo.RIVALS else f"unknown algorithm {name!r}: {hint}") from None


def options_of(recipe: Any) -> dict[str, Any]:
    """Options and defaults of a recipe, then those parameters of its estimator that a command line can give."""
    others = recipe.build(recipe.tasks[0]).get_params(deep=False).items()
    simple = {name: default for name, default in others if isinstance(default, (bool, int, float, str, type(None)))}
    left_out = {*recipe.options, *switched_off(recipe), *OBJECTS}
    return recipe.options | {name: default for name, default in simple.items() if name not in left_out}


def switched_off(recipe: Any) -> list[str]:
    """Parameters that a recipe sets to None, where its estimator has a value: with one it is another algorithm.

    >>> from kernelstream import zoo
    >>> switched_off(zoo.get("perceptron")), switched_off(zoo.get("forgetron"))
    (['budget'], [])
    """
    made = recipe.build(recipe.tasks[0])
    usual = inspect.signature(type(made)).parameters
    given = made.get_params(deep=False).items()
    return [
        name
        for name, value in given
        if value is None and name not in recipe.options and name in usual and usual[name].default is not None
    ]


def finds_novelties(args: argparse.Namespace, notes: dict[str, Any]) -> bool:
    """Whether the rows need no target: by the given task, that of the model to continue, or the algorithm."""
    from .. import zoo

    if args.task != "auto" or "task" in notes:
        return zoo.NOVELTY in (args.task, notes.get("task"))
    return zoo.get(args.algorithm).tasks == (zoo.NOVELTY,)


def made(recipe: Any, task: str, given: dict[str, Any], seed: int = SEED) -> Any:
    """The estimator of a recipe; ``given`` are options of the recipe, or any parameters of the estimator."""
    from .. import zoo

    options = options_of(recipe)
    params = {"random_state": seed} if "random_state" in options else {}
    est = zoo.make(recipe.name, task, **params | {name: value for name, value in given.items() if name in options})
    return est.set_params(**{name: value for name, value in given.items() if name not in options})


def build(args: argparse.Namespace, task: str) -> Any:
    """The estimator of the command line."""
    from .. import zoo

    params = {
        key.removeprefix("param_"): given
        for key, given in vars(args).items()
        if key.startswith("param_") and given is not None
    }
    try:
        est = made(zoo.get(args.algorithm), task, params | {name: parameter(text) for name, text in args.assignments})
        if hasattr(est, "_check_parameters"):
            est._check_parameters()
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{args.algorithm}: {error}") from None
    return est
