"""Parameters of parts that are given by name: ``features__n_components`` where ``features`` is "fourier"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import budgets, features, kernels, losses, solvers, updates

#: Parameters of estimators that take a part by name, and where the name is looked up.
FINDERS: dict[str, Callable[[Any], Any]] = {
    "features": features.get,
    "kernel": kernels.get,
    "loss": losses.get,
    "solver": solvers.get,
    "strategy": budgets.get,
    "update": updates.get,
}


def unfolded(est: Any, params: dict[str, Any]) -> dict[str, Any]:
    """``params`` of ``set_params``, with an object for every part whose own parameters are among them.

    A name stands for the part with its defaults, so ``features__n_components=500`` on ``features="fourier"`` means
    ``features=RandomFourier(n_components=500)``. ``update="auto"`` stands for the update that it is.
    """
    own = est.get_params(deep=False)
    found = dict(params)
    for name in dict.fromkeys(key.partition("__")[0] for key in params if "__" in key):
        part = found.get(name, own.get(name))
        named: dict[str, Callable[[], Any]] = getattr(est, "_named_parts", {}).get(name, {})
        if not isinstance(part, str) or (name not in FINDERS and part not in named):
            continue
        automatic = part == "auto" and name == "update" and getattr(est._learner, "auto_update", None)
        made = automatic() if automatic else named[part]() if part in named else FINDERS[name](part)
        inside = {key: found.pop(key) for key in params if key.startswith(f"{name}__")}
        found[name] = made.set_params(**{key.partition("__")[2]: value for key, value in inside.items()})
    return found
