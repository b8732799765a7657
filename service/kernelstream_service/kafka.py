"""Kafka as a source (extra ``kafka``)."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

from .extras import needs
from .sources import Message, Position, Unavailable

with needs("kafka"):
    import confluent_kafka as ck

logger = logging.getLogger("kernelstream_service")

MAX_REPORTED_GAPS = 5  # most gaps of a partition that are reported
LASTING_ERRORS = (
    ck.KafkaError._AUTHENTICATION, ck.KafkaError._INVALID_ARG, ck.KafkaError._UNKNOWN_TOPIC,
    ck.KafkaError._UNKNOWN_PARTITION, ck.KafkaError.UNKNOWN_TOPIC_OR_PART, ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ck.KafkaError.GROUP_AUTHORIZATION_FAILED, ck.KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)  # fmt: skip
BROKER_SECONDS = 10.0  # seconds for the brokers to say what there is


class Kafka:
    """All partitions of a topic, read by one process.

    Positions are kept by the reader, not by the broker: the offsets of a group are only reported so that its lag can
    be watched.

    Parameters
    ----------
    servers : str
        "HOST:PORT", several with commas between.
    topic : str
    answers : str, optional
        Topic for answers; a message's key is "topic/partition/offset" of what it answers.
    options : dict, optional
        Of librdkafka: ``{"security.protocol": "SASL_SSL", ...}``.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        answers: str | None = None,
        options: dict[str, str] | None = None,
    ):
        common = {"bootstrap.servers": servers, **(options or {})}
        self.topic, self.answers = topic, answers
        self.consumer = ck.Consumer(
            {
                "group.id": f"kernelstream-{topic}",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                **common,
            }
        )
        self.producer = ck.Producer({**common, "enable.idempotence": True}) if answers else None
        self.finished = False
        self._next: dict[int, int] = {}  # offset that is expected, by partition
        self._gaps: dict[int, int] = {}
        self._parts: set[int] = set()
        self._ended: set[int] = set()

    # ---------------------------------------------------------------- reading
    def seek(self, positions: dict[str, Position]) -> None:
        """Read all partitions from these offsets on."""
        self._parts = set(self._partitions())
        self.consumer.assign([self._place(number, positions) for number in sorted(self._parts)])
        self._ended = set()

    def _partitions(self) -> list[int]:
        until = time.monotonic() + BROKER_SECONDS
        while True:
            with _asked():
                about = self.consumer.list_topics(self.topic, timeout=BROKER_SECONDS).topics[self.topic]
            if about.partitions:
                return list(about.partitions)
            if time.monotonic() > until:
                raise ValueError(f"Kafka has no topic {self.topic!r}")
            time.sleep(0.2)  # the topic may be about to be created

    def _place(self, number: int, positions: dict[str, Position]) -> Any:
        offset = positions.get(f"{self.topic}/{number}")
        self._next.pop(number, None)  # a new reader begins with the oldest, whichever that is
        if offset is not None:
            self._next[number] = int(offset)
        return ck.TopicPartition(self.topic, number, ck.OFFSET_BEGINNING if offset is None else int(offset))

    def read(self, most: int, seconds: float) -> list[Message]:
        """At most ``most`` messages."""
        found = []
        with _asked():
            came: Any = self.consumer.consume(most, seconds)
        for message in came:
            error = message.error()
            if error is None:
                self._ended.discard(message.partition())
                part, offset = f"{self.topic}/{message.partition()}", message.offset()
                self._look_for_gaps(message.partition(), offset)
                found.append(Message(part, offset, offset + 1, message.value() or b""))
            elif error.code() == ck.KafkaError._PARTITION_EOF:
                self._ended.add(message.partition())
            else:
                raise _failure(error)
        self.finished = bool(self._parts) and self._ended >= self._parts
        return found

    def _look_for_gaps(self, number: int, offset: int) -> None:
        """Report missing messages, for example those that the broker deleted or compacted before they were read.

        A single missing message is the mark of a transaction, and not reported.
        """
        expected = self._next.get(number, offset)
        if offset > expected + 1 and self._gaps.get(number, 0) < MAX_REPORTED_GAPS:
            self._gaps[number] = self._gaps.get(number, 0) + 1
            logger.error("%s/%d: the broker has no messages %d to %d", self.topic, number, expected, offset - 1)
        self._next[number] = offset + 1

    # ---------------------------------------------------------------- answering
    def answer(self, answers: list[tuple[Message, dict[str, Any]]]) -> None:
        """Send answers, and wait until the brokers have them."""
        if self.producer is None or self.answers is None:
            return
        failed: list[Any] = []
        for message, content in answers:
            while True:
                try:
                    self.producer.produce(self.answers, json.dumps(content), f"{message.part}/{message.at}",
                                          on_delivery=lambda error, _: failed.append(error))  # fmt: skip
                    break
                except BufferError:
                    self.producer.poll(0.1)
        if self.producer.flush(60.0):
            self.producer.purge()  # they are made again
            raise Unavailable("Kafka does not take the answers")
        for error in failed:
            if error is not None:
                raise _failure(error)

    def settled(self, positions: dict[str, Position]) -> None:
        """Report to the broker how far it has been read, so that the lag can be watched."""
        offsets = [
            ck.TopicPartition(self.topic, int(part.rsplit("/", 1)[1]), int(at))
            for part, at in positions.items()
            if part.rpartition("/")[0] == self.topic and int(part.rsplit("/", 1)[1]) in self._parts
        ]
        if offsets:
            with contextlib.suppress(ck.KafkaException):  # the next one may get through; positions are not kept there
                self.consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Close the connection."""
        self.consumer.close()


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    try:
        yield
    except ck.KafkaException as error:
        raise _failure(error.args[0]) from None


def _failure(error: Any) -> OSError:
    """Distinguish an outage, which may pass, from other errors: librdkafka connects again by itself."""
    if error.fatal() or error.code() in LASTING_ERRORS:
        return OSError(f"Kafka: {error.str()}")
    return Unavailable(f"Kafka does not answer: {error.str()}")
