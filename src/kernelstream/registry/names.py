"""Parts by name: the catalogue of a kind, and the error about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from . import plugins as _plugins

P = TypeVar("P")
C = TypeVar("C", bound=type)

# Names that scikit-learn and others use, and what they are called here; of several, the first that exists.
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


def find(parts: dict[str, Any], kind: str, name: str) -> Any:
    """The entry of a name; installed packages that bring parts are asked before the name counts as unknown."""
    if name not in parts:
        _plugins.load()
    if name not in parts:
        raise unknown(kind, name, parts)
    return parts[name]


class Catalogue(Generic[P]):
    """The parts of one kind, by name.

    Parameters
    ----------
    kind : str
        What messages call such a part.
    base : type
        Its base class.
    *parts : classes
        Those that it has from the start.

    Examples
    --------
    >>> from kernelstream import updates
    >>> updates.get("adagrad"), "ogd" in updates.names()
    (AdaGrad(), True)
    """

    def __init__(self, kind: str, base: type[P], *parts: Any):
        self.kind, self.base = kind, base
        self.parts: dict[str, Any] = {part.name: part for part in parts}

    def register(self, cls: C) -> C:
        """Class decorator: make a part known by its ``name``."""
        self.enter(cls.name, cls)  # type: ignore[attr-defined]
        return cls

    def enter(self, name: str, part: Any) -> None:
        """Enter a class or a recipe; only a new definition of the same one may take the place of another."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"{home(part)[1]} needs a name to be registered as a {self.kind}")
        held = self.parts.get(name)
        if held is not None and home(held) != home(part):
            raise ValueError(
                f"the {self.kind} {name!r} is taken by {'.'.join(home(held))}: give {'.'.join(home(part))} another name"
            )
        self.parts[name] = part

    def names(self) -> list[str]:
        """All names, those of installed packages among them, sorted."""
        _plugins.load()
        return sorted(self.parts)

    def find(self, name: str) -> Any:
        """The class or recipe of a name."""
        return find(self.parts, self.kind, name)

    def get(self, spec: str | P) -> P:
        """A part given as an object, itself; by name, with its default parameters."""
        if isinstance(spec, self.base):
            self._check_own(spec)
            return spec
        if not isinstance(spec, str):
            known = ", ".join(sorted(self.parts))
            raise ValueError(f"{self.kind} must be a name ({known}) or a {self.base.__name__}, got {spec!r}")
        return self.find(spec)()

    def _check_own(self, part: Any) -> None:
        """Raise ValueError for an object that has the name of another class, whose formulas may differ."""
        held = self.parts.get(part.name)
        if held is not None and home(held) != home(type(part)):
            raise ValueError(
                f"{type(part).__name__} goes by the name {part.name!r}, which belongs to the {self.kind} "
                f"{held.__name__}: give it a name of its own"
            )


def home(part: Any) -> tuple[str, str]:
    """Module and name of a class, or of the function that composes a recipe."""
    made = getattr(part, "compose", part)
    return made.__module__, made.__qualname__
