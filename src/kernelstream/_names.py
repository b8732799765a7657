"""The estimators by name, and the modules of :mod:`kernelstream.estimators` they live in."""

# Public names by module. They are imported at first use; all estimators are names of `kernelstream` too.
ESTIMATORS = {
    ".binning.models": ("BinningClassifier", "BinningRegressor"),
    ".budget.models": ("BudgetClassifier", "BudgetRegressor"),
    ".budget.one_class": ("BudgetOneClass",),
    ".cells.models": ("CellsClassifier", "CellsRegressor"),
    ".doubly.gp": ("DoublyStochasticGP",),
    ".doubly.models": ("DoublyStochasticClassifier", "DoublyStochasticRegressor"),
    ".doubly.novelty": ("DoublyStochasticOneClass",),
    ".doubly.ratio": ("DensityRatioEstimator",),
    ".ensemble.models": ("MultiKernelClassifier", "MultiKernelRegressor"),
    ".falkon.models": ("FalkonClassifier", "FalkonRegressor"),
    ".feature": ("FeatureClassifier", "FeatureRegressor"),
    ".learned": ("RRFClassifier", "RRFRegressor"),
    ".metric": ("MetricClassifier", "MetricRegressor"),
    ".metric_window": ("MetricWindowClassifier", "MetricWindowRegressor"),
    ".novelty.models": ("KernelNovelty",),
    ".nystroem": ("NystroemClassifier", "NystroemRegressor"),
    ".second_order.arow": ("AROWClassifier", "NewtonClassifier"),
    ".second_order.kernel_awv": ("KernelAWV", "KernelAWVClassifier"),
    ".second_order.ridge": ("OnlineRidge", "OnlineRidgeClassifier"),
    ".stack.models": ("KernelClassifier", "KernelRegressor"),
    ".window": ("WindowClassifier", "WindowRegressor"),
}
# Parts that estimators are made of.
PARTS = {
    ".doubly.step": ("DoublySchedule", "DoublyStep"),
    ".ensemble.parts": ("HedgeWeights", "StochasticUpdates"),
    ".learned": ("RRFStep",),
}
