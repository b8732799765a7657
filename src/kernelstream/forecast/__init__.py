"""Forecasts of series: the next rows of numbers that come one after the other in time."""

from .forecaster import KernelForecaster

__all__ = ["KernelForecaster"]
