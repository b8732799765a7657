"""Detectors of changes, a block of rows at a time."""
