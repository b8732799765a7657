"""The native engine: the functions of :mod:`kernelstream.engine.python`, in C++ over blocks of rows."""
# ruff: noqa: F401

from __future__ import annotations

from ..core.arrays_native import (
    BLOCK,
    all_below,
    all_finite,
    exp_scaled,
    fourier,
    matmul,
    project,
    set_aside,
    standardize,
    taylor,
    workspace,
)
from ..core.philox_native import normals
from ..passes.binning import native as binning
from ..passes.cells.native import by_hashing, by_levels, cells_gains, cells_pass, cells_score, grid_maps
from ..passes.doubly.native import fourier_scores
from ..passes.ensemble.native import combine, family_pass, hedge_pass, start_hedge, theta
from ..passes.ensemble.pool import Pool, pool_hedge_pass, pool_pass
from ..passes.expansion.native import Expansion, Rule, budget_pass, expansion_pass
from ..passes.learned.native import rrf_pass
from ..passes.learned.python import rrf_finish  # once in a while, and as fast as it needs to be
from ..passes.linear.native import linear_pass, spec
from ..passes.rows.native import RowStack, row_learner
from ..passes.stack.native import stack_pass
from ..passes.trust.native import calibrate, track
from ..passes.window.native import window_pass

NAME = "native"
THREADED = True  # whether a second thread may prepare the next block
