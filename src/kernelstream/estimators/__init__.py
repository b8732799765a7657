"""Estimators: scikit-learn's contract, plus ``learn``."""

from .feature import FeatureClassifier, FeatureRegressor
from .nystroem import NystroemClassifier, NystroemRegressor

__all__ = ["FeatureClassifier", "FeatureRegressor", "NystroemClassifier", "NystroemRegressor"]
