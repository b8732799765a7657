"""Batch solvers of linear models on more features than a Gram matrix could be formed of.

A solver is a holder of parameters with one method, ``solve(problem)``.

>>> from kernelstream import solvers
>>> solvers.get("cg")
ConjugateGradient()
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..registry.names import enter, listed, part
from ._problem import DenseMatrix, Problem, Solution, Solver
from .cg import ConjugateGradient
from .coordinate_descent import CoordinateDescent
from .newton_cg import NewtonCG

__all__ = [
    "ConjugateGradient",
    "CoordinateDescent",
    "DenseMatrix",
    "NewtonCG",
    "Problem",
    "Solution",
    "Solver",
    "get",
    "names",
    "register",
]

_REGISTRY: dict[str, type[Solver]] = {cls.name: cls for cls in (ConjugateGradient, CoordinateDescent, NewtonCG)}
_T = TypeVar("_T", bound="type[Solver]")


def register(cls: _T) -> _T:
    """Class decorator that adds a solver to the catalogue under ``cls.name``."""
    enter(_REGISTRY, "solver", cls.name, cls)
    return cls


def names() -> list[str]:
    """Names that :func:`get` understands."""
    return listed(_REGISTRY)


def get(spec: Any) -> Solver:
    """Solver from a name (default parameters) or an object."""
    return part(_REGISTRY, "solver", Solver, spec)
