"""The python engine: the readable specification of every pass, gathered under one name.

Each function here has a twin of the same name and signature in :mod:`kernelstream.engine.native`; tests pair them by
name. Rows are handled one at a time, so that any split of a stream into calls is bit-identical.
"""
# ruff: noqa: F401

from __future__ import annotations

from ..core.arrays import all_below, all_finite, exp_scaled, fourier, matmul, project, workspace
from ..core.philox import normals
from ..core.ranges import set_aside, standardize
from ..passes.binning import python as binning
from ..passes.cells.python import by_hashing, by_levels, cells_gains, cells_pass, cells_score, grid_maps
from ..passes.doubly.python import fourier_scores
from ..passes.ensemble.python import HISTORY, Hedge, Pool, combine, family_pass, hedge_pass, start_hedge, theta
from ..passes.expansion.python import Expansion, Rule, budget_pass, expansion_pass
from ..passes.learned.python import rrf_finish, rrf_pass
from ..passes.linear.python import linear_pass, spec
from ..passes.rows.python import RowStack, row_learner
from ..passes.stack.python import stack_pass
from ..passes.trust.python import calibrate, track
from ..passes.window.python import window_pass

NAME = "python"
BLOCK = 1  # rows per call of a feature map: one, so that a row's features never depend on its neighbours
THREADED = False  # whether a second thread may prepare the next block
