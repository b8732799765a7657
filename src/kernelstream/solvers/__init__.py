"""Batch solvers of linear models on more features than a Gram matrix could be formed of.

A solver is a holder of parameters with one method, ``solve(problem)``.

>>> from kernelstream import solvers
>>> solvers.get("cg")
ConjugateGradient()
"""

from ..registry.names import Catalogue
from ._problem import DenseMatrix, Problem, Solution, Solver
from ._problem import best_constant as best_constant
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

CATALOGUE = Catalogue("solver", Solver, ConjugateGradient, CoordinateDescent, NewtonCG)
register, names, get = CATALOGUE.register, CATALOGUE.names, CATALOGUE.get
