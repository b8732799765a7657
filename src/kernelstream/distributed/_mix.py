r"""How models that have learned different rows from the same weights w become one.

.. math:: w \leftarrow w + s \sum_k a_k (w_k - w).

With s = 1 and a_k = n_k/n, the share of shard k in the rows of the round, this is the average (McDonald, Hall, Mann
2010): as safe as the learner itself, but it learns only as much as from a single shard. Where step sizes shrink with
the sum of squared gradients (AdaGrad) the changes of the K shards add up instead, half of it beforehand and half
afterwards. A shard starts from the sums of squares divided by K, which makes its steps √K times as long, as if some of
the others moved the same way; then a_k = 1/K and ``s = 1 + (√K - 1) t/(t + n)`` after t rows, and the squares of all
rows are summed. Longer steps alone (s = 1) are noisy, sums alone (s = K) overshoot wherever a shard has converged by
itself; between the two a round may be longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.ranges import DOUBT, HIGH, LOW
from ..passes.linear.python import folded
from ..updates import AdaGrad, NormAdaGrad

State = dict[str, Any]

SQUARES = 4  # the row of NormAdaGrad's memory that holds its sum of squares


def adds(update: Any) -> bool:
    """Whether the changes of shards add up, instead of being averaged."""
    return isinstance(update, (AdaGrad, NormAdaGrad))


def lengthened(state: State, update: Any, shards: int) -> State:
    """The state that shards start a round with: sums of squares divided by K, for steps √K times as long."""
    if not adds(update) or shards == 1:
        return state
    if "G" in state:
        return state | {"G": state["G"] / state["G"].dtype.type(shards)}
    memory = state["memory"].copy()
    memory[SQUARES] /= shards
    return state | {"memory": memory}


def mixed(base: State, start: State, parts: list[tuple[State, int]], update: Any) -> State:
    """The state after a round.

    Parameters
    ----------
    base : dict
        The common state before.
    start : dict
        What the shards began with, :func:`lengthened`.
    parts : list of (dict, int)
        What they ended with, and how many rows they have learned.
    """
    base, start = folded(base), folded(start)
    states, rows = [folded(state) for state, _ in parts], np.array([n for _, n in parts], float)
    K, t, n = len(states), base["t"], rows.sum()
    # steps are long and stale at the beginning: adding sets in as the rows seen outnumber those of a round
    s = 1.0 + (math.sqrt(K) - 1.0) * t / (t + n) if adds(update) else 1.0
    share = np.full(K, 1.0 / K) if adds(update) else rows / n
    out = dict(base)

    def average(values: list[Any], first: Any) -> Any:
        return first + sum(a * (value - first) for a, value in zip(share, values))

    def summed(values: list[Any], first: Any, begun: Any = None) -> Any:
        """Sum of what each shard has added to entries that count rows."""
        return first + sum(value - (first if begun is None else begun) for value in values)

    def of(name: str) -> list[Any]:
        return [state[name] for state in states]

    dtype = base["w"].dtype
    first = base["w"] * base["scale"][:, None]
    w = first + s * (average([state["w"] * state["scale"][:, None] for state in states], first) - first)
    out |= {"w": np.ascontiguousarray(w, dtype), "scale": np.ones_like(base["scale"]), "t": summed(of("t"), t)}
    if "G" in base:
        out["G"] = np.ascontiguousarray(summed(of("G"), base["G"], start["G"]), dtype)
    if "w_mean" in base:  # a mean over all rows so far
        total = summed([state["t"] * state["w_mean"] for state in states], t * base["w_mean"])
        out["w_mean"] = np.ascontiguousarray(total / max(out["t"], 1), dtype)
    links = [state["link"] for state in states if "link" in state]
    if len(links) == K and len({len(link) for link in links}) == 1:  # of scores to probabilities: all numbers are means
        held = base["link"] if len(base.get("link", ())) == len(links[0]) else links[0]
        out["link"] = average(links, held)
        out["link"][0] = np.rint(sum(link[0] for link in links))
    if "class_counts" in base:
        out["class_counts"] = summed(of("class_counts"), base["class_counts"])
    if "center" in base:
        count = summed([c[0] for c in of("center")], base["center"][0])
        total = summed([c[0] * c[1] for c in of("center")], base["center"][0] * base["center"][1])
        out["center"] = np.array([count, total / np.where(count == 0, 1.0, count)])
    if "target_range" in base:
        out["target_range"] = _joint_range(base["target_range"], of("target_range"), summed)
    out["memory"] = average(of("memory"), base["memory"]) if base["memory"].size else base["memory"]
    if adds(update):
        _add_moments(out["memory"], base["memory"], of("memory"), summed)
    if isinstance(update, NormAdaGrad):
        squares = [memory[SQUARES] for memory in of("memory")]
        out["memory"][SQUARES] = summed(squares, base["memory"][SQUARES], start["memory"][SQUARES])
    return out


def _joint_range(base: np.ndarray, parts: list[np.ndarray], summed: Any) -> np.ndarray:
    """What is remembered of the targets of all shards: counts are summed, ranges joined."""
    out = summed(parts, base)  # TOTAL and COUNT; ranges and doubt are replaced
    out[LOW] = np.min([part[LOW] for part in parts], axis=0)
    out[HIGH] = np.max([part[HIGH] for part in parts], axis=0)
    out[DOUBT] = np.max([part[DOUBT] for part in parts], axis=0)
    return out


def _add_moments(out: np.ndarray, base: np.ndarray, parts: list[np.ndarray], summed: Any) -> None:
    """What AdaGrad remembers of all rows, in column 0: number, mean and squared deviations of y, mean k(x, x)."""
    numbers: list[Callable[[Any], Any]] = [lambda m, i=i: m[i, 0] for i in range(4)]  # type: ignore[misc]
    n, mean, spread, size = numbers
    count = summed([n(part) for part in parts], n(base))
    if count:
        y = summed([n(p) * mean(p) for p in parts], n(base) * mean(base)) / count
        yy = summed([spread(p) + n(p) * mean(p) ** 2 for p in parts], spread(base) + n(base) * mean(base) ** 2)
        k = summed([n(p) * size(p) for p in parts], n(base) * size(base)) / count
        out[:4, 0] = count, y, max(yy - count * y**2, 0.0), k
