"""Calibration and intervals, row by row."""
