"""Estimators: scikit-learn's contract, plus ``learn``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .binning.models import BinningClassifier, BinningRegressor
    from .binning.online import OnlineBinningClassifier, OnlineBinningRegressor
    from .budget.models import BudgetClassifier, BudgetRegressor
    from .budget.one_class import BudgetOneClass
    from .cells.models import CellsClassifier, CellsRegressor
    from .doubly.gp import DoublyStochasticGP
    from .doubly.models import DoublyStochasticClassifier, DoublyStochasticRegressor
    from .doubly.novelty import DoublyStochasticOneClass
    from .doubly.ratio import DensityRatioEstimator
    from .doubly.step import DoublySchedule, DoublyStep
    from .ensemble.models import MultiKernelClassifier, MultiKernelRegressor
    from .ensemble.parts import HedgeWeights, StochasticUpdates
    from .falkon.models import FalkonClassifier, FalkonRegressor
    from .feature import FeatureClassifier, FeatureRegressor
    from .learned import RRFClassifier, RRFRegressor, RRFStep
    from .metric import MetricClassifier, MetricRegressor
    from .nystroem import NystroemClassifier, NystroemRegressor
    from .second_order.arow import AROWClassifier, NewtonClassifier
    from .second_order.ridge import OnlineRidge, OnlineRidgeClassifier
    from .stack.models import KernelClassifier, KernelRegressor
    from .window import WindowClassifier, WindowRegressor

__all__ = [
    "AROWClassifier",
    "BinningClassifier",
    "BinningRegressor",
    "BudgetClassifier",
    "BudgetOneClass",
    "BudgetRegressor",
    "CellsClassifier",
    "CellsRegressor",
    "DensityRatioEstimator",
    "DoublySchedule",
    "DoublyStep",
    "DoublyStochasticClassifier",
    "DoublyStochasticGP",
    "DoublyStochasticOneClass",
    "DoublyStochasticRegressor",
    "FalkonClassifier",
    "FalkonRegressor",
    "FeatureClassifier",
    "FeatureRegressor",
    "HedgeWeights",
    "KernelClassifier",
    "KernelRegressor",
    "MetricClassifier",
    "MetricRegressor",
    "MultiKernelClassifier",
    "MultiKernelRegressor",
    "NewtonClassifier",
    "NystroemClassifier",
    "NystroemRegressor",
    "OnlineBinningClassifier",
    "OnlineBinningRegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "RRFClassifier",
    "RRFRegressor",
    "RRFStep",
    "StochasticUpdates",
    "WindowClassifier",
    "WindowRegressor",
]

_HOMES = {
    "AROWClassifier": ".second_order.arow",
    "BinningClassifier": ".binning.models",
    "BinningRegressor": ".binning.models",
    "BudgetClassifier": ".budget.models",
    "BudgetOneClass": ".budget.one_class",
    "BudgetRegressor": ".budget.models",
    "CellsClassifier": ".cells.models",
    "CellsRegressor": ".cells.models",
    "DensityRatioEstimator": ".doubly.ratio",
    "DoublySchedule": ".doubly.step",
    "DoublyStep": ".doubly.step",
    "DoublyStochasticClassifier": ".doubly.models",
    "DoublyStochasticGP": ".doubly.gp",
    "DoublyStochasticOneClass": ".doubly.novelty",
    "DoublyStochasticRegressor": ".doubly.models",
    "FalkonClassifier": ".falkon.models",
    "FalkonRegressor": ".falkon.models",
    "FeatureClassifier": ".feature",
    "FeatureRegressor": ".feature",
    "HedgeWeights": ".ensemble.parts",
    "KernelClassifier": ".stack.models",
    "KernelRegressor": ".stack.models",
    "MetricClassifier": ".metric",
    "MetricRegressor": ".metric",
    "MultiKernelClassifier": ".ensemble.models",
    "MultiKernelRegressor": ".ensemble.models",
    "NewtonClassifier": ".second_order.arow",
    "NystroemClassifier": ".nystroem",
    "NystroemRegressor": ".nystroem",
    "OnlineBinningClassifier": ".binning.online",
    "OnlineBinningRegressor": ".binning.online",
    "OnlineRidge": ".second_order.ridge",
    "OnlineRidgeClassifier": ".second_order.ridge",
    "RRFClassifier": ".learned",
    "RRFRegressor": ".learned",
    "RRFStep": ".learned",
    "StochasticUpdates": ".ensemble.parts",
    "WindowClassifier": ".window",
    "WindowRegressor": ".window",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name], __name__), name)  # a family is imported when it is first used
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
