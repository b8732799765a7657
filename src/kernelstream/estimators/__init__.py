"""Estimators: scikit-learn's contract, plus ``learn``."""

from .budget import BudgetClassifier, BudgetRegressor
from .feature import FeatureClassifier, FeatureRegressor
from .learned import RRFClassifier, RRFRegressor
from .nystroem import NystroemClassifier, NystroemRegressor
from .ridge import OnlineRidge, OnlineRidgeClassifier

__all__ = [
    "BudgetClassifier",
    "BudgetRegressor",
    "FeatureClassifier",
    "FeatureRegressor",
    "NystroemClassifier",
    "NystroemRegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "RRFClassifier",
    "RRFRegressor",
]
