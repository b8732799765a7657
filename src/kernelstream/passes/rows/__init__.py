"""Learners that take single rows, all of them in one call of the compiled core."""
