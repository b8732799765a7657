"""The contract that every estimator keeps."""
