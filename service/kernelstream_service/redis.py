"""A stream of Redis as a source (extra ``redis``)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from .extras import needs
from .sources import Message, Position, Unavailable

with needs("redis"):
    import redis

FIELD = b"json"  # the field of an entry that holds the message


class Redis:
    """The entries of a stream.

    An entry holds a field ``json`` with the message, or the columns themselves as fields.

    Parameters
    ----------
    url : str
        "redis://HOST:PORT" or "rediss://…" (with TLS).
    stream : str
        Name of the stream; "2/events" is the stream ``events`` of data base 2.
    answers : str, optional
        Stream for answers: an answer's entry has the id of what it answers, so that none is there twice.
    """

    def __init__(self, url: str, stream: str, answers: str | None = None):
        number, _, name = stream.rpartition("/")
        self.stream, self.answers = name, answers
        self.client: Any = redis.Redis.from_url(f"{url}/{number or 0}", socket_timeout=30)
        self.finished = False
        self._after = "0-0"

    def seek(self, positions: dict[str, Position]) -> None:
        """Continue after the entry with this id."""
        self._after = str(positions.get(self.stream, "0-0"))

    def read(self, most: int, seconds: float) -> list[Message]:
        """At most ``most`` entries."""
        with _asked():
            found = self.client.xread({self.stream: self._after}, count=most)
            if not found:  # wait for new entries
                found = self.client.xread({self.stream: self._after}, count=most, block=max(1, int(1000 * seconds)))
        self.finished = not found
        messages = []
        for name, fields in found[0][1] if found else []:
            at = name.decode()
            messages.append(Message(self.stream, at, at, fields[FIELD] if FIELD in fields else _json(fields)))
            self._after = at
        return messages

    def answer(self, answers: list[tuple[Message, dict[str, Any]]]) -> None:
        """Send answers; one that exists already, from before a crash, is kept."""
        if self.answers is None:
            return
        for message, content in answers:
            with _asked():
                try:
                    self.client.xadd(self.answers, {FIELD: json.dumps(content)}, id=str(message.at))
                except redis.ResponseError as error:
                    if "equal or smaller" not in str(error):
                        raise

    def settled(self, positions: dict[str, Position]) -> None:
        """Redis keeps no positions."""

    def close(self) -> None:
        """Close the connection."""
        self.client.close()


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    """Distinguish an outage, which may pass, from other errors of Redis."""
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError) as error:
        raise Unavailable(f"Redis does not answer: {error}") from None
    except redis.RedisError as error:
        raise OSError(f"Redis: {error}") from None


def _json(fields: dict[bytes, bytes]) -> bytes:
    """An object of the fields; texts that are numbers become numbers, since Redis only has texts."""

    def value(text: str) -> Any:
        if text == "":
            return None
        try:
            number = float(text)
        except ValueError:
            return text
        return int(text) if text.lstrip("+-").isdigit() else number

    named = {name.decode(errors="replace"): value(content.decode(errors="replace")) for name, content in fields.items()}
    return json.dumps(named).encode()
