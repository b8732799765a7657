"""The native engine: the functions of :mod:`kernelstream.engine.python`, in C++ over blocks of rows."""
# ruff: noqa: F401

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.arrays_native import (
    BLOCK,
    all_below,
    all_finite,
    exp_scaled,
    exponential,
    exponential_sums,
    fourier,
    matmul,
    plain_rows,
    set_aside,
    squashed,
    standardize,
    taylor,
    tiles,
    workspace,
)
from ..core.philox_native import normals
from ..passes.binning import native as binning
from ..passes.cells.native import (
    by_hashing,
    by_levels,
    cells_gains,
    cells_pass,
    cells_score,
    grid_maps,
)
from ..passes.doubly.blocks import FeatureBlocks
from ..passes.doubly.descent import Descent
from ..passes.doubly.native import fourier_scores
from ..passes.ensemble.native import combine, family_pass, hedge_pass, start_hedge, theta
from ..passes.ensemble.pool import Pool, pool_hedge_pass, pool_pass
from ..passes.expansion.native import Expansion, ExpansionSpec, budget_pass, expansion_pass
from ..passes.learned.native import rrf_pass
from ..passes.learned.python import rrf_finish  # called rarely: numpy is fast enough
from ..passes.linear import host as _host
from ..passes.linear.native import FeaturePass as _FeaturePass
from ..passes.linear.native import linear_pass, spec
from ..passes.metric.native import metric_pass
from ..passes.monitor.native import adwin_look, kernel_look, page_look
from ..passes.quantiles.native import quantiles
from ..passes.rows.native import RowStack, row_learner
from ..passes.stack.native import stack_pass
from ..passes.trust.native import calibrate, doubts, follow, track
from ..passes.window.native import window_pass
from ..second_order.diagonal_native import diagonal_pass
from ..second_order.rows import RowRecursion

NAME = "native"
THREADED = True  # whether a second thread may prepare the next block

on_device = False  # whether a part of the state may be elsewhere, until `sync`


def feature_pass(mapping: Any, loss: Any, update: Any, state: dict[str, Any]) -> _host.FeaturePass:
    """The learner on explicit features, with ``learn``, ``score`` and ``sync``."""
    return _FeaturePass(_self, mapping, loss, update, state)


def feature_rows(mapping: Any, X: Any, cuts: list[slice] | None, intercept: bool) -> Iterator[tuple[slice, np.ndarray]]:
    """``(rows, Z)`` block by block, Z in float64; with ``intercept`` a constant comes first."""
    return _host.exact_rows(mapping, X, _self, cuts, intercept)


def map_times(mapping: Any, X: Any, weights: np.ndarray) -> np.ndarray:
    """``Z A`` of features Z, weights A (P, C), in float64."""
    return _host.map_times(mapping, X, weights, _self)


def least_squares(state: dict[str, Any], rule: Any, forgetting: float = 1.0) -> RowRecursion:
    """The second-order recursion; a rule without a compiled version goes row by row."""
    if rule.native() is None:
        return RowRecursion(state, rule, forgetting)
    from ..second_order.blocks import BlockRecursion

    return BlockRecursion(state, rule, forgetting)


_self = sys.modules[__name__]
