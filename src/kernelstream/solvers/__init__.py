"""Batch solvers of linear models on more features than a Gram matrix could be formed of.

A solver is a holder of parameters with one method, ``solve(problem)``.

>>> from kernelstream import solvers
>>> solvers.get("cg")
ConjugateGradient()
"""

from __future__ import annotations

from typing import Any

from ..registry.names import part
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
]

_SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (
        ConjugateGradient,
        CoordinateDescent,
        NewtonCG,
    )
}


def names() -> list[str]:
    """Names that :func:`get` understands."""
    return sorted(_SOLVERS)


def get(spec: Any) -> Solver:
    """Solver from a name (default parameters) or an object."""
    return part(_SOLVERS, "solver", Solver, spec)
