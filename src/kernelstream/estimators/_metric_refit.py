r"""When the functions of a window are solved again, and how: from the rows up to the n-th, for the rows after n + k.

At fixed numbers n of rows a solution is begun, beside the rows that come then (:mod:`kernelstream.core.beside`); k rows
later it takes effect. What it is made of, the window up to row n and the metric of before, is in the state as long as
it may be needed: there is room for k rows more than the window has. So a solution is a function of the state, and
whoever takes a state over, from a file or in another process, can begin it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..core import threads
from ..solvers.clock import Clock
from ..solvers.kernel_ridge import RowMatrix, addition, descend
from ..solvers.metric import KernelMetric, Systems, table
from ..solvers.metric_search import RHO, Trials, TriedMetric, from_few, plain_start, rounds_from, tuned
from . import _leaves
from ._contract.base import State
from ._metric_rows import scaled_targets, standard_rows, units_of
from .second_order.base import targets

LEAST_ROWS, MOST_ROWS, MOST_CELLS = 256, 1024, 1 << 17  # rows of a leaf, and most rows × columns of one
LEAVES = 8  # most parts of a window with separate systems
SEARCHED = 1024  # rows that the metric is learned from, at most, or half as many as a leaf has
SEARCHES = 128  # rows from which it is learned;
IMPROVED = 1024  # rows from which it is only improved, whenever there are four times as many
PARTS = 4  # solutions in the learned metric while the rows double, as long as the window grows: a search costs more
SOON, LATER = (
    128,
    16,
)  # a solution of n rows takes effect n / SOON rows later, or n / LATER with a search: that takes longer
PAYS = 0.9  # relative error at which the whole off-diagonal part counts: few rows do not determine so many numbers
BROAD = 128  # columns up to which the off-diagonal part of the metric is tried: a row costs their square
VALUES: Any = np.float32  # type of kernel values; their sums are in float64
TOLERANCE = 1e-4  # relative size of what the rounding of a factor may leave of a system


# -------------------------------------------------------------------- when
class Schedule(NamedTuple):
    """Where a window is between two solutions."""

    n: int  # rows up to which the latest solution goes
    searched: bool  # whether the metric is found or improved then: after 128, 256, 512, 1024, 4096, 16,384 … rows
    pending: bool  # whether it is still to take effect
    stop: int  # rows after which it takes effect or, where it has, the next one is begun


def schedule(t: int, room: int) -> Schedule:
    """That of a window with room for some rows that has seen t."""
    power = 1 << max(t.bit_length() - 1, 0)
    step = power // PARTS if SEARCHES <= power < room else power
    n, times = t // step * step, power // IMPROVED
    searched = n == power >= SEARCHES and times.bit_length() % 2 == (times > 0)
    k = min(n, room) // (LATER if searched else SOON) if n >= SEARCHES else 0  # before the next one is begun
    return Schedule(n, searched, t < n + k, n + k if t < n + k else n + step)


def places(room: int) -> int:
    """Rows that are kept: what a solution is made of stays until it takes effect."""
    return room + room // LATER


def leaf_rows(d: int, window: int) -> int:
    """Rows of a leaf for d columns: one of a window of automatic size, or an eighth of a larger one."""
    return max(int(np.clip(MOST_CELLS // d, LEAST_ROWS, MOST_ROWS)), -(-window // LEAVES))


def depth(d: int, window: int) -> int:
    """Cuts between a window and a leaf for d columns."""
    return int(np.ceil(np.log2(max(window / leaf_rows(d, window), 1))))


# -------------------------------------------------------------------- how
def solution(state: State, n: int, ops: Any, regression: bool) -> State:
    """Entries of the functions that are solved on the rows up to the n-th and, when it is due, of their metric.

    Nothing of the state changes; it may have seen more rows, as many as its window has spare room for.
    """
    room, places = len(state["centres"]), len(state["kept_value"])
    m = min(n, room)
    most = leaf_rows(state["n_features"], room)
    order = (n - m + np.arange(m)) % places  # the oldest first
    X, value, weight = (state[f"kept_{name}"][order] for name in ("rows", "value", "weight"))
    if not regression and state["n_outputs"] == 1:
        value = 2 * value - 1
    Y, offset, unit = scaled_targets(targets(state, value), weight, regression)
    found = units_of(X, weight)
    rows = standard_rows(found, X, ops, np.float64).astype(VALUES)
    metric = metric_of(state)
    if schedule(n, room).searched:
        few = min(m, max(SEARCHED, most // 2))
        some = np.arange(few) * m // few
        best = _searched(state, n, ops, (rows[some], Y[some].astype(VALUES), weight[some]))
        metric = best.metric
        found |= entries_of(metric) | {"rho": best.rho, "lengths": np.array(best.lengths)}
    pair = metric.rows((rows, np.zeros_like(rows)))
    tree, parts = _leaves.cut(pair[0], depth(X.shape[1], room), 3 * most // 2)
    parts = [part[-2 * most :] for part in parts]  # the latest, where a leaf has more because rows are alike
    alpha = [np.zeros((len(part), Y.shape[1])) for part in parts]

    def solve(leaf: int) -> None:
        own = pair[0][parts[leaf]], pair[1][parts[leaf]]
        more = addition(metric.lam, len(own[0]), weight[parts[leaf]])
        matrix = RowMatrix(table(own, metric.share, ops), 1 + more, ops)
        alpha[leaf] = descend(matrix, Y[parts[leaf]], TOLERANCE).W * unit

    threads.each(solve, [leaf for leaf, part in enumerate(parts) if len(part)])
    leaves = _leaves.starts(parts)
    spare = ((0, room - leaves[-1]), (0, 0))
    found |= tree | {"leaves": leaves, "offset": offset}
    return found | {
        "centres": np.pad(rows[np.concatenate(parts)], spare),
        "alpha": np.pad(np.concatenate(alpha), spare),
    }


def _searched(state: State, n: int, ops: Any, given: tuple[np.ndarray, np.ndarray, np.ndarray]) -> TriedMetric:
    """The metric for rows, with targets and weights: found among the first ones, or improved."""
    rows, Y, weight = given
    judged = -(-len(rows) // 2)  # the later ones, each by all others: more cost more than they tell
    trials = Trials(Systems(ops, (rows, np.zeros_like(rows)), Y, weight, judged), Clock())
    plain = plain_start(rows.shape[1], False, BROAD)
    if n < IMPROVED:
        return from_few(trials, plain)
    near, apart = state["lengths"].tolist()
    last = replace(plain, metric=metric_of(state), rho=state["rho"], lengths=(near, apart))
    # A metric that has lost a direction does not find it again: all directions alike are a start too. With many
    # columns a round of gradients takes long.
    alike = rounds_from(trials, trials.of(plain)[0]) if rows.shape[1] <= BROAD else trials.of(last.made())[0]
    best = rounds_from(trials, min(alike, trials.of(last)[0], key=lambda tried: tried.error))
    if best.rho == RHO:
        whole = trials.of(best.made(rho=1.0))[0]
        best = whole if whole.error < PAYS * best.error else best
    return tuned(trials, best)


def entries_of(metric: KernelMetric) -> State:
    """Those of a state."""
    root = metric.root if metric.root.ndim == 2 or len(metric.root) > BROAD else np.diag(metric.root)
    return {"root": root, "scales": metric.scales, "share": float(metric.share), "lam": float(metric.lam)}


def metric_of(state: State) -> KernelMetric:
    """The metric of a state."""
    return KernelMetric(state["root"], state["scales"], state["share"], 0.0, state["lam"])
