"""Solvers on dense features: the methods that the papers compare with.

>>> from kernelstream.baselines import solvers
>>> solvers.get("sdca")
SDCA()
"""

from __future__ import annotations

from typing import Any

from ... import solvers as batch
from ...registry.names import unknown
from ...solvers import Solver
from .pegasos import Pegasos
from .rbcd import BlockCoordinateDescent
from .sbmd import BlockMirrorDescent
from .sdca import SDCA

__all__ = ["SDCA", "BlockCoordinateDescent", "BlockMirrorDescent", "Pegasos", "get", "names"]

_SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls for cls in (BlockCoordinateDescent, BlockMirrorDescent, Pegasos, SDCA)
}


def names() -> list[str]:
    """Names that :func:`get` understands: these, and those of :mod:`kernelstream.solvers`."""
    return sorted([*_SOLVERS, *batch.names()])


def get(spec: Any) -> Solver:
    """Solver from a name (default parameters) or an object."""
    if isinstance(spec, str) and spec in _SOLVERS:
        return _SOLVERS[spec]()
    if isinstance(spec, str) and spec not in batch.names():
        raise unknown("solver", spec, names())
    return batch.get(spec)
