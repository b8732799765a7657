"""Smoothing over the last rows."""
