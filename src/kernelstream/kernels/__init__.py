"""The catalogue of kernels: Gram blocks, diagonals, bandwidth rules and random features.

A kernel is an immutable holder of parameters. `get` finds one by name, `names` lists them. To add one, write a class
with the decorator `register` in one of the modules below and name it in that module's ``__all__``.
"""

from kernelstream.kernels._base import FourierKernel, Kernel, get, names, register
from kernelstream.kernels.stationary import *  # noqa: F403
