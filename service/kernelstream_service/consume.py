"""Learning from a broker, each message exactly once.

The position of the source is part of the learner's state: it is written to the journal with the rows it belongs to.
After a crash the reader continues from the position of the learner, whatever the broker remembers, so that messages
that are delivered again are not learned again, and none is skipped.

Messages that cannot be used are dead letters, written in the transaction in which the learner moves past them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import NotFittedError

from .answers import Dead
from .journal import LogError
from .learner import DurableLearner
from .rows import as_rows
from .sources import Message, Parsed, Position, Source, Unavailable, parse

MESSAGES_PER_CALL = 500  # messages learned in one call
READ_SECONDS = 0.2  # seconds to wait for messages
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


class Run:
    """A source that is read into a learner; the parameters are those of :func:`consume`."""

    def __init__(
        self, learner: DurableLearner, source: Source, target: str | None, answers: bool, stop: Callable[[], bool],
        done: Consumed,
    ):  # fmt: skip
        self.learner, self.source, self.target, self.answers = learner, source, target, answers
        self.stop, self.done = stop, done

    def read(self, batch: int, once: bool) -> None:
        """Read until asked to stop; while the source does not answer or the disk is full, wait, and read on."""
        started, outage, placed = time.monotonic(), Outage(self.stop), False
        try:
            while not self.stop():
                try:
                    if not placed:
                        self.source.seek(self.learner.positions)
                        placed = True
                    messages = self.source.read(batch, READ_SECONDS)
                    if messages:
                        self._take(messages)
                except (Unavailable, LogError) as error:
                    placed = False
                    self.done.outages += not outage.pause
                    outage.wait(error)
                    continue
                outage.over()
                self.done.messages += len(messages)
                if not messages and once and self.source.finished:
                    break
        finally:
            self.source.close()
            self.done.seconds = time.monotonic() - started

    def _take(self, messages: list[Message]) -> None:
        """Answer the messages that the learner has not learned yet, and learn them with the positions after them."""
        learner, dead = self.learner, list[Dead]()
        fresh = [message for message in messages if not _before(message, learner.positions)]
        if fresh:
            rows = self._readable(fresh, dead)
            if self.answers:
                self._answer(rows)
            self._learn([one for one in rows if one[1].y is not None], fresh, dead)
            for one in dead:
                self.done.skip(one.reason)
        self.source.settled(learner.positions)

    def _readable(self, messages: list[Message], dead: list[Dead]) -> list[tuple[Message, Parsed]]:
        """Messages whose rows the model can take, and what they hold; the others are dead letters."""
        found, view = [], self.learner.view
        for message in messages:
            try:
                about = parse(message.content, self.target)
                as_rows([about.row], view.model, view.columns)
                found.append((message, about))
            except ValueError as error:  # a BadMessage, or a RowError
                dead.append(message.dead(str(error)))
        return found

    def _learn(self, known: list[tuple[Message, Parsed]], read: list[Message], dead: list[Dead]) -> None:
        learner, positions = self.learner, _following(read)
        rows, y = [about.row for _, about in known], [about.y for _, about in known]
        try:
            self.done.learned += learner.learn(rows, y, positions=positions, dead=dead).learned
            return
        except ValueError:  # one of them is bad: learn them one by one
            pass
        for message, about in known:
            try:
                at = _following([message])
                self.done.learned += learner.learn([about.row], [about.y], positions=at, dead=dead).learned
            except ValueError as error:
                dead.append(message.dead(str(error)))
        learner.learn([], [], positions=positions, dead=dead)

    def _answer(self, rows: list[tuple[Message, Parsed]]) -> None:
        view = self.learner.latest()
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


def consume(
    learner: DurableLearner,
    source: Source,
    *,
    target: str | None = None,
    answers: bool = False,
    batch: int = MESSAGES_PER_CALL,
    once: bool = False,
    stop: Callable[[], bool] = bool,
    done: Consumed | None = None,
) -> Consumed:
    """Learn the messages of a source into one learner, from ``learner.positions`` on.

    Parameters
    ----------
    learner : DurableLearner
    source : Source
        It is closed in the end.
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
    done = Consumed() if done is None else done
    Run(learner, source, target, answers, stop, done).read(batch, once)
    return done


def _following(messages: list[Message]) -> dict[str, Position]:
    """The position after the messages, for each part."""
    return {message.part: message.following for message in messages}


def _before(message: Message, positions: dict[str, Position]) -> bool:
    """Whether a message comes before the position of its part, and has been learned."""
    position = positions.get(message.part)
    return position is not None and _order(message.following) <= _order(position)


def _order(position: Position) -> tuple[int, ...]:
    """Offsets are numbers; ids of Redis are two numbers with a dash."""
    return (position,) if isinstance(position, int) else tuple(int(part) for part in str(position).split("-"))


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
