"""Quantiles of the targets of rows, around their forecasts."""
