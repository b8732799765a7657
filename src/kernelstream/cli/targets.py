"""What the targets of a stream are: labels or numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

MAX_LABELS = 30  # more different whole numbers than this among the first rows are hardly labels
MAX_LABEL_SHARE = 0.5  # labels of which a larger share is different are none


def find_task(y: np.ndarray) -> str:
    """The task that the first targets suggest.

    >>> find_task(np.array([0.0, 1.0, 1.0])), find_task(np.array([0.5, 1.0])), find_task(np.array(["a", "b", "c"]))
    ('binary', 'regression', 'multiclass')
    """
    different = len(np.unique(y))
    if y.dtype.kind == "f" and not _is_whole(y).all():
        return "regression"
    if y.dtype.kind in "iuf" and different > MAX_LABELS:
        return "regression"
    if different > max(MAX_LABELS, MAX_LABEL_SHARE * len(y)):
        raise ValueError(
            f"nearly every target is a different label ({different:,} in the first {len(y):,} rows, such as "
            f"{str(y[0])[:40]!r} and {str(y[-1])[:40]!r}): set --decimal or --thousands if they are numbers, or "
            f"choose another --target; --task multiclass learns them as labels anyway"
        )
    return "binary" if different <= 2 else "multiclass"


def task_of(stream: Any, given: str = "auto") -> str:
    """The task that is given or, for "auto", that the first targets of a stream suggest; ValueError without rows."""
    first = stream.peek()
    if first is None:
        raise ValueError(f"{stream.name} has no rows")
    return find_task(first[1]) if given == "auto" else given


def _is_whole(y: np.ndarray) -> np.ndarray:
    """Which numbers could be labels: integers that floating-point numbers hold exactly."""
    return (y == np.round(y)) & (np.abs(y) <= 2.0**53)


def kind_of(task: str) -> str:
    """ "regression" or "classification": what a task is to an evaluation."""
    return "regression" if task == "regression" else "classification"


def as_labels(y: np.ndarray) -> np.ndarray:
    """Whole numbers as integers, so that labels look as they did in the file."""
    if y.dtype.kind == "f":
        whole = _is_whole(y)
        if not whole.all():
            raise ValueError(f"the target {y[~whole][0]:g} is not a label: --task regression learns numbers")
        return y.astype(np.int64)
    return y


def as_numbers(y: np.ndarray) -> np.ndarray:
    """Targets of regression."""
    if y.dtype.kind not in "biuf":
        raise ValueError(f"the target {y[0]!s} is not a number: --task binary or multiclass learns labels")
    return y.astype(np.float64)


def two_labels(known: Iterable[Any] = ()) -> Callable[[np.ndarray], np.ndarray]:
    """A reader of a target that was declared binary: a third label besides those ``known`` and read is an error."""
    seen = list(known)

    def read(y: np.ndarray) -> np.ndarray:
        y = as_labels(y)
        seen.extend(label for label in np.unique(y).tolist() if label not in seen)
        if len(seen) > 2:
            raise ValueError(
                f"the target has a third label, {seen[2]!r}, besides {seen[0]!r} and {seen[1]!r}: "
                f"--task multiclass learns more than two"
            )
        return y

    return read


def targets_for(task: str, given: str = "auto", known: Iterable[Any] = ()) -> Any:
    """How the targets of a task are read; None where there is none.

    ``given`` is the task of the command line: a target declared binary must be so. ``known`` are labels of rows before.
    """
    if task == given == "binary":
        return two_labels(known)
    return {"regression": as_numbers, "novelty": None}.get(task, as_labels)
