"""The default learner: KernelClassifier and KernelRegressor."""
