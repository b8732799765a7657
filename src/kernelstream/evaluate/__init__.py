"""Evaluation of learners on streams: predict each row first, then learn it.

>>> import numpy as np
>>> from sklearn.linear_model import SGDClassifier
>>> from kernelstream.evaluate import prequential
>>> X = np.arange(-300.0, 300.0)[::-1, None] % 7 - 3.5
>>> result = prequential(SGDClassifier(random_state=0), X, X[:, 0] > 0, block_size=10)
>>> result.n_rows
600
"""

from ._prequential import prequential
from ._result import Curve, Result, model_bytes, model_size
from ._rolling import RollingResult, rolling
from ._tally import Tally
from .metrics import METRICS, Metric, crps

__all__ = [
    "METRICS",
    "Curve",
    "Metric",
    "Result",
    "RollingResult",
    "Tally",
    "crps",
    "model_bytes",
    "model_size",
    "prequential",
    "rolling",
]
