"""Learners on cells of grids over few columns, or hashed."""
