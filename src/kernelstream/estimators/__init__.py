"""Estimators: scikit-learn's contract, plus ``learn``."""

from .feature import FeatureClassifier, FeatureRegressor
from .learned import RRFClassifier, RRFRegressor
from .nystroem import NystroemClassifier, NystroemRegressor

__all__ = [
    "FeatureClassifier",
    "FeatureRegressor",
    "NystroemClassifier",
    "NystroemRegressor",
    "RRFClassifier",
    "RRFRegressor",
]
