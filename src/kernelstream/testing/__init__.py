"""Conformance kit: what every kernel, loss, feature map, update, budget strategy and streaming estimator must keep.

Each check raises an ``AssertionError`` that says what is wrong. They run over everything kernelstream registers, and
are meant just as much for components written elsewhere.

>>> from kernelstream.testing import check_loss
>>> check_loss("hinge")
"""

from __future__ import annotations

import importlib
from typing import Any

# loaded when first used: a check of one kind of component should not import the others
_HOME = {
    "check_kernel": "kernels",
    "check_loss": "losses",
    "check_feature_map": "features",
    "check_update": "updates",
    "check_budget": "budgets",
    "check_streaming": "streaming",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
