"""Losses ``l(y, f)`` of a score ``f`` and their derivatives in ``f``.

Every loss is a small immutable parameter holder. ``value`` and ``gradient`` are elementwise and take numbers or arrays;
a formula is written once, against a namespace ``xp``. It is numpy; the losses of this module keep to a few functions
that plain Python has too (``plain = True``), because the python engine asks for one number per row and numpy would
spend more time on its own bookkeeping than on the formula.

Conventions, for all learners: a score 0 predicts +1, a multi-class tie predicts the lowest index.

>>> from kernelstream import losses
>>> losses.get("hinge").value(1, 0.25)
0.75
>>> losses.get("hinge").gradient([1, -1, 1], [0.25, 0.25, 1.0]).tolist()
[-1.0, 1.0, 0.0]
"""

from . import binary, multiclass, regression
from ._base import Loss, dual_of, get, names, register
from .binary import *  # noqa: F403
from .multiclass import *  # noqa: F403
from .regression import *  # noqa: F403

__all__ = ["Loss", "dual_of", "get", "names", "register"]
__all__ += binary.__all__
__all__ += multiclass.__all__
__all__ += regression.__all__
