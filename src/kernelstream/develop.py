"""What an estimator outside the library is written with: shells, learners to inherit from, checks of parameters.

An estimator is a dataclass of parameters that inherits from a shell, :class:`StreamClassifier`,
:class:`StreamRegressor` or :class:`StreamOutlier`, and names in ``_learns`` what learns: a :class:`Learner`, or a
relative of it with a kernel (:class:`WithKernel`), features (:class:`LinearOnFeatures`), a matrix beside them
(:class:`Confidence`), a support set (:class:`KernelExpansion`) or a solver (:class:`Solved`).
:func:`kernelstream.estimators.register` lets model files name it, and ``kernelstream.testing`` checks it. The package
in the folder ``papers`` has examples.
"""

from .checks import positive, whole
from .estimators._contract.base import State, StreamEstimator, checked_rows
from .estimators._contract.batch import Solved, entry, history, n_iter
from .estimators._contract.classifier import StreamClassifier
from .estimators._contract.context import one_against_rest
from .estimators._contract.kernel import WithKernel
from .estimators._contract.learner import Learner
from .estimators._contract.outlier import StreamOutlier
from .estimators._contract.regressor import StreamRegressor
from .estimators._contract.state import centres
from .estimators._described import described
from .estimators.budget.base import KernelExpansion
from .estimators.feature import LinearOnFeatures
from .estimators.second_order.arow import Confidence
from .progress import SolverBar

__all__ = [
    "Confidence",
    "KernelExpansion",
    "Learner",
    "LinearOnFeatures",
    "Solved",
    "SolverBar",
    "State",
    "StreamClassifier",
    "StreamEstimator",
    "StreamOutlier",
    "StreamRegressor",
    "WithKernel",
    "centres",
    "checked_rows",
    "described",
    "entry",
    "history",
    "n_iter",
    "one_against_rest",
    "positive",
    "whole",
]
