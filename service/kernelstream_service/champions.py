"""The champion, its challenger and former champions: what a call does to them, now and in a replay.

Everything here follows from the records of the log in their order (:mod:`.records`), so a replay needs nothing else.
"""

from __future__ import annotations

import contextlib
import io
import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.evaluate.runners import task_of

from .answers import Learned
from .log import Log
from .samples import Clock, Samples
from .scores import Scores

VERSIONS = 5  # former champions that are kept
GUARD_ROWS = 500  # rows after which a new champion is held against the former one

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


class Champions:
    """The models of a learner and all that its calls change; ``folder`` (a path) and its log exist already."""

    champion: ScoredModel

    def __init__(self, folder: Path, log: Log, remembered: int):
        self.folder, self.log, self.remembered = folder, log, remembered
        self.problems: dict[str, str] = {}
        self._waiting: OrderedDict[Any, Any] = OrderedDict()  # rows by id, until their targets come
        self._waiting_lock = threading.Lock()
        self._ids: OrderedDict[Any, None] = OrderedDict()  # of rows that have been learned
        self.version, self.total = 1, 0
        self.columns: list[str] | None = None
        self.samples = Samples()
        self.clock = Clock()
        self.positions: dict[str, int | str] = {}  # how far the sources have been read
        self._moved = False  # since the latest snapshot
        self.challenger: ScoredModel | None = None
        self.against: Scores | None = None  # of the champion, since the challenger came
        self.on_probation = False  # whether the challenger is the former champion
        self.policy: dict[str, float | None] = {"share": 0.0, "guard": None}
        self.rollbacks = 0  # by the guard
        self.retired: list[dict[str, int]] = []
        self._stale = True  # whether the readers' copy is out of date
        self._example: Any = None  # a row that was learned

    def _complain(self, what: str, message: str) -> None:
        if self.problems.get(what) != message:
            logger.error("%s: %s: %s", self.folder, what, message)
        self.problems[what] = message

    def _learn(self, X: Any, y: Any, ids: list[Any] | None, more: dict[str, Any]) -> Learned:
        repeated = aside = 0
        if ids is not None:
            fresh = list({name: i for i, name in reversed(list(enumerate(ids))) if name not in self._ids}.values())[
                ::-1
            ]
            repeated = len(ids) - len(fresh)
            if repeated:
                X = [X[i] for i in fresh] if isinstance(X, list) else X[fresh]
                y = None if y is None else y[fresh]
        n = len(X) if isinstance(X, list) else X.shape[0]
        if n:
            before = getattr(self.champion.model, "set_aside_", 0)
            self.champion.learn(X, y, self.against)
            aside = getattr(self.champion.model, "set_aside_", 0) - before
            if more.get("columns") is not None and self.columns is None:
                self.columns = more["columns"]
            if self.challenger is not None:
                self._learn_challenger(X, y)
            self.total += n
            self.samples.add(X)
            self._stale, self._example = True, X[-1:]
        if ids is not None:
            self._learned(ids)
        if more.get("positions"):
            self.positions = self.positions | more["positions"]
            self._moved = True
        return Learned(n, self.total, self.version, repeated, aside)

    def _learn_challenger(self, X: Any, y: Any) -> None:
        assert self.challenger is not None
        try:
            self.challenger.learn(X, y)
        except Exception as error:
            self.challenger.failures += 1
            logger.warning("%s: the challenger could not learn: %s", self.folder, error)

    def _learned(self, ids: list[Any]) -> None:
        for name in ids:
            self._ids[name] = None
            self._ids.move_to_end(name)
        while len(self._ids) > self.remembered:
            self._ids.popitem(last=False)
        with self._waiting_lock:
            for name in ids:
                self._waiting.pop(name, None)

    def _challenge(self, content: bytes) -> None:
        self.challenger, self.against, self.on_probation = None, None, False
        if content:
            self._compare(model_io.load(io.BytesIO(content)))
        self._stale = True

    def _compare(self, model: Any) -> None:
        """Let a model learn the same rows from now on, and score both."""
        self.challenger, self.against = ScoredModel(model, Scores(task_of(model))), Scores(self.champion.scores.task)

    def _set_policy(self, policy: dict[str, float | None]) -> None:
        self.policy, self._stale = policy, True

    def _version_file(self, version: int) -> Path:
        return self.folder / f"version-{version:06d}.ks"

    def _retire(self) -> None:
        """Write the champion to a file of its own, before the record that replaces it is written."""
        notes = {"live": {"scores": self.champion.scores.to_notes()}}
        model_io.save(self.champion.model, self._version_file(self.version), notes)

    def _before_promote(self) -> None:
        if self.challenger is None:
            raise ValueError("there is no challenger to promote")
        self._retire()

    def _before_rollback(self, to: int) -> None:
        model_io.read(self._version_file(to))  # an error must come now, not after the record is written
        self._retire()

    def _succeed(self, seat: ScoredModel) -> int:
        if not self._version_file(self.version).exists():  # in a replay, if it was removed
            self._retire()
        self.retired = [*self.retired, {"version": self.version, "rows": self.total}][-VERSIONS:]
        self.champion, self.challenger, self.against, self.on_probation = seat, None, None, False
        self.version += 1
        self._stale = True
        return self.version

    def _promote(self, back: bool = False) -> int:
        """Make the challenger the champion; with a guard the two are then compared, unless the former one returns."""
        assert self.challenger is not None
        former = self.champion
        version = self._succeed(self.challenger)
        if back:
            self.rollbacks += 1
        elif self.policy["guard"] is not None:
            self._compare(former.model)
            self.on_probation = True
        return version

    def _guard_speaks(self) -> bool:
        """Whether the champion does so much worse than the previous one, on the same rows, that it is replaced."""
        guard, own, former = self.policy["guard"], self.against, self.challenger
        if guard is None or not self.on_probation or own is None or former is None or own.rows < GUARD_ROWS:
            return False
        mine, others = own.recent_loss(), former.scores.recent_loss()
        return mine is not None and others is not None and not mine <= guard * others

    def _rollback(self, to: int) -> int:
        model, notes = model_io.read(self._version_file(to))
        return self._succeed(ScoredModel(model, Scores.from_notes(notes["live"]["scores"])))
