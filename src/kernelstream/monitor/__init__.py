"""Has something changed? Detectors that watch a learner's loss and its inputs, row by row, in bounded memory.

>>> import numpy as np
>>> from kernelstream.monitor import Monitor
>>> loss = np.random.default_rng(0).random(6000) < np.where(np.arange(6000) < 4000, 0.1, 0.4)
>>> [4000 < mark.row < 4200 for mark in Monitor().learn(loss)]
[True]

All detectors work on blocks of 32 rows counted from the first one: how the rows are cut into calls makes no difference.
"""

from ._monitor import Mark, Monitor
from .adwin import Adwin
from .inputs import KernelTwoSample
from .reactions import forget, restart

__all__ = ["Adwin", "KernelTwoSample", "Mark", "Monitor", "forget", "restart"]
