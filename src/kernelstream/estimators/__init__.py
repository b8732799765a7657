"""Estimators: scikit-learn's contract, plus ``learn``."""

from ._doubly_step import DoublyStep
from .arow import AROWClassifier, NewtonClassifier
from .binning import BinningClassifier, BinningRegressor
from .budget import BudgetClassifier, BudgetRegressor
from .cells import CellsClassifier, CellsRegressor
from .doubly import DoublyStochasticClassifier, DoublyStochasticRegressor
from .doubly_gp import DoublyStochasticGP
from .doubly_novelty import DoublyStochasticOneClass
from .doubly_ratio import DensityRatioEstimator
from .ensemble import MultiKernelClassifier, MultiKernelRegressor
from .feature import FeatureClassifier, FeatureRegressor
from .fixed_feature import FixedFeatureClassifier, FixedFeatureRegressor
from .kernel_awv import KernelAWV, KernelAWVClassifier
from .kernel_sdca import KernelSDCAClassifier, KernelSDCARegressor
from .learned import RRFClassifier, RRFRegressor
from .nystroem import NystroemClassifier, NystroemRegressor
from .one_class import BudgetOneClass
from .pros_n_kons import ProsNKons, ProsNKonsClassifier
from .ridge import OnlineRidge, OnlineRidgeClassifier
from .stack import KernelClassifier, KernelRegressor
from .window import WindowClassifier, WindowRegressor

__all__ = [
    "AROWClassifier",
    "BinningClassifier",
    "BinningRegressor",
    "BudgetClassifier",
    "BudgetOneClass",
    "BudgetRegressor",
    "CellsClassifier",
    "CellsRegressor",
    "DensityRatioEstimator",
    "DoublyStep",
    "DoublyStochasticClassifier",
    "DoublyStochasticGP",
    "DoublyStochasticOneClass",
    "DoublyStochasticRegressor",
    "FeatureClassifier",
    "FeatureRegressor",
    "FixedFeatureClassifier",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelAWVClassifier",
    "KernelClassifier",
    "KernelRegressor",
    "KernelSDCAClassifier",
    "KernelSDCARegressor",
    "MultiKernelClassifier",
    "MultiKernelRegressor",
    "NewtonClassifier",
    "NystroemClassifier",
    "NystroemRegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "ProsNKons",
    "ProsNKonsClassifier",
    "RRFClassifier",
    "RRFRegressor",
    "WindowClassifier",
    "WindowRegressor",
]
