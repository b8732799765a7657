"""The native engine: the functions of :mod:`kernelstream.engine.python`, in C++ over blocks of rows."""
# ruff: noqa: F401

from __future__ import annotations

import sys
from typing import Any

from .._core import calibrate, doubts, follow, quantiles, track
from ..core.arrays_native import (
    BLOCK,
    all_below,
    cleaned,
    exp_scaled,
    exponential,
    exponential_mixture,
    exponential_slopes,
    exponential_square,
    exponential_sums,
    fourier,
    matmul,
    measured,
    normals,
    plain_rows,
    ranks_of,
    remember,
    scaled,
    squashed,
    standardize,
    symmetric_product,
    take_targets,
    taylor,
    tiles,
    workspace,
)
from ..passes.binning import native as binning
from ..passes.cells.native import by_hashing, by_levels, cells_gains, cells_pass, cells_score, grid_maps
from ..passes.doubly.blocks import FeatureBlocks
from ..passes.doubly.descent import Descent
from ..passes.ensemble.native import family_pass, hedge_pass
from ..passes.ensemble.pool import Pool, pool_hedge_pass, pool_pass
from ..passes.ensemble.python import combine, start_hedge, theta
from ..passes.expansion.native import BlockExpansion as Expansion
from ..passes.expansion.native import budget_pass, expansion_pass
from ..passes.learned.native import rrf_pass
from ..passes.learned.python import rrf_finish  # called rarely: numpy is fast enough
from ..passes.linear import host as _host
from ..passes.linear.native import NativeFeaturePass as _FeaturePass
from ..passes.linear.native import linear_pass, spec
from ..passes.metric.native import metric_pass
from ..passes.novelty.native import join, surprises
from ..passes.rows.native import RowStack, row_learner
from ..passes.stack.native import stack_pass
from ..passes.window.native import window_pass
from ..second_order.diagonal_native import diagonal_pass
from ..second_order.rows import RowRecursion

NAME = "native"
THREADED = True  # whether a second thread may prepare the next block

on_device = False  # whether a part of the state may be elsewhere, until `sync`


def least_squares(state: dict[str, Any], rule: Any, forgetting: float = 1.0) -> RowRecursion:
    """The second-order recursion; a rule without a compiled version goes row by row."""
    if rule.native() is None:
        return RowRecursion(state, rule, forgetting)
    from ..second_order.blocks import BlockRecursion

    return BlockRecursion(state, rule, forgetting)


feature_pass, feature_rows, map_times = _host.on_features(sys.modules[__name__], _FeaturePass)
