"""Estimators: scikit-learn's contract, plus ``learn``."""

from .feature import FeatureClassifier, FeatureRegressor

__all__ = ["FeatureClassifier", "FeatureRegressor"]
