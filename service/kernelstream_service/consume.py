"""Learning from a broker, each message exactly once.

The position of the source is part of the learner's state: it is written to the log in the record of the rows it belongs
to. After a crash the reader continues from the position of the learner, whatever the broker remembers, so that messages
that are delivered again are not learned again, and none is skipped.

Messages that cannot be used are dead letters, lines of JSON in a file of the learner's folder. A line is written before
the learner moves past its message, so that none is missing after a crash; a duplicate is recognized by its part and
place.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .answers import InUse, StoreError
from .learner import DurableLearner
from .log import LogError
from .rows import as_rows
from .sources import BadMessage, Message, Parsed, Position, Source, Unavailable, parse
from .store import Store

MESSAGES_PER_CALL = 500  # messages learned in one call
READ_SECONDS = 0.2  # seconds to wait for messages
CURSOR = "cursor"  # name of the learner that only holds the position up to which all others have learned
DEAD_FILE, FORMER_DEAD_FILE = "dead.jsonl", "dead.old.jsonl"
DEAD_FILE_BYTES = 64 << 20  # of a file; then it becomes the former one, and the one before that goes
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0  # seconds to wait, at first and at most
STOP_SECONDS = 0.1  # seconds after which a request to stop is seen

logger = logging.getLogger("kernelstream_service")


@dataclass
class Consumed:
    """What a run did.

    Attributes
    ----------
    messages, learned, skipped, answered, outages : int
        Messages read; rows learned; messages without a row that the model can take; answers sent; how often the source
        did not answer, or the disk was full.
    seconds : float
    """

    messages: int = 0
    learned: int = 0
    skipped: int = 0
    answered: int = 0
    outages: int = 0
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
    once : bool, default=False
        End when there are no more messages.
    stop : callable, optional
        Called repeatedly; True ends the run.
    done : Consumed, optional
        Where to count what is done, so that others can read it during the run.
    """

    def __init__(
        self,
        source: Source,
        *,
        target: str | None = None,
        answers: bool = False,
        batch: int = MESSAGES_PER_CALL,
        once: bool = False,
        stop: Callable[[], bool] = lambda: False,
        done: Consumed | None = None,
    ):
        self.source, self.target, self.answers, self.batch = source, target, answers, batch
        self.once, self.stop = once, stop
        self.done = Consumed() if done is None else done
        self._dead: set[tuple[str, Position]] = set()  # messages of this batch that are among the dead letters

    def run(self, handle: Callable[[list[Message]], Any], positions: Callable[[], dict[str, Position]]) -> Consumed:
        """Read until asked to stop; with ``once``, until there are no more messages. The source is closed in the end.

        A source that does not answer at first is an error. Once it has answered, the run waits while the source is
        down or the disk is full, and then reads on from ``positions()``.
        """
        started, outage = time.monotonic(), Outage(self.stop)
        try:
            self.source.seek(positions())
            while not self.stop():
                try:
                    if outage.pause:
                        self.source.seek(positions())
                    messages = self.source.read(self.batch, READ_SECONDS)
                    if messages:
                        handle(messages)
                except OSError as error:
                    if not passes(error):
                        raise
                    self.done.outages += not outage.pause
                    outage.wait(error)
                    continue
                outage.over()
                self._dead.clear()
                self.done.seconds = time.monotonic() - started
                self.done.messages += len(messages)
                if not messages and self.once and self.source.finished:
                    break
        finally:
            self.source.close()
        self.done.seconds = time.monotonic() - started
        return self.done

    def take(self, learner: DurableLearner, messages: list[Message]) -> None:
        """Learn the messages that a learner has not learned yet."""
        fresh = [message for message in messages if not _before(message, learner.positions)]
        if fresh:
            self.learn(learner, self.parsed(learner, fresh), fresh)
        self.source.settled(learner.positions)

    def learn(self, learner: DurableLearner, contents: list[tuple[Message, Parsed]], read: list[Message]) -> None:
        """Answer messages and learn them, together with the positions after what was read, in one step."""
        rows = [(message, about) for message, about in contents if self._takes(learner, message, about)]
        if self.answers:
            self._answer(learner, rows)
        known = [(message, about) for message, about in rows if about.y is not None]
        positions = _following(read)
        try:
            targets = [about.y for _, about in known]
            learned = learner.learn([about.row for _, about in known], targets, positions=positions).learned
        except ValueError:  # one of them is bad: learn them one by one
            learned = sum(self._learn_one(learner, message, about) for message, about in known)
            learner.learn([], [], positions=positions)
        self.done.learned += learned

    def _learn_one(self, learner: DurableLearner, message: Message, about: Parsed) -> int:
        try:
            return learner.learn([about.row], [about.y], positions=_following([message])).learned
        except ValueError as error:
            self._leave_out(learner, message, str(error))
            return 0

    def _takes(self, learner: DurableLearner, message: Message, about: Parsed) -> bool:
        """Whether the model can take the row; if not, the message is left out."""
        view = learner.view
        try:
            as_rows([about.row], view.model, view.columns)
        except ValueError as error:
            self._leave_out(learner, message, str(error))
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

    def parsed(
        self, learner: DurableLearner, messages: list[Message], by: str | None = None
    ) -> list[tuple[Message, Parsed]]:
        """Messages and their content; those without a row are left out."""
        found = []
        for message in messages:
            try:
                found.append((message, parse(message.content, self.target, by)))
            except BadMessage as error:
                self._leave_out(learner, message, str(error))
        return found

    def _leave_out(self, learner: DurableLearner, message: Message, reason: str) -> None:
        """Count a message that cannot be used, and keep it in a file, before the position moves past it."""
        if (message.part, message.at) in self._dead:  # by an earlier attempt, before an outage
            return
        bury(learner.folder / DEAD_FILE, message, reason)
        self._dead.add((message.part, message.at))
        self.done.skip(reason)


def consume(learner: DurableLearner, source: Source, **options: Any) -> Consumed:
    """Learn the messages of a source into one learner.

    Parameters
    ----------
    learner : DurableLearner
        The reader goes on from ``learner.positions``.
    source : Source
        It is closed in the end.
    **options
        Of :class:`Reader`: ``target``, ``answers``, ``batch``, ``once``, ``stop``, ``done``.
    """
    reader = Reader(source, **options)
    return reader.run(lambda messages: reader.take(learner, messages), lambda: learner.positions)


def consume_by(store: Store, model: Any, source: Source, by: str, **options: Any) -> Consumed:
    """Learn the messages of a source into one small learner for each value of a column.

    Each learner has the positions up to which it has learned; a learner named by :data:`CURSOR` has the position up to
    which all have, and the reader goes on from there. The store limits how many learners are in memory.

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
    reader = Reader(source, **options)
    if CURSOR not in store:
        store.create(CURSOR, model)
    with store.use(CURSOR) as cursor:

        def handle(messages: list[Message]) -> None:
            fresh = [message for message in messages if not _before(message, cursor.positions)]
            groups: dict[str, list[tuple[Message, Parsed]]] = {}
            for message, about in reader.parsed(cursor, fresh, by):
                groups.setdefault(about.key or "", []).append((message, about))
            for key, members in groups.items():
                name = name_of_key(key)
                if name not in store:
                    store.create(name, model, key=key)
                with store.use(name) as learner:
                    new = [(message, about) for message, about in members if not _before(message, learner.positions)]
                    reader.learn(learner, new, [message for message, _ in new])
            cursor.learn([], [], positions=_following(fresh))
            source.settled(cursor.positions)

        return reader.run(handle, lambda: cursor.positions)


def name_of_key(key: str) -> str:
    """Name of the learner of a key: keys may hold anything, names may not."""
    return "key-" + hashlib.sha256(key.encode()).hexdigest()[:32]


class Shared:
    """Learners of the partitions that a group of processes shares: one per partition, in a folder that all can reach.

    A partition moves to another process with its state: the old owner writes a snapshot and releases the folder
    before the new owner reads it.

    Parameters
    ----------
    folder : path
        One that all processes of the group can reach.
    name : str
        Learners are named after it and the number of the partition.
    model : estimator
        What every learner starts as.
    patience : float, default=30
        Seconds to wait for the previous owner of a partition.
    **options
        Of :class:`DurableLearner`.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str, model: Any, patience: float = 30.0, **options: Any):
        self.folder, self.name, self.model, self.patience = Path(folder), name, model, patience
        self.options = options
        self.learners: dict[str, DurableLearner] = {}

    def gained(self, parts: list[str]) -> dict[str, Position]:
        """Wake the learners of parts; returns the positions to continue from."""
        positions: dict[str, Position] = {}
        for part in parts:
            learner = self._wake(part)
            self.learners[part] = learner
            positions |= learner.positions
        return positions

    def positions(self) -> dict[str, Position]:
        """The positions of the learners that are awake."""
        return {part: at for learner in self.learners.values() for part, at in learner.positions.items()}

    def _wake(self, part: str) -> DurableLearner:
        folder = self.folder / f"{self.name}-{part.rsplit('/', 1)[1]}"
        until = time.monotonic() + self.patience
        while True:
            try:
                return DurableLearner(folder, self.model, **self.options)
            except InUse:  # the process that had it is still writing
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            except OSError as error:  # without its learner the part must not count as gained
                raise StoreError(f"{folder} cannot be used: {error}") from error

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
    """Learn the partitions that the group assigns to this process, each into a learner of its own."""
    reader = Reader(source, **options)

    def handle(messages: list[Message]) -> None:
        parts: dict[str, list[Message]] = {}
        for message in messages:
            parts.setdefault(message.part, []).append(message)
        for part, members in parts.items():
            learner = shared.learners.get(part)
            if learner is not None:  # otherwise it has just moved to another process, which reads the messages again
                reader.take(learner, members)

    try:
        return reader.run(handle, shared.positions)
    finally:
        shared.close()


def _following(messages: list[Message]) -> dict[str, Position]:
    """The position after the messages, for each part."""
    return {message.part: message.following for message in messages}


def _before(message: Message, positions: dict[str, Position]) -> bool:
    """Whether a message comes before the position of its part, and has been learned."""
    position = positions.get(message.part)
    if position is None:
        return False
    return (
        _order(message.at) < _order(position) if isinstance(message.at, int) else _order(message.at) <= _order(position)
    )


def _order(position: Position) -> tuple[int, ...]:
    """Offsets are numbers; ids of Redis are two numbers with a dash."""
    return (position,) if isinstance(position, int) else tuple(int(part) for part in str(position).split("-"))


def bury(path: Path, message: Message, reason: str) -> None:
    """Add a message to the dead letters; LogError if it cannot be written."""
    line = {
        "part": message.part, "at": message.at, "reason": reason, "time": time.time(),
        "content": message.content.decode(errors="backslashreplace"),
    }  # fmt: skip
    try:
        if path.exists() and path.stat().st_size > DEAD_FILE_BYTES:
            os.replace(path, path.with_name(FORMER_DEAD_FILE))
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise LogError(error.errno, f"{path.name} cannot be written: {error.strerror or error}") from error


def passes(error: OSError) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, (Unavailable, LogError)) or error.errno in (errno.ENOSPC, errno.EDQUOT)


class Outage:
    """Waits longer and longer until something works again, or a stop is requested; logs the start and end of an outage.

    Attributes
    ----------
    pause : float
        Seconds of the last wait; 0 while all is well.
    """

    def __init__(self, stop: Callable[[], bool]):
        self.stop, self.pause, self.since = stop, 0.0, 0.0

    def wait(self, error: OSError) -> None:
        """Wait before the next attempt."""
        if not self.pause:
            self.since = time.monotonic()
            logger.warning("%s; trying again until it works", error)
        self.pause = min(LONGEST_PAUSE, 2 * self.pause or FIRST_PAUSE)
        until = time.monotonic() + self.pause
        while (left := until - time.monotonic()) > 0 and not self.stop():
            time.sleep(min(STOP_SECONDS, left))

    def over(self) -> None:
        """Note that it works again."""
        if self.pause:
            logger.warning("it works again, after %.1f s", time.monotonic() - self.since)
            self.pause = 0.0
