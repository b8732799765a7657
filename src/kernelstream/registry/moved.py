"""Names that have moved: found under their old address for one version, with a warning."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_BASELINES = (
    "FixedFeatureClassifier",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelAWVClassifier",
    "KernelSDCAClassifier",
    "KernelSDCARegressor",
    "ProsNKons",
    "ProsNKonsClassifier",
)
_SOLVERS = ("BlockCoordinateDescent", "BlockMirrorDescent", "Pegasos", "SDCA")

#: Old address -> new one, both within the package.
MOVED = {
    **{f"estimators.{name}": f"baselines.{name}" for name in _BASELINES},
    **{f"solvers.{name}": f"baselines.solvers.{name}" for name in _SOLVERS},
}


def find(module: str, name: str) -> Any:
    """The object that ``kernelstream.<module>.<name>`` has become; AttributeError where there never was one."""
    new = MOVED.get(f"{module}.{name}")
    if new is None:
        raise AttributeError(f"module 'kernelstream.{module}' has no attribute {name!r}")
    warnings.warn(f"{name} has moved to kernelstream.{new}", FutureWarning, stacklevel=3)
    home, _, name = new.rpartition(".")
    return getattr(import_module(f"kernelstream.{home}"), name)
