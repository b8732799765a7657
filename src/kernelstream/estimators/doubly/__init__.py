"""Doubly stochastic learners."""
