"""Search among values by trials on held-out rows.

A trial learns some rows with a value (a bandwidth, a kernel) for every penalty of a list, and is judged by others. The
errors of all trials add up, and the value and penalty with the least sum win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..rows import Rows


class Sample(NamedTuple):
    """Rows (n, d) with their targets (n, C) and weights (n,) or None."""

    X: Rows
    Y: np.ndarray
    weight: np.ndarray | None

    def at(self, rows: np.ndarray) -> Sample:
        """Some of them."""
        return Sample(self.X[rows], self.Y[rows], None if self.weight is None else self.weight[rows])


class Fold(NamedTuple):
    """Rows to learn from, and others to judge by."""

    learned: Sample
    held: Sample


def folds(sample: Sample, order: np.ndarray, few: int, learned: int) -> list[Fold]:
    """One cut of many rows in this order, behind the first ``learned``; of fewer than ``few`` four, each held out once.

    To be tested costs a row little, and steadies the choice.
    """
    if len(order) >= few:
        return [Fold(sample.at(order[:learned]), sample.at(order[learned:]))]
    quarters = np.array_split(order, 4)
    return [Fold(sample.at(np.concatenate(quarters[:k] + quarters[k + 1 :])), sample.at(quarters[k])) for k in range(4)]


def mistakes(F: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """Share of wrong labels, and a little of the squared error, for scores F and targets ±1, (n, C)."""
    wrong = (F >= 0) != (Y > 0) if Y.shape[1] == 1 else F.argmax(axis=1) != Y.argmax(axis=1)
    return float(np.average(wrong.ravel(), weights=weight) + 1e-6 * np.square(F - Y).mean())


def squares(F: np.ndarray, Y: np.ndarray, weight: Any) -> float:
    """Mean squared error."""
    return float(np.average(np.square(F - Y).sum(axis=1), weights=weight))


@dataclass(frozen=True)
class Tried:
    """A value with what its trials have found."""

    value: Any
    error: float  # the least over the penalties
    penalty: int  # the number of the one that has it
    found: Any  # what the first trial has learned


def tried(value: Any, trials: Iterable[tuple[np.ndarray, Any]]) -> Tried:
    """A value by its trials: of each the errors (penalties,) and what was learned."""
    errors, found = zip(*trials, strict=True)
    total = np.sum(errors, axis=0)
    return Tried(value, float(total.min()), int(np.argmin(total)), found[0])


def path(penalties: Sequence[float], step: Callable[[float, Any], tuple[Any, float]]) -> tuple[np.ndarray, Any]:
    """A trial of penalties in turn: ``step(penalty, start)`` gives a solution and its error, and begins at the last."""
    start, errors = None, []
    for penalty in penalties:
        start, error = step(penalty, start)
        errors.append(error)
    return np.array(errors), start


def least(some: Iterable[Tried]) -> Tried:
    """The one with the least error, of equal ones the first."""
    return min(some, key=lambda one: one.error)


def downhill(
    trial: Callable[[float], Tried], values: Iterable[float], start: Tried | None = None, patience: int = 1
) -> Tried:
    """The best of values that are tried in turn, until ``patience`` of them in a row are no better than the best.

    ``start`` is what they have to be better than.
    """
    best, worse = start, 0
    for value in values:
        new = trial(value)
        if best is None or new.error < best.error:
            best, worse = new, 0
        else:
            worse += 1
            if worse == patience:
                break
    assert best is not None, "there are no values"
    return best
