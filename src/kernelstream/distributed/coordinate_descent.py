r"""Sparse models on random binning features: CoCoA, coordinate descent by grids with safe steps.

Worker k owns the columns of some grids, Z_k, for all n rows. A round starts from the responses ``f = offset + sum_k Z_k
w_k``, added up in a tree, and every worker improves its own weights on

.. math:: \min_\delta \; g'Z_k\delta + \frac{K h}{2} \lVert Z_k\delta \rVert_A^2 + \lambda |w_k + \delta|_1,
    \qquad g = A\, l'(y, f),

h being the largest second derivative of the loss: K times the curvature makes the sum of all changes safe, the
objective never rises. It is a lasso, which the sweeps of the sequential solver serve. A round moves 8 n C bytes to and
from each worker, and the weights.

Smith, Forte, Ma, Takáč, Jordan, Jaggi: CoCoA: a general framework for communication-efficient distributed optimization,
JMLR 18 (2018), sections 3.2 and 5.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import engine as engines
from ..core.cell_matrix import CellMatrix
from ..estimators.binning.batch import BatchBinning
from ..estimators.binning.fit import without_zeros
from ..losses import Squared
from ..random import generator
from ._cells import CellRows, Pinned, pin
from ._client import compute, need, slots, spread
from ._data import Data, nbytes, runs, tree
from .binning import finished

SWEEPS = 10  # of a local solve


@dataclass
class Columns:
    """Some grids of all rows."""

    cells: np.ndarray  # (R_k, n) int32
    starts: np.ndarray  # (R_k + 1,)
    Y: np.ndarray  # (n, C)
    weight: np.ndarray | None

    def __sizeof__(self) -> int:
        return nbytes(self.cells, self.starts, self.Y, self.weight)

    def matrix(self, grids: int, engine: str) -> tuple[CellMatrix, float]:
        """The features but for a factor, and the factor: their entries are 1/sqrt(R) with R of all grids."""
        ops = engines.get(engine).binning
        return CellMatrix(self.cells, self.starts, ops, 1), float(np.sqrt(len(self.cells) / grids))


def fit_lasso(est: BatchBinning, data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state of ``est.fit`` on all rows, its objective within the solver's tolerance of the sequential one."""
    if est.warm_start:
        raise ValueError("warm_start begins with the weights of one machine: set it to False")
    pinned = pin(est, data, client, classes)
    futures: list[Any] = []
    try:
        grids = runs(est.n_components, slots(client))
        work = need("dask").delayed(_columns, pure=False)
        futures = spread(client, [work(pinned.blocks, run.start, run.stop, pinned.starts) for run in grids])
        return _solve(pinned, client, futures, grids)
    finally:
        for future in futures:
            future.release()
        pinned.release()


def _columns(blocks: list[CellRows], first: int, last: int, starts: np.ndarray) -> Columns:
    """The grids from ``first`` to ``last`` of all blocks, columns numbered alike."""
    parts = []
    for part in blocks:
        assert part.where is not None
        rows = [part.where[part.starts[r] + part.cells[r]] - starts[r] for r in range(first, last)]
        parts.append(np.stack(rows).astype(np.int32))
    weight = None if blocks[0].weight is None else np.concatenate([part.weight for part in blocks])
    own = (starts[first : last + 1] - starts[first]).astype(np.int64)
    return Columns(
        np.ascontiguousarray(np.concatenate(parts, axis=1)), own, np.concatenate([b.Y for b in blocks]), weight
    )


def _solve(pinned: Pinned, client: Any, columns: list[Any], grids: list[range]) -> dict[str, Any]:
    est, state, delayed = pinned.est, pinned.est._state, need("dask").delayed
    solver, loss, R, C = est._solver, est._solver_loss(), est.n_components, len(pinned.offset)
    spans = [slice(int(pinned.starts[run.start]), int(pinned.starts[run.stop])) for run in grids]
    W = np.zeros((pinned.columns, C))
    respond, improve = delayed(_responses, pure=False), delayed(_improved, pure=False)
    first = compute(
        client, tree([delayed(_slopes, pure=False)(c, pinned.offset, loss, R, est.engine) for c in columns], max)
    )
    lam = float(first * state["searched_lam"]) if est.lam is None else float(est.lam)
    lam = max(lam, 1e-12)
    history: list[float] = []
    converged = False
    for round_ in range(solver.max_iter):
        parts = [respond(c, W[span], R, est.engine) for c, span in zip(columns, spans)]
        F = delayed(_shifted, pure=False)(tree(parts, np.add), pinned.offset)
        value = delayed(_value, pure=False)(columns[0], F, loss)
        fixed = (loss, lam, len(columns), R, est.engine, state["seed"], round_)
        found = [improve(c, W[span], F, *fixed) for c, span in zip(columns, spans)]
        total, results = compute(client, delayed(tuple)([value, delayed(list)(found)]))
        history.append(float(total + lam * np.abs(W).sum()))
        if max(violation for _, violation in results) <= solver.tol * first:
            converged = True
            break
        for span, (own, _) in zip(spans, results):
            W[span] = own
    if not converged:
        warnings.warn(
            f"CoCoA did not reach tol={solver.tol:g} in {solver.max_iter} rounds; raise max_iter, tol or lam",
            ConvergenceWarning,
            stacklevel=4,
        )
    state = finished(pinned, client, W.astype(state["dtype"]), lam, history)
    state["cells"], state["starts"], state["w"] = without_zeros(state["cells"], state["starts"], state["w"])
    return state


def _responses(own: Columns, W: np.ndarray, grids: int, engine: str) -> np.ndarray:
    """``Z_k w_k``, (n, C)."""
    Z, factor = own.matrix(grids, engine)
    return factor * Z.dot(np.ascontiguousarray(W))


def _shifted(F: np.ndarray, offset: np.ndarray) -> np.ndarray:
    return F + offset


def _value(own: Columns, F: np.ndarray, loss: Any) -> float:
    """The sum of the losses."""
    values = loss.value(own.Y, F)
    return float((values if own.weight is None else values * own.weight[:, None]).sum())


def _slopes(own: Columns, offset: np.ndarray, loss: Any, grids: int, engine: str) -> float:
    """The largest derivative at w = 0."""
    G = loss.gradient(own.Y, np.tile(offset, (len(own.Y), 1)))
    if own.weight is not None:
        G = G * own.weight[:, None]
    Z, factor = own.matrix(grids, engine)
    return factor * float(np.abs(Z.tdot(np.ascontiguousarray(G))).max())


def _improved(
    own: Columns, W: np.ndarray, F: np.ndarray, loss: Any, lam: float, workers: int, grids: int, engine: str, seed: int,
    round_: int,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Weights (D_k, C) after some sweeps over the worker's own problem, and how far from optimal they were before."""
    Z, factor = own.matrix(grids, engine)
    ops = engines.get(engine).binning
    lists = ops.cell_lists(own.cells, own.starts, 1)
    # In units where the entries of Z_k are those of the matrix: v = factor w, penalty lam/factor.
    V = np.ascontiguousarray(factor * W)
    stiff = workers * loss.smoothness
    G = loss.gradient(own.Y, F)
    a = np.ones(len(F)) if own.weight is None else own.weight
    worst = 0.0
    rng = generator(seed, 5 + round_)
    for c in range(W.shape[1]):
        v = np.ascontiguousarray(V[:, c])
        f = np.ascontiguousarray(Z.dot(v[:, None])[:, 0])
        slope = factor * Z.tdot(np.ascontiguousarray((a * G[:, c])[:, None]))[:, 0]
        away = np.where(W[:, c] == 0, np.maximum(np.abs(slope) - lam, 0), np.abs(slope + lam * np.sign(W[:, c])))
        worst = max(worst, float(away.max(initial=0.0)))
        target = f - G[:, c] / stiff
        for sweep in range(SWEEPS):
            order = rng.permutation(len(own.cells))
            ops.sweep_cells(lists, own.starts, order, target, stiff * a, Squared(), lam / factor, sweep > 0, f, v, 1)
        V[:, c] = v
    return V / factor, worst
