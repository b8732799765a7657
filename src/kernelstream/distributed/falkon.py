r"""Kernel ridge through centres, exactly: the workers' normal equations add up.

.. math:: (K_{XS}' A K_{XS} + \lambda K_{SS})\, \alpha = K_{XS}' A (y - b)

The m centres S are drawn from all rows, as one machine draws them. Both sums are over rows, 8 m (m + C) bytes. What is
left to the model (widths of the columns, bandwidth, penalty) is found here, on a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators._contract.base import Shell, checked_rows
from ..estimators.falkon.models import Falkon, usual_centers
from ..kernels import Kernel
from ..losses import Loss
from ..random import SeedStream, generator
from ..rows import Rows, concat, divided, pack
from ..solvers import best_constant
from ..solvers.falkon import kernel_blocks
from ..solvers.kernel_blocks import Factor, least_addition
from ..state.blas_threads import on_one_blas_thread
from .start import begun
from .sums import Part, Parts

SAMPLE_ROWS = 50_000  # rows among which widths, bandwidth and penalty are found

Sums = tuple[np.ndarray, np.ndarray]  # K'A K (m, m) and K'A (y - b) (m, C)


def fit_falkon(est: Shell[Falkon], learner: Falkon, parts: Parts, classes: Any) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all parts, up to its tolerance.

    With more than 50,000 rows the choices left to the model are made on that many of them.
    """
    loss = learner.context.loss_for(2).name
    if loss != "squared":
        raise ValueError(
            f"loss={loss!r} is learned on one machine only: on several 'squared', whose sums over rows add up"
        )
    with parts.kept():
        return _solved_by_sums(begun(est, 1, parts, classes), parts)


def _solved_by_sums(start: Shell[Falkon], parts: Parts) -> dict[str, Any]:
    learner, state = start._learner, start._state
    found = parts.map(survey, dict.fromkeys(range(len(parts)), (start,)))
    counts = [part.rows for part in found]
    n = sum(counts)
    wanted_centers = usual_centers(n) if learner.n_centers == "auto" else int(learner.n_centers)
    m = min(n, wanted_centers)
    parts.check_memory(8 * (3 * m * m + 2048 * m), f"the sums of {m:,} centres")
    wanted, offset = targets(start, state, learner.context.loss_for(2), found)

    sample = np.arange(n)
    if n > SAMPLE_ROWS:
        sample = np.sort(generator(state["seed"], SeedStream.REMOTE_ROWS).choice(n, SAMPLE_ROWS, replace=False))
    X, y = picked(parts, counts, sample)
    X = checked_rows(start, X)
    Y, weight = wanted(y)
    _, state["lam"] = learner.choose(state, X, Y, weight, wanted_centers)
    start._forget()
    start._layers.link_from(state, X, y, weight)

    centers = np.arange(n) if n == m else np.sort(generator(state["seed"], SeedStream.MAP).choice(n, m, replace=False))
    S, kernel = _wide(picked(parts, counts, centers)[0], state), learner.kernel(state)
    sums = parts.total(absorb, added, start, (kernel, S, wanted, offset))
    alpha = _solved(kernel, S, sums, state["lam"])
    state |= pack("centers", S.astype(state["dtype"])) | {"alpha": alpha, "offset": offset}
    return state | {"n_iter": 1, "history": np.zeros(1), "t": n}


# -------------------------------------------------------------------- what all rows have in common
@dataclass
class Survey:
    """The rows of a part: how many, of which labels, with which sum of targets."""

    rows: int
    labels: np.ndarray  # of a classifier, sorted
    counts: np.ndarray  # of the labels
    total: float  # of a regressor's targets


def survey(part: Part, est: Shell[Falkon]) -> Survey:
    """What is known of a part's rows, which are checked on the way."""
    ys = list(part.blocks(lambda X, y: est._admit(X, y, None, None, fresh=False)[1]))
    y = np.concatenate(ys) if ys else np.empty(0)
    labels, counts = np.unique(y, return_counts=True) if is_classifier(est) else (np.empty(0), np.empty(0))
    return Survey(len(y), labels, counts, 0.0 if is_classifier(est) else float(y.sum()))


@dataclass
class FalkonTargets:
    """What the solver makes of a target: rows of a small table for labels, the numbers themselves otherwise."""

    classes: np.ndarray | None
    table: np.ndarray | None  # (classes, C)
    factor: np.ndarray | None  # (classes,), weights of rows

    def __call__(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets (n, C) and weights of rows."""
        if self.classes is None or self.table is None:
            return np.asarray(y, np.float64)[:, None], None
        codes = np.searchsorted(self.classes, y)
        return self.table[codes], None if self.factor is None else self.factor[codes]


def targets(est: Any, state: Any, loss: Loss, found: Sequence[Survey]) -> tuple[FalkonTargets, np.ndarray]:
    """The targets, and the score of rows without features (C,); enters the classes in the state."""
    some = [part for part in found if part.rows]
    if not is_classifier(est):
        mean = sum(part.total for part in some) / sum(part.rows for part in some)
        return FalkonTargets(None, None, None), best_constant(np.array([[mean]]), None, loss)
    labels = np.unique(np.concatenate([part.labels for part in some]))
    counts = np.zeros(len(labels))
    for part in some:
        counts[np.searchsorted(labels, part.labels)] += part.counts
    table, weight = est._layers.targets.batch(state, labels, counts)
    state["class_counts"] = counts
    factor = None if est.class_weight is None else weight / counts
    return FalkonTargets(labels, table, factor), best_constant(table, weight, loss)


# -------------------------------------------------------------------- rows by number
def picked(parts: Parts, counts: Sequence[int], numbers: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Rows and targets by their numbers among those of all parts, which ascend."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    cuts = pairwise(np.searchsorted(numbers, starts).tolist())
    calls = {i: (numbers[a:b] - starts[i],) for i, (a, b) in enumerate(cuts) if a < b}
    found = parts.map(pick, calls)
    return concat([X for X, _ in found]), np.concatenate([y for _, y in found])


def pick(part: Part, numbers: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Rows (k, d) and targets (k,) of a part by their numbers, which ascend."""
    at = 0

    def take(X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        nonlocal at
        low, high = np.searchsorted(numbers, [at, at + X.shape[0]])
        rows = numbers[low:high] - at
        at += X.shape[0]
        return X[rows], y[rows]

    found = [block for block in part.blocks(take, int(numbers[-1]) + 1) if block[0].shape[0]]
    return concat([X for X, _ in found]), np.concatenate([y for _, y in found])


# -------------------------------------------------------------------- the normal equations
@on_one_blas_thread
def absorb(
    part: Part, sums: Sums | None, est: Shell[Falkon], given: tuple[Kernel, Rows, FalkonTargets, np.ndarray]
) -> Sums:
    """The sums with those of a part."""
    kernel, S, wanted, offset = given
    m = S.shape[0]

    def use(X: Any, y: Any) -> Sums:
        X, y, _ = est._admit(X, y, None, None, fresh=False)
        Y, weight = wanted(y)
        a = np.ones(X.shape[0]) if weight is None else weight
        K = kernel_blocks(kernel, _wide(X, est.state_), S, est._learner.ops)
        return K.moment(np.arange(len(a)), a), K.tdot(a[:, None] * (Y - offset))

    total = (np.zeros((m, m)), np.zeros((m, len(offset)))) if sums is None else sums
    for block in part.blocks(use):
        total = added(total, block)
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
