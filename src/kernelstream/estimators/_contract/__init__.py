"""The contract that every estimator keeps, in one room."""
