"""The one learner: KernelClassifier and KernelRegressor."""
