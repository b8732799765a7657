"""Answers you can trust: probabilities, intervals, reasons and late labels, for any learner of the library.

Small objects hold what is learned beside a model, in a flat ``state`` of arrays, and wrappers put them around one:

============================  =====================================================================================
:class:`Calibrated`           a classifier with calibrated probabilities, and sets of labels
:class:`WithIntervals`        a regressor that says how far off it may be
:class:`Explained`            a learner that says which columns matter, and which moved an answer
:class:`Delayed`              a learner whose rows wait for their targets
============================  =====================================================================================

A wrapper is an estimator like the one inside it: it learns, predicts, is saved and loaded, and any split of the rows
into calls gives the same. Wrappers can be nested: ``Delayed(Calibrated(model))``.
"""

from .calibrated import Calibrated
from .calibration import Calibrator
from .contributions import Explanation
from .delayed import Delayed
from .explained import Explained
from .intervals import IntervalTracker
from .quantiles import QuantileTracker
from .with_intervals import WithIntervals

__all__ = [
    "Calibrated",
    "Calibrator",
    "Delayed",
    "Explained",
    "Explanation",
    "IntervalTracker",
    "QuantileTracker",
    "WithIntervals",
]
