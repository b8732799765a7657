"""The catalogue of kernels: Gram blocks, diagonals, bandwidth rules and random features.

A kernel is an immutable holder of parameters. `get` finds one by name, `names` lists them. To add one, write a class
with the decorator `register` in one of the modules below and name it in that module's ``__all__``.
"""

from kernelstream.kernels import additive, compose, convex, dot, semigroup, skewed, stationary
from kernelstream.kernels._base import FourierKernel, Kernel, get, names, register
from kernelstream.kernels._coordinates import CoordinateKernel
from kernelstream.kernels.additive import *  # noqa: F403
from kernelstream.kernels.compose import *  # noqa: F403
from kernelstream.kernels.convex import *  # noqa: F403
from kernelstream.kernels.dot import *  # noqa: F403
from kernelstream.kernels.semigroup import *  # noqa: F403
from kernelstream.kernels.skewed import *  # noqa: F403
from kernelstream.kernels.stationary import *  # noqa: F403

__all__ = ["CoordinateKernel", "FourierKernel", "Kernel", "get", "names", "register"]
__all__ += additive.__all__
__all__ += compose.__all__
__all__ += convex.__all__
__all__ += dot.__all__
__all__ += semigroup.__all__
__all__ += skewed.__all__
__all__ += stationary.__all__
