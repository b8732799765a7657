"""What a live learner answers, and the errors it raises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelstream.checks import few


class StoreError(OSError):
    """The folder of a learner cannot be used."""


class InUse(StoreError):
    """Another process, or another learner of this one, owns the folder."""


class Busy(RuntimeError):
    """Too many calls are waiting; nothing of this one has been learned."""


class UnknownId(KeyError):
    """Targets came for rows that are not remembered."""

    def __init__(self, ids: list[Any]):
        super().__init__(ids)
        self.ids = ids

    def __str__(self) -> str:
        return f"no row is remembered under the id {few(map(repr, self.ids))}: send the row together with its target"


@dataclass(frozen=True, eq=False)
class View:
    """What readers see: a copy of the model at some moment, which never changes again."""

    model: Any
    version: int
    rows: int
    columns: tuple[str, ...] | None
    task: str = "regression"  # or "classification", "novelty"
    extras: tuple[str, ...] = ()  # methods besides predict that it answers

    @cached_property
    def classes(self) -> list[Any]:
        """Labels, in the order of the probabilities."""
        found: list[Any] = np.asarray(self.model.classes_).tolist()
        return found


@dataclass
class Learned:
    """Answer to a call of ``learn``: rows learned now, rows in all, version, rows left out as learned before.

    ``set_aside`` of the rows learned now had a target far outside the others, which the model did not believe.
    """

    learned: int
    total: int
    version: int
    repeated: int = 0
    set_aside: int = 0


@dataclass(frozen=True)
class Dead:
    """A message that could not be used: where it is from, and why."""

    part: str
    at: int | str
    reason: str
    content: bytes
