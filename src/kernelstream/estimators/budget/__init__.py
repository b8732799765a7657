"""Learners in the kernel expansion."""
