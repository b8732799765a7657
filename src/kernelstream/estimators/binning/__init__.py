"""Learners on random binning features."""
