"""Parts by name: entering them in a catalogue, finding them, and the error about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from . import plugins as _plugins

# Names of scikit-learn and others, and what goes by another name here; of several, the first that there is.
ELSEWHERE = {
    "c": ("lam", "update"), "alpha": ("lam", "update"), "reg_lambda": ("lam",), "eta0": ("eta", "update", "step"),
    "learning_rate": ("eta", "update", "step"), "max_iter": ("passes", "schedule"), "epochs": ("passes",),
    "seed": ("random_state",), "sigma": ("gamma",), "length_scale": ("gamma",), "bandwidth": ("gamma",),
    "n_neighbors": ("neighbours",), "max_size": ("budget", "size"), "n_centres": ("n_centers", "budget"),
    "log_loss": ("logistic",), "log": ("logistic",), "cross_entropy": ("logistic", "softmax"),
    "squared_error": ("squared",), "squared_loss": ("squared",), "mse": ("squared",), "absolute_error": ("absolute",),
    "mae": ("absolute",), "squared_epsilon_insensitive": ("epsilon_insensitive",), "pinball": ("quantile",),
    "rbf": ("gaussian",), "poly": ("polynomial",),
}  # fmt: skip


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """``"did you mean 'x'? "`` for the known name that is closest, in any case, or nothing when none is close.

    >>> did_you_mean("Hing", ["hinge", "huber"]) + "known are hinge, huber"
    "did you mean 'hinge'? known are hinge, huber"
    >>> did_you_mean("log_loss", ["logistic", "squared"])
    "did you mean 'logistic'? "
    """
    lower = {word.lower(): word for word in known}
    same = [word for word in ELSEWHERE.get(str(name).lower(), ()) if word in lower]
    close = same or difflib.get_close_matches(str(name).lower(), lower, n=1)
    return f"did you mean {lower[close[0]]!r}? " if close else ""


def unknown(kind: str, name: Any, known: Iterable[str]) -> ValueError:
    """The error about an unknown name of a registry."""
    known = sorted(known)
    return ValueError(f"unknown {kind} {name!r}: {did_you_mean(name, known)}known are {', '.join(known)}")


def enter(catalogue: dict[str, Any], kind: str, name: str, part: Any) -> None:
    """Enter a class or function under its name; only a new definition of the same one may replace it."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"{part.__qualname__} needs a name to be registered as a {kind}")
    held = catalogue.get(name)
    if held is not None and home(held) != home(part):
        raise ValueError(
            f"the {kind} {name!r} is {'.'.join(home(held))} already: give {'.'.join(home(part))} another name"
        )
    catalogue[name] = part


def find(catalogue: dict[str, Any], kind: str, name: str) -> Any:
    """The entry of a name; installed packages that bring parts are asked before the name counts as unknown."""
    if name not in catalogue:
        _plugins.load()
    if name not in catalogue:
        raise unknown(kind, name, catalogue)
    return catalogue[name]


def part(catalogue: dict[str, Any], kind: str, base: type, spec: Any) -> Any:
    """A part given as an object, itself; by name, with its default parameters."""
    if isinstance(spec, base):
        check_own(catalogue, kind, spec)
        return spec
    if not isinstance(spec, str):
        raise ValueError(f"{kind} must be a name ({', '.join(sorted(catalogue))}) or a {base.__name__}, got {spec!r}")
    return find(catalogue, kind, spec)()


def listed(catalogue: dict[str, Any]) -> list[str]:
    """All names, those of installed packages among them, sorted."""
    _plugins.load()
    return sorted(catalogue)


def check_own(catalogue: dict[str, Any], kind: str, part: Any) -> None:
    """Raise ValueError for an object that goes by the name of another class, whose formulas it may not have."""
    held = catalogue.get(part.name)
    if held is not None and home(held) != home(type(part)):
        raise ValueError(
            f"{type(part).__name__} goes by the name {part.name!r}, which is that of the {kind} {held.__name__}: "
            f"give it a name of its own"
        )


def home(part: Any) -> tuple[str, str]:
    """Module and name of a class or function."""
    return part.__module__, part.__qualname__
