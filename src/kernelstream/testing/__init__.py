"""Conformance checks for kernels, losses, feature maps, updates, budget strategies and streaming estimators.

Each check raises an ``AssertionError`` that says what is wrong. They run over everything kernelstream registers, and
are meant for components written elsewhere as well.

>>> from kernelstream.testing import check_loss
>>> check_loss("hinge")
"""

from .budgets import check_budget
from .features import check_feature_map
from .kernels import check_kernel
from .losses import check_loss
from .streaming import check_streaming
from .updates import check_update

__all__ = ["check_budget", "check_feature_map", "check_kernel", "check_loss", "check_streaming", "check_update"]
