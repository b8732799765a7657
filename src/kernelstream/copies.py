"""Copies of a model: for its readers, and with seeds that a replay can repeat."""

from __future__ import annotations

import contextlib
import copy
import numbers
from typing import Any

from .estimators._contract.base import StreamEstimator
from .random import seed_from
from .state.turns import turns_of


def copied(model: Any, example: Any) -> Any:
    """A copy of a model for readers, ready to answer at once.

    What a model derives from its state is made by a first prediction; the feature map, which never changes, is shared.
    """
    made = copy.deepcopy(model)
    if isinstance(model, StreamEstimator) and model.__dict__.get("_state") is not None:
        with turns_of(model):
            made._learner.derived |= {name: part for name, part in model._learner.derived.items() if name == "mapping"}
    if example is not None:
        with contextlib.suppress(ValueError, ArithmeticError):  # a reader's own call will raise it
            made.predict(example)
    return made


def seeded(model: Any) -> Any:
    """The model with fixed seeds in place of random ones, so that a replay draws the same numbers."""
    if getattr(model, "state_", None) is not None or not hasattr(model, "get_params"):
        return model
    deep = not isinstance(model, StreamEstimator)  # the parts of an estimator draw from its own seed
    params = model.get_params(deep=deep)
    seeds = {name: value for name, value in params.items() if name.split("__")[-1] == "random_state"}
    free = {name: seed_from(value) % 2**31 for name, value in seeds.items() if not isinstance(value, numbers.Integral)}
    return copy.deepcopy(model).set_params(**free) if free else model
