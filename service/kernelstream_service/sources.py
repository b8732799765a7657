"""Where messages come from: the few calls that a broker must offer, and what a message holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from kernelstream.streams.jsonl import json_object

from .answers import Dead

Position = int | str


@dataclass(frozen=True)
class Message:
    """A message of a source.

    Attributes
    ----------
    part : str
        The part of the source that it is from: "topic/partition" or a stream. Messages of a part have an order.
    at : int or str
        Its place there; answers are known by it.
    following : int or str
        The position to go on from when it has been learned.
    content : bytes
    """

    part: str
    at: Position
    following: Position
    content: bytes

    def dead(self, reason: str) -> Dead:
        """The message as one that cannot be used."""
        return Dead(self.part, self.at, reason, self.content)


class Source(Protocol):
    """Messages in order, part by part, from any position on. Its methods may raise :class:`Unavailable`."""

    finished: bool  # the last read found nothing more

    def seek(self, positions: dict[str, Position]) -> None:
        """Continue from these positions, also after an outage; parts without one start at their beginning."""

    def read(self, most: int, seconds: float) -> list[Message]:
        """At most ``most`` messages; an empty list when none came in time."""

    def answer(self, answers: list[tuple[Message, dict[str, Any]]]) -> None:
        """Send answers to messages; an answer that is sent twice is recognized by the place of its message."""

    def settled(self, positions: dict[str, Position]) -> None:
        """Tell the broker, for its lag, that everything before these positions has been learned."""

    def close(self) -> None:
        """Close the connection."""


class Unavailable(OSError):
    """The source does not answer; it may do so later."""


class BadMessage(ValueError):
    """A message that holds no row."""


@dataclass(frozen=True)
class Parsed:
    """What a message says: a row, and its target if it is known."""

    row: Any
    y: Any = None


def parse(content: bytes, target: str | None) -> Parsed:
    """The row in a message.

    JSON: an object of columns, among them ``target`` (null or absent where it is not known yet); without a target's
    name, ``{"row": {...} or [...], "y": ...}``.
    """
    found = json_object(content)
    if isinstance(found, str):
        raise BadMessage(found)
    if target is not None:
        return Parsed({name: value for name, value in found.items() if name != target}, found.get(target))
    if not isinstance(found.get("row"), (dict, list)):
        raise BadMessage('it has no "row" (where messages are plain objects, name the column of the target)')
    return Parsed(found["row"], found.get("y"))


def split(url: str) -> tuple[str, str, str]:
    """Kind, address and topic of ``kafka://HOST:PORT/TOPIC`` or ``redis://HOST:PORT/STREAM``."""
    parts = urlsplit(url)
    address, topic = parts.netloc, unquote(parts.path.strip("/"))
    if parts.scheme not in ("kafka", "redis", "rediss") or not address or not topic:
        raise ValueError(f"a source is kafka://HOST:PORT/TOPIC or redis://HOST:PORT/STREAM, got {url!r}")
    return parts.scheme, address, topic


def open_source(url: str, answers: str | None = None, options: dict[str, str] | None = None) -> Source:
    """The source of a URL; ``answers`` is the topic or stream that answers go to."""
    kind, address, topic = split(url)
    if kind == "kafka":
        from .kafka import Kafka

        return Kafka(address, topic, answers, options)
    from .redis import Redis

    return Redis(f"{kind}://{address}", topic, answers)
