r"""Kernel ridge through centres, exactly: the workers' normal equations add up.

.. math:: (K_{XS}' A K_{XS} + \lambda K_{SS})\, \alpha = K_{XS}' A (y - b)

The m centres S are drawn from all rows, as one machine draws them. Both sums are over rows: a chain of tasks adds the
rows of some partitions, and a tree adds the chains, 8 m (m + C) bytes each. What is left to the model (widths of the
columns, bandwidth, penalty) is found by one worker on a sample of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators._contract.base import Shell
from ..estimators._contract.door import checked_rows
from ..estimators.falkon.models import Falkon, usual_centers
from ..kernels import Kernel
from ..random import Stream, generator
from ..rows import Rows, divided, pack
from ..solvers.falkon import kernel_blocks
from ..solvers.kernel_blocks import Factor, least_addition
from ..state.blas_threads import on_one_blas_thread
from ._cells import Targets, surveyed, targets
from ._client import check_memory, compute, need
from ._data import Data, Piece
from ._start import begin

SAMPLE_ROWS = 50_000  # rows among which widths, bandwidth and penalty are found

Sums = tuple[np.ndarray, np.ndarray]  # K'A K (m, m) and K'A (y - b) (m, C)


def fit_falkon(est: Shell[Falkon], data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all partitions, up to its tolerance.

    With more than 50,000 rows the choices left to the model are made on that many of them.
    """
    loss = est._learner.context.loss_for(2).name
    if loss != "squared":
        raise ValueError(
            f"loss={loss!r} is learned on one machine only: on several 'squared', whose sums over rows add up"
        )
    delayed = need("dask").delayed
    start = begin(est, data, client, classes)
    start._link_frozen = est._link_frozen
    found, rows = surveyed(start, data, client)
    state, n = start._state, found.n
    given = est._learner.n_centers
    count = usual_centers(n) if given == "auto" else int(given)
    m = min(n, count)
    check_memory(client, 8 * (3 * m * m + 2048 * m), f"the sums of {m:,} centres")
    wanted, offset = targets(start, found)
    seed = state["seed"]
    some = rows.some(SAMPLE_ROWS, seed)
    choose = delayed(_chosen, pure=False)
    state |= compute(client, choose(start, rows.delayed(some), rows.delayed(some, target=True), wanted, count))
    lam = state.pop("lam")
    centers = np.arange(n) if n == m else np.sort(generator(seed, Stream.MAP).choice(n, m, replace=False))
    S = _wide(rows[centers], state)
    kernel = start._learner.kernel(state)
    given = delayed((kernel, S, wanted, offset), pure=False)
    sums = rows.data.accumulated(client, None, absorb, added, start, given)
    state |= pack("centers", S.astype(state["dtype"])) | {"alpha": _solved(kernel, S, sums, lam), "offset": offset}
    return state | {"lam": lam, "n_iter": 1, "history": np.zeros(1), "t": n}


def _chosen(est: Shell[Falkon], X: Rows, y: np.ndarray, wanted: Targets, count: int) -> dict[str, Any]:
    """The entries that are left to the model, from a sample of the rows."""
    before = set(est._state)
    state = est._state
    X = checked_rows(est, X, reset=False)
    Y, weight = wanted(y)
    _, state["lam"] = est._learner.choose(state, X, Y, weight, count)
    est._forget()
    est._link_from(X, y, weight)
    return {name: value for name, value in state.items() if name not in before or name == "link"}


@on_one_blas_thread
def absorb(
    sums: Sums | None, piece: Piece, est: Shell[Falkon], given: tuple[Kernel, Rows, Targets, np.ndarray]
) -> Sums:
    """The sums with those of a partition."""
    kernel, S, wanted, offset = given
    m, state = S.shape[0], est._state
    total = (np.zeros((m, m)), np.zeros((m, len(offset)))) if sums is None else sums

    def use(X: Any, y: Any) -> Sums:
        X, y, _ = est._admit(X, y, None, None, fresh=False)
        Y, weight = wanted(y)
        a = np.ones(X.shape[0]) if weight is None else weight
        K = kernel_blocks(kernel, _wide(X, state), S, est._ops)
        return K.moment(np.arange(len(a)), a), K.tdot(a[:, None] * (Y - offset))

    for part in piece.blocks(use):
        total = added(total, part)
    return total


def added(a: Sums, b: Sums) -> Sums:
    """The sums of both."""
    return a[0] + b[0], a[1] + b[1]


def _wide(X: Rows, state: dict[str, Any]) -> Rows:
    """Rows in the widths of the kernel, in float64: sums over all rows must not lose what little lam adds."""
    X = X.astype(np.float64)
    return divided(X, state["width"]) if "width" in state else X


@on_one_blas_thread
def _solved(kernel: Kernel, S: Rows, sums: Sums, lam: float) -> np.ndarray:
    """Coefficients (m, C): with ``T'T = K_SS`` and ``w = T alpha`` a ridge problem on ``K T^-1``."""
    K = kernel.pairwise(S, S)
    factor = Factor(K, least_addition(K, S.dtype))
    factor.weigh(sums[0], lam)
    return np.ascontiguousarray(factor.solve(factor.precondition(factor.tsolve(sums[1]))))
