"""Rivals: learners that the papers compare their own with, kept to compute the tables again.

Each is a recipe of the zoo (``pros_n_kons``, ``ksdca``, ``r_sdca``, …) and keeps the estimators' contract. For work,
:class:`kernelstream.KernelClassifier` and its relatives are faster, and as good or better.

>>> from kernelstream import zoo
>>> zoo.make("ksdca", gamma=0.1)
KernelSDCAClassifier(gamma=0.1)
"""

from . import recipes
from .fixed_feature import FixedFeatureClassifier, FixedFeatureRegressor
from .gp_operator import OperatorGP
from .group_sparse import GroupSparseClassifier
from .kernel_sdca import KernelSDCAClassifier, KernelSDCARegressor
from .margin import ConfidenceWeightedClassifier, LargeMarginClassifier
from .metagrad import MetaGradClassifier
from .pros_n_kons import ProsNKons, ProsNKonsClassifier
from .ratios import DensityNovelty
from .uniclass import SparseOneClass

__all__ = [
    "ConfidenceWeightedClassifier",
    "DensityNovelty",
    "FixedFeatureClassifier",
    "FixedFeatureRegressor",
    "GroupSparseClassifier",
    "KernelSDCAClassifier",
    "KernelSDCARegressor",
    "LargeMarginClassifier",
    "MetaGradClassifier",
    "OperatorGP",
    "ProsNKons",
    "ProsNKonsClassifier",
    "SparseOneClass",
    "recipes",
]
