"""Learning from a broker, each message exactly once.

The position of the source is part of the learner's state: it is written to the log in the record of the rows it belongs
to. After a crash the reader goes on at the position the learner has, whatever the broker remembers, so that messages
that were delivered again are not learned again and none is left out.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .answers import StoreError
from .learner import DurableLearner
from .rows import as_rows
from .sources import BadMessage, Message, Parsed, Position, Source, parse
from .store import Store

BATCH = 500  # messages learned in one call
WAIT = 0.2  # seconds to wait for messages
CURSOR = "cursor"  # name of the learner that only holds the position up to which all others have learned

logger = logging.getLogger("kernelstream.live")


@dataclass
class Consumed:
    """What a run did.

    Attributes
    ----------
    messages, learned, skipped, answered : int
        Messages read; rows learned; messages that hold no row the model can take; answers sent.
    seconds : float
    """

    messages: int = 0
    learned: int = 0
    skipped: int = 0
    answered: int = 0
    seconds: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        """Count a message that is left out."""
        self.skipped += 1
        if reason in self.reasons or len(self.reasons) < 20:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        logger.warning("a message is left out: %s", reason)


class Reader:
    """Learns what a source brings.

    Parameters
    ----------
    source : Source
    target : str, optional
        Column of the target, where messages are plain objects.
    answers : bool, default=False
        Send a prediction for every message, made before it is learned.
    batch : int, default=500
        Messages of one call of ``learn``.
    """

    def __init__(self, source: Source, *, target: str | None = None, answers: bool = False, batch: int = BATCH):
        self.source, self.target, self.answers, self.batch = source, target, answers, batch
        self.done = Consumed()

    def run(
        self,
        handle: Callable[[list[Message]], Any],
        *,
        once: bool = False,
        stop: Callable[[], bool] | None = None,
        progress: Callable[[Consumed], Any] | None = None,
    ) -> Consumed:
        """Read until asked to stop; with ``once``, until there are no more messages."""
        started = time.monotonic()
        while stop is None or not stop():
            messages = self.source.read(self.batch, WAIT)
            if messages:
                self.done.messages += len(messages)
                handle(messages)
                self.done.seconds = time.monotonic() - started
                if progress is not None:
                    progress(self.done)
            elif once and self.source.finished:
                break
        self.done.seconds = time.monotonic() - started
        return self.done

    def learn(self, learner: DurableLearner, messages: list[Message], contents: list[Parsed | None]) -> None:
        """Answer messages and learn them, together with the positions that follow them, in one step."""
        fresh = [(m, t) for m, t in zip(messages, contents) if not _before(m, learner.positions.get(m.part))]
        if not fresh:
            return
        positions = {message.part: message.following for message, _ in fresh}
        rows = [(message, about) for message, about in fresh if about is not None and self._takes(learner, about)]
        if self.answers:
            self._answer(learner, rows)
        known = [(message, about) for message, about in rows if about.y is not None]
        try:
            targets = [about.y for _, about in known]
            learned = learner.learn([about.row for _, about in known], targets, positions=positions).learned
        except ValueError:  # one of them is wrong: learn them one by one
            learned = sum(self._learn_one(learner, message, about) for message, about in known)
            learner.learn([], [], positions=positions)
        self.done.learned += learned

    def _learn_one(self, learner: DurableLearner, message: Message, about: Parsed) -> int:
        try:
            return learner.learn([about.row], [about.y], positions={message.part: message.following}).learned
        except ValueError as error:
            self.done.skip(str(error))
            return 0

    def _takes(self, learner: DurableLearner, about: Parsed) -> bool:
        """Whether the model can take the row; if not, it is counted as left out."""
        view = learner.view
        try:
            as_rows([about.row], view.model, view.columns)
        except ValueError as error:
            self.done.skip(str(error))
            return False
        return True

    def _answer(self, learner: DurableLearner, rows: list[tuple[Message, Parsed]]) -> None:
        view = learner.latest()
        if not rows:
            return
        X = as_rows([about.row for _, about in rows], view.model, view.columns)
        try:
            predicted = np.asarray(view.model.predict(X)).tolist()
        except NotFittedError:
            predicted = [None] * len(rows)
        answers = [
            (message, {"part": message.part, "at": message.at, "prediction": value, "version": view.version})
            for (message, _), value in zip(rows, predicted)
        ]
        self.source.answer(answers)
        self.done.answered += len(answers)

    def parsed(self, message: Message, by: str | None = None) -> Parsed | None:
        """The content of a message; None where it has none, and then it is counted."""
        try:
            return parse(message.content, self.target, by)
        except BadMessage as error:
            self.done.skip(str(error))
            return None


def consume(learner: DurableLearner, source: Source, **options: Any) -> Consumed:
    """Learn the messages of a source into one learner.

    Parameters
    ----------
    learner : DurableLearner
        The reader goes on from ``learner.positions``.
    source : Source
        It is closed in the end.
    **options
        ``target``, ``answers``, ``batch`` of :class:`Reader`; ``once``, ``stop``, ``progress`` of its ``run``.
    """
    making = {name: options.pop(name) for name in ("target", "answers", "batch") if name in options}
    reader = Reader(source, **making)
    try:
        source.seek(learner.positions)

        def handle(messages: list[Message]) -> None:
            reader.learn(learner, messages, [reader.parsed(message) for message in messages])
            source.settled(learner.positions)

        return reader.run(handle, **options)
    finally:
        source.close()


def consume_by(store: Store, model: Any, source: Source, by: str, **options: Any) -> Consumed:
    """Learn the messages of a source into one small learner for each value of a column.

    Each learner has the positions up to which it has learned; a learner named by :data:`CURSOR` has the position up to
    which all have, and the reader goes on from there. As many learners as the store keeps awake are in memory.

    Parameters
    ----------
    store : Store
    model : estimator
        What every learner starts as.
    source : Source
        It is closed in the end.
    by : str
        The column; it is not part of the rows that are learned.
    **options
        As in :func:`consume`.
    """
    making = {name: options.pop(name) for name in ("target", "answers", "batch") if name in options}
    reader = Reader(source, **making)
    if CURSOR not in store:
        store.create(CURSOR, model)
    try:
        with store.use(CURSOR) as cursor:
            source.seek(cursor.positions)

            def handle(messages: list[Message]) -> None:
                groups: dict[str, list[tuple[Message, Parsed]]] = {}
                for message in messages:
                    about = reader.parsed(message, by)
                    if about is not None:
                        groups.setdefault(name_of_key(about.key or ""), []).append((message, about))
                for name, members in groups.items():
                    if name not in store:
                        store.create(name, model)
                    with store.use(name) as learner:
                        reader.learn(learner, [m for m, _ in members], [about for _, about in members])
                positions = {message.part: message.following for message in messages}
                cursor.learn([], [], positions=positions)
                source.settled(cursor.positions)

            return reader.run(handle, **options)
    finally:
        source.close()


def name_of_key(key: str) -> str:
    """Name of the learner of a key: keys may hold anything, names may not."""
    return "key-" + hashlib.sha256(key.encode()).hexdigest()[:32]


class Shared:
    """Learners of the partitions that a group of processes shares: one for each partition, in a store they all see.

    A partition moves to another process with its state: the old owner writes a snapshot and lets go of the folder
    before the new one reads it.

    Parameters
    ----------
    folder : path
        Where all processes of the group find it.
    name : str
        Learners are named after it and the number of the partition.
    model : estimator
        What every learner starts as.
    patience : float, default=30
        Seconds to wait for the former owner of a partition.
    **options
        Of :class:`DurableLearner`.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str, model: Any, patience: float = 30.0, **options: Any):
        self.folder, self.name, self.model, self.patience = Path(folder), name, model, patience
        self.options = options
        self.learners: dict[str, DurableLearner] = {}

    def gained(self, parts: list[str]) -> dict[str, Position]:
        """Wake the learners of parts; returns where to go on."""
        positions: dict[str, Position] = {}
        for part in parts:
            learner = self._wake(part)
            self.learners[part] = learner
            positions |= learner.positions
        return positions

    def _wake(self, part: str) -> DurableLearner:
        folder = self.folder / f"{self.name}-{part.rsplit('/', 1)[1]}"
        until = time.monotonic() + self.patience
        while True:
            try:
                return DurableLearner(folder, self.model, **self.options)
            except StoreError as error:  # the process that had it is still writing
                if "in use" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def lost(self, parts: list[str]) -> None:
        """Put the learners of parts to sleep."""
        for part in parts:
            learner = self.learners.pop(part, None)
            if learner is not None:
                learner.close()

    def close(self) -> None:
        """Put all to sleep."""
        self.lost(list(self.learners))


def consume_group(shared: Shared, source: Source, **options: Any) -> Consumed:
    """Learn the partitions that a group gives to this process, each into a learner of its own."""
    making = {name: options.pop(name) for name in ("target", "answers", "batch") if name in options}
    reader = Reader(source, **making)

    def handle(messages: list[Message]) -> None:
        parts: dict[str, list[Message]] = {}
        for message in messages:
            parts.setdefault(message.part, []).append(message)
        for part, members in parts.items():
            learner = shared.learners.get(part)
            if learner is not None:  # otherwise it has just gone to another process, which reads the messages again
                reader.learn(learner, members, [reader.parsed(message) for message in members])
                source.settled(learner.positions)

    try:
        source.seek({})
        return reader.run(handle, **options)
    finally:
        try:
            source.close()
        finally:
            shared.close()


def _before(message: Message, position: Position | None) -> bool:
    """Whether a message comes before a position, and has been learned."""
    if position is None:
        return False
    return (
        _order(message.at) < _order(position) if isinstance(message.at, int) else _order(message.at) <= _order(position)
    )


def _order(position: Position) -> tuple[int, ...]:
    """Offsets are numbers; ids of Redis are two numbers with a dash."""
    return (position,) if isinstance(position, int) else tuple(int(part) for part in str(position).split("-"))
