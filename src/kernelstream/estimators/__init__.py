"""Estimators: scikit-learn's contract, plus ``learn``."""

from typing import Any

from ..registry import moved
from .binning.models import BinningClassifier, BinningRegressor
from .binning.online import OnlineBinningClassifier, OnlineBinningRegressor
from .budget.models import BudgetClassifier, BudgetRegressor
from .budget.one_class import BudgetOneClass
from .cells.models import CellsClassifier, CellsRegressor
from .doubly.gp import DoublyStochasticGP
from .doubly.models import DoublyStochasticClassifier, DoublyStochasticRegressor
from .doubly.novelty import DoublyStochasticOneClass
from .doubly.ratio import DensityRatioEstimator
from .doubly.step import DoublySchedule, DoublyStep
from .ensemble.models import MultiKernelClassifier, MultiKernelRegressor
from .ensemble.parts import HedgeWeights, StochasticUpdates
from .falkon.models import FalkonClassifier, FalkonRegressor
from .feature import FeatureClassifier, FeatureRegressor
from .learned import RRFClassifier, RRFRegressor, RRFStep
from .nystroem import NystroemClassifier, NystroemRegressor
from .second_order.arow import AROWClassifier, NewtonClassifier
from .second_order.ridge import OnlineRidge, OnlineRidgeClassifier
from .stack.models import KernelClassifier, KernelRegressor
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
    "DoublySchedule",
    "DoublyStep",
    "DoublyStochasticClassifier",
    "DoublyStochasticGP",
    "DoublyStochasticOneClass",
    "DoublyStochasticRegressor",
    "FalkonClassifier",
    "FalkonRegressor",
    "FeatureClassifier",
    "FeatureRegressor",
    "HedgeWeights",
    "KernelClassifier",
    "KernelRegressor",
    "MultiKernelClassifier",
    "MultiKernelRegressor",
    "NewtonClassifier",
    "NystroemClassifier",
    "NystroemRegressor",
    "OnlineBinningClassifier",
    "OnlineBinningRegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "RRFClassifier",
    "RRFRegressor",
    "RRFStep",
    "StochasticUpdates",
    "WindowClassifier",
    "WindowRegressor",
]


def __getattr__(name: str) -> Any:
    return moved.find("estimators", name)
