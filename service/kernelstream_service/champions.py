"""The champion, its challenger and former champions: what a call does to them, now and in a replay.

Everything here follows from the calls in their order (:mod:`.records`), so a replay needs nothing else.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.evaluate.runners import rows_learned, task_of
from kernelstream.files import discard, numbered

from . import records
from .answers import Learned
from .scores import Clock, Scores

VERSIONS = 5  # former champions that are kept

logger = logging.getLogger("kernelstream_service")


@dataclass
class ScoredModel:
    """A model and its scores."""

    model: Any
    scores: Scores
    failures: int = 0

    def learn(self, X: Any, y: Any, also: Scores | None = None) -> None:
        """Learn rows and score the answers given before; ``also`` scores them too."""
        asked = None
        if self.scores.task == "classification" and not hasattr(self.model, "loss"):
            with contextlib.suppress(Exception):  # a model without probabilities, or without a row so far
                asked = self.model.predict_proba(X)
        answer = self.model.learn(X) if self.scores.task == "novelty" else self.model.learn(X, y)
        for scores in (self.scores, also):
            if scores is not None:
                try:
                    scores.add(self.model, answer, y, asked)
                except Exception:  # the rows are learned: an error in counting must not look like a refusal
                    logger.exception("the answers of %s cannot be scored", type(self.model).__name__)


class Versions:
    """Former champions, each in a file of its own with its scores."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, version: int) -> Path:
        """Where a version is."""
        return self.folder / f"version-{version:06d}.ks"

    def save(self, version: int, seat: ScoredModel) -> None:
        """Write a version."""
        model_io.save(seat.model, self.path(version), {"scores": seat.scores.to_notes()})

    def load(self, version: int) -> ScoredModel:
        """Read a version."""
        model, notes = model_io.read(self.path(version))
        return ScoredModel(model, Scores.from_notes(notes["scores"]))

    def drop(self, before: int) -> None:
        """Remove older versions."""
        discard(path for version, path in numbered(self.folder, "version") if version < before)


@dataclass
class Champions:
    """The models of a learner and all that its calls change.

    Attributes
    ----------
    champion, challenger : ScoredModel, the second may be None
    against : Scores or None
        Those of the champion since the challenger came.
    total, version : int
        Rows learned; the number of the champion.
    columns : list of str or None
        Names of the columns of a model that does not know them itself.
    positions : dict
        How far the sources have been read.
    retired : list of dict
        Versions that can be restored, and how many rows had been learned when they ended.
    ids : OrderedDict
        Names of the last rows that were learned.
    """

    champion: ScoredModel
    versions: Versions
    remembered: int
    columns: list[str] | None = None
    version: int = 1
    total: int = 0
    positions: dict[str, int | str] = field(default_factory=dict)
    retired: list[dict[str, int]] = field(default_factory=list)
    ids: OrderedDict[Any, None] = field(default_factory=OrderedDict)
    challenger: ScoredModel | None = None
    against: Scores | None = None
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of(cls, model: Any, versions: Versions, remembered: int, columns: list[str] | None) -> Champions:
        """Those of a model to start with."""
        seat = ScoredModel(model, Scores(task_of(model)))
        return cls(seat, versions, remembered, columns, total=rows_learned(model))

    # ---------------------------------------------------------------- calls
    def apply(self, call: records.Call) -> Any:
        """What a call does; returns its answer."""
        match call:
            case records.Learn():
                return self._learn(call)
            case records.Challenge():
                return self._challenge(call.content)
            case records.Promote():
                return self._promote()
            case records.Rollback():
                return self._succeed(self.versions.load(call.to))

    def prepare(self, call: records.Call) -> None:
        """What must be on the disk, and what must be possible, before a call is written."""
        if isinstance(call, records.Promote) and self.challenger is None:
            raise ValueError("there is no challenger to promote")
        if isinstance(call, records.Rollback):
            self.versions.load(call.to)
        if isinstance(call, (records.Promote, records.Rollback)):
            self.versions.save(self.version, self.champion)

    def _learn(self, call: records.Learn) -> Learned:
        X, y, repeated, aside = call.X, call.y, 0, 0
        if call.ids is not None:
            first = {name: i for i, name in reversed(list(enumerate(call.ids))) if name not in self.ids}
            fresh = sorted(first.values())
            repeated = len(call.ids) - len(fresh)
            if repeated:
                X = [X[i] for i in fresh] if isinstance(X, list) else X[fresh]
                y = None if y is None else y[fresh]
        n = call.n - repeated
        if n:
            before = getattr(self.champion.model, "set_aside_", 0)
            self.champion.learn(X, y, self.against)
            aside = getattr(self.champion.model, "set_aside_", 0) - before
            self.columns = self.columns or call.columns
            if self.challenger is not None:
                self._learn_challenger(self.challenger, X, y)
            self.total += n
        for name in call.ids or ():
            self.ids[name] = None
            self.ids.move_to_end(name)
        while len(self.ids) > self.remembered:
            self.ids.popitem(last=False)
        self.positions = self.positions | (call.positions or {})
        return Learned(n, self.total, self.version, repeated, aside)

    @staticmethod
    def _learn_challenger(challenger: ScoredModel, X: Any, y: Any) -> None:
        try:
            challenger.learn(X, y)
        except Exception as error:
            challenger.failures += 1
            logger.warning("the challenger %s could not learn: %s", type(challenger.model).__name__, error)

    def _challenge(self, content: bytes) -> None:
        self.challenger, self.against = None, None
        if content:
            model = model_io.load(io.BytesIO(content))
            self.challenger = ScoredModel(model, Scores(task_of(model)))
            self.against = Scores(self.champion.scores.task)

    def _promote(self) -> int:
        if self.challenger is None:
            raise ValueError("there is no challenger to promote")
        return self._succeed(self.challenger)

    def _succeed(self, seat: ScoredModel) -> int:
        if not self.versions.path(self.version).exists():  # in a replay, if it was removed
            self.versions.save(self.version, self.champion)
        self.retired = [*self.retired, {"version": self.version, "rows": self.total}][-VERSIONS:]
        self.champion, self.challenger, self.against = seat, None, None
        self.version += 1
        return self.version

    # ---------------------------------------------------------------- snapshots
    def notes(self) -> dict[str, Any]:
        """All but the models, as JSON knows it."""
        rival = self.challenger
        return {
            "version": self.version, "total": self.total, "columns": self.columns, "positions": self.positions,
            "retired": self.retired, "ids": list(self.ids), "clock": self.clock.to_notes(),
            "scores": self.champion.scores.to_notes(),
            "challenger": None if rival is None or self.against is None else {
                "scores": rival.scores.to_notes(), "failures": rival.failures, "against": self.against.to_notes(),
            },
        }  # fmt: skip

    @classmethod
    def from_notes(
        cls, notes: dict[str, Any], champion: Any, challenger: Any, versions: Versions, remembered: int
    ) -> Champions:
        """What :meth:`notes` gave, with the models."""
        made = cls(ScoredModel(champion, Scores.from_notes(notes["scores"])), versions, remembered)
        for name in ("version", "total", "columns", "positions", "retired"):
            setattr(made, name, notes[name])
        made.ids, made.clock = OrderedDict.fromkeys(notes["ids"]), Clock.from_notes(notes["clock"])
        if (about := notes["challenger"]) is not None:
            made.challenger = ScoredModel(challenger, Scores.from_notes(about["scores"]), about["failures"])
            made.against = Scores.from_notes(about["against"])
        return made
