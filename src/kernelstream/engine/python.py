"""The python engine: the readable specification of every pass, gathered under one name.

Each function here has a twin of the same name and signature in :mod:`kernelstream.engine.native`; tests pair them by
name. Rows are handled one at a time, so that any split of a stream into calls is bit-identical.
"""
# ruff: noqa: F401

from __future__ import annotations

import sys

from ..core.arrays import (
    all_below,
    exp_scaled,
    exponential,
    exponential_mixture,
    exponential_slopes,
    exponential_square,
    exponential_sums,
    fourier,
    matmul,
    plain_rows,
    ranks_of,
    squashed,
    symmetric_product,
    tiles,
    workspace,
)
from ..core.corrupt import cleaned, measured, remember
from ..core.philox import normals
from ..core.ranges import scaled, standardize
from ..core.targets import take as take_targets
from ..passes.binning import python as binning
from ..passes.cells.python import by_hashing, by_levels, cells_gains, cells_pass, cells_score, grid_maps
from ..passes.doubly.blocks import FeatureBlocks
from ..passes.doubly.descent import Descent
from ..passes.ensemble.python import HISTORY, Hedge, Pool, combine, family_pass, hedge_pass, start_hedge, theta
from ..passes.expansion.python import Expansion, budget_pass, expansion_pass
from ..passes.learned.python import rrf_finish, rrf_pass
from ..passes.linear import host as _host
from ..passes.linear.python import linear_pass
from ..passes.metric.python import metric_pass
from ..passes.novelty.python import join, surprises
from ..passes.quantiles.python import quantiles
from ..passes.rows.python import RowStack, row_learner
from ..passes.spec import spec
from ..passes.stack.python import stack_pass
from ..passes.trust.python import calibrate, doubts, follow, track
from ..passes.window.python import window_pass
from ..second_order.diagonal import diagonal_pass
from ..second_order.rows import RowRecursion as least_squares

NAME = "python"
BLOCK = 1  # rows per call of a feature map: one, so that a row's features never depend on its neighbours
THREADED = False  # whether a second thread may prepare the next block

on_device = False  # whether a part of the state may be elsewhere, until `sync`

feature_pass, feature_rows, map_times = _host.on_features(sys.modules[__name__], _host.FeaturePass)
