"""Solvers on dense features: the methods that the papers compare with.

They are names of :mod:`kernelstream.solvers` too:

>>> from kernelstream import solvers
>>> solvers.get("sdca")
SDCA()
"""

from .pegasos import Pegasos
from .rbcd import BlockCoordinateDescent
from .sbmd import BlockMirrorDescent
from .sdca import SDCA
from .uniform_cd import UniformCoordinateDescent

__all__ = ["SDCA", "BlockCoordinateDescent", "BlockMirrorDescent", "Pegasos", "UniformCoordinateDescent"]
