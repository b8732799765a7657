"""Estimators: scikit-learn's contract, plus ``learn``."""

from .arow import AROWClassifier, NewtonClassifier
from .budget import BudgetClassifier, BudgetRegressor
from .ensemble import MultiKernelClassifier, MultiKernelRegressor
from .feature import FeatureClassifier, FeatureRegressor
from .learned import RRFClassifier, RRFRegressor
from .nystroem import NystroemClassifier, NystroemRegressor
from .ridge import OnlineRidge, OnlineRidgeClassifier

__all__ = [
    "AROWClassifier",
    "BudgetClassifier",
    "BudgetRegressor",
    "FeatureClassifier",
    "FeatureRegressor",
    "MultiKernelClassifier",
    "MultiKernelRegressor",
    "NewtonClassifier",
    "NystroemClassifier",
    "NystroemRegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "RRFClassifier",
    "RRFRegressor",
]
