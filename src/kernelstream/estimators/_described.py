"""Docstrings without repetition.

All learners share some parameters (``engine``, ``class_weight``, …), and a regressor shares most with its classifier.
Each parameter is described once: here, or in the first class that has it. :func:`described` puts the parts together.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import ClassifierMixin

LAST = ("standardize", "class_weight", "engine", "random_state")  # parameters that all learners share
SECTIONS = ("Parameters", "Attributes", "See Also", "Notes", "References", "Examples")

PARAMETERS = """\
features : FeatureMap or str, default="fourier"
    The map z: "fourier", "taylor", "nystroem", "raw", … or an object such as ``RandomFourier(n_components=500)``.
intercept : bool, default=False
    Add a constant feature (it is penalised like the others).
kernel : Kernel or str, default="gaussian"
    The kernel: a name from the catalogue, or an object with its parameters.
gamma : float, "scale", "median" or None, default=None
    Bandwidth of a kernel given by name; None means "median".
standardize : bool or "auto", default="auto"
    Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
    "auto" does so if the bandwidth comes from the rows and the first 100 rows show columns of different units.
class_weight : dict, "balanced" or None, default=None
    Weight of each class in the loss; "balanced" follows the class frequencies seen so far.
engine : {"auto", "native", "python"}, default="auto"
    "native" runs the compiled loops, "python" their readable specification; "auto" is "native" where it is installed.
random_state : int, Generator, RandomState or None, default=None
    Source of the seed of all random numbers."""

# Of classifiers, and of regressors.
LOSS = {
    True: """\
loss : Loss or str, default="hinge"
    Binary losses turn into their multi-class form when a third class appears. "logistic" and "softmax" provide
    probabilities themselves.""",
    False: """\
loss : Loss or str, default="squared"
    "squared", "absolute", "epsilon_insensitive", "huber", "quantile", or an object.""",
}

ON_DEVICE = """\
engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
    "native" runs the compiled loops, "python" their readable specification, "torch" blocks on a GPU (``docs/gpu.md``);
    "auto" is "native" where it is installed."""

# Of learners of all rows at once.
AT_ONCE = """\
class_weight : dict, "balanced" or None, default=None
    Weight of each class in the loss."""

ATTRIBUTES = """\
classes_ : array
    Labels known so far, sorted.
state_ : dict
    Everything the model has learned: arrays, numbers and strings by name."""

Class = TypeVar("Class", bound=type)


def described(like: type | None = None) -> Callable[[Class], Class]:
    """Decorator that completes the docstring of a learner.

    Parameters that the docstring leaves out are described as in the class ``like``, or else as in ``PARAMETERS`` and
    ``LOSS``; they are listed in the order of the signature. Attributes of ``like`` and ``ATTRIBUTES`` follow those of
    the class. Missing references and notes are taken from ``like``. Everything else must be written out: the summary,
    the formula, See Also and the examples.
    """

    def complete(cls: Class) -> Class:
        _shared_last(cls)
        if cls.__doc__ is None:  # python -OO
            return cls
        own = _sections(inspect.cleandoc(cls.__doc__))
        other = {} if like is None else _sections(inspect.cleandoc(like.__doc__ or ""))
        classifies, device = issubclass(cls, ClassifierMixin), getattr(cls, "on_device", False)
        known = _entries(PARAMETERS) | _entries(LOSS[classifies]) | (_entries(ON_DEVICE) if device else {})
        known |= _entries(AT_ONCE) if getattr(cls, "_at_once", False) else {}
        inherited = _entries(other.get("Parameters", ""))
        if like is not None and issubclass(like, ClassifierMixin) != classifies:
            inherited.pop("loss", None)
        if like is not None and getattr(like, "on_device", False) != device:
            inherited.pop("engine", None)
        known |= inherited | _entries(own.get("Parameters", ""))
        names = [name for name in inspect.signature(cls).parameters if name in known]
        own["Parameters"] = "\n".join(dict.fromkeys(known[name] for name in names))
        learned = _entries(own.get("Attributes", ""))
        learned |= _entries(ATTRIBUTES) | _entries(other.get("Attributes", "")) | learned
        if not classifies:
            learned.pop("classes_", None)
        own["Attributes"] = "\n".join(dict.fromkeys(learned.values()))
        text = [own[""]]
        for title in SECTIONS:
            body = own.get(title) or (other.get(title) if title in ("Notes", "References") else None)
            text += [f"{title}\n{'-' * len(title)}\n{body}"] if body else []
        cls.__doc__ = "\n\n".join(text) + "\n"
        return cls

    return complete


def _shared_last(cls: Any) -> None:
    """List the parameters that all learners share last, although a dataclass puts those of its bases first."""
    sig = inspect.signature(cls.__init__)
    shown = sorted(sig.parameters.values(), key=lambda each: LAST.index(each.name) if each.name in LAST else -1)
    cls.__init__.__signature__ = sig.replace(parameters=shown)


def _sections(text: str) -> dict[str, str]:
    """Title and body of each section of a docstring; the text before the first section has the title ""."""
    start, *rest = re.split(r"^(\S.*)\n-{3,}\n", text, flags=re.MULTILINE)
    return {"": start.strip()} | {title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2])}


def _entries(body: str) -> dict[str, str]:
    """Entries of a section such as Parameters, each under its name or names."""
    entries = re.split(r"\n(?=\S)", body) if body else []
    return {name: entry for entry in entries for name in entry.partition(" : ")[0].split(", ")}
