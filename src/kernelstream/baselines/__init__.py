"""Yardsticks: exact or batch methods that the papers compare with, kept to compute their tables again.

Each is a recipe of the zoo (``kernel_awv``, ``pros_n_kons``, ``ksdca``, ``r_sdca``, …), so they belong to the library
and keep the estimators' contract. For work, :class:`kernelstream.KernelClassifier` and its relatives are faster, and as
good or better.

>>> from kernelstream import baselines
>>> baselines.KernelAWV(gamma=0.1)
KernelAWV(gamma=0.1)
"""

from .fixed_feature import FixedFeatureClassifier, FixedFeatureRegressor
from .kernel_awv import KernelAWV, KernelAWVClassifier
from .kernel_sdca import KernelSDCAClassifier, KernelSDCARegressor
from .pros_n_kons import ProsNKons, ProsNKonsClassifier

__all__ = [
    "FixedFeatureClassifier",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelAWVClassifier",
    "KernelSDCAClassifier",
    "KernelSDCARegressor",
    "ProsNKons",
    "ProsNKonsClassifier",
]
