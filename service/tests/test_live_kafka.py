"""Kafka: killed readers, outages, and partitions that move between processes."""

import signal
import subprocess
import sys
import time

import pytest
from broker_cases import content, model
from waiting import run_until

from kernelstream import cli, save
from kernelstream_service import DurableLearner
from kernelstream_service.consume import consume
from kernelstream_service.sources import open_source


@pytest.fixture(scope="module")
def kafka():
    """Address of a cluster that librdkafka pretends to be, and a producer."""
    ck = pytest.importorskip("confluent_kafka")
    producer = ck.Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = producer.list_topics(timeout=20).brokers.values()
    return f"{broker.host}:{broker.port}", producer


def fill(producer, topic, n, parts=4):
    for i in range(n):
        producer.produce(topic, content(i), partition=i % parts)
    producer.flush(20)


def test_kafka(tmp_path, kafka):
    address, producer = kafka
    fill(producer, "rows", 200)
    with DurableLearner(tmp_path, model(), columns=["u", "v"]) as learner:
        done = consume(learner, open_source(f"kafka://{address}/rows", "told"), target="y", once=True, answers=True)
        assert done.learned == learner.total == 200
        assert learner.positions == {f"rows/{k}": 50 for k in range(4)}
    fill(producer, "rows", 40)
    with DurableLearner(tmp_path) as learner:
        done = consume(learner, open_source(f"kafka://{address}/rows"), target="y", once=True)
        assert done.messages == 40 and learner.total == 240
    import confluent_kafka as ck

    reader = ck.Consumer({"bootstrap.servers": address, "group.id": "x", "auto.offset.reset": "earliest"})
    reader.subscribe(["told"])
    keys, until = [], time.monotonic() + 20
    while len(keys) < 200 and time.monotonic() < until:
        keys += [message.key().decode() for message in reader.consume(200, 0.5) if message.error() is None]
    reader.close()
    assert sorted(keys) == sorted(f"rows/{k}/{i}" for k in range(4) for i in range(50))


def test_messages_that_kafka_has_forgotten(tmp_path, kafka, caplog):
    """The pretended broker keeps some megabytes: that others are gone is told, and reading goes on with the rest."""
    address, producer = kafka
    for _ in range(1_000):
        producer.produce("forgotten", b'{"u": 1, "v": 2, "y": 3, "more": "%b"}' % (b"x" * 10_000), partition=0)
    producer.flush(20)
    with DurableLearner(tmp_path, model(), columns=["u", "v"], flush="request") as learner:
        learner.learn([], [], positions={"forgotten/0": 5})
        consume(learner, open_source(f"kafka://{address}/forgotten"), target="y", once=True)
        assert 0 < learner.total < 900 and learner.positions["forgotten/0"] == 1_000
    assert "forgotten/0: the broker has no messages 5 to " in caplog.text


SLOW = pytest.mark.slow


@pytest.mark.parametrize("code, passing", [("_TRANSPORT", True), pytest.param("_ALL_BROKERS_DOWN", True, marks=SLOW),
                                           pytest.param("_RESOLVE", True, marks=SLOW),
                                           ("COORDINATOR_NOT_AVAILABLE", True), ("TOPIC_AUTHORIZATION_FAILED", False),
                                           ("_AUTHENTICATION", False)])  # fmt: skip
def test_errors_of_kafka(tmp_path, kafka, short_waits, code, passing):
    """A broker that is away for a while is waited for; what will not change ends the run."""
    import confluent_kafka as ck

    class Failed:
        def error(self):
            return ck.KafkaError(getattr(ck.KafkaError, code))

    class Failing:
        """The consumer, but one that finds an error behind its first messages."""

        def __init__(self, consumer):
            self.consumer, self.calls = consumer, 0

        def __getattr__(self, name):
            return getattr(self.consumer, name)

        def consume(self, most, seconds):
            found, self.calls = self.consumer.consume(most, seconds), self.calls + bool(self.calls)
            if found and not self.calls:
                self.calls = 1
                found.append(Failed())
            return found

    address, producer = kafka
    topic = f"errors{code}"
    fill(producer, topic, 20)
    source = open_source(f"kafka://{address}/{topic}")
    source.consumer = Failing(source.consumer)
    with DurableLearner(tmp_path, model(), columns=["u", "v"], flush="request") as learner:
        if passing:
            done = consume(learner, source, target="y", once=True, batch=5)
            assert (done.outages, done.learned, learner.total) == (1, 20, 20)
        else:
            with pytest.raises(OSError, match="Kafka: "):
                consume(learner, source, target="y", once=True, batch=5)


def test_kafka_that_is_not_there_yet(tmp_path, short_waits, monkeypatch, caplog):
    """The reader waits for it, and says so once."""
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("kernelstream_service.kafka.BROKER_SECONDS", 0.1)
    with DurableLearner(tmp_path, model()) as learner:
        source = open_source("kafka://127.0.0.1:1/rows", options={"log_level": "0"})
        done = consume(learner, source, target="y", once=True, stop=lambda: "trying again" in caplog.text)
    assert (done.outages, done.messages) == (1, 0) and "Kafka does not answer" in caplog.text


@pytest.mark.parametrize("messages, kills", [(400, 1), pytest.param(20_000, 20, marks=pytest.mark.slow)])
def test_a_killed_reader_of_kafka(tmp_path, kafka, messages, kills):
    """Processes that are killed while they learn: in the end each message has been learned once."""
    address, producer = kafka
    topic = f"killed{messages}"
    fill(producer, topic, messages)
    save(model(), tmp_path / "m.ks")
    command = [sys.executable, "-m", "kernelstream.cli", "consume", f"kafka://{address}/{topic}", "--model",
               str(tmp_path / "m.ks"), "--target", "y", "--batch", "5", "--snapshot-rows", "100",
               "--option", "log_level=0"]  # fmt: skip
    folder = tmp_path / "m.live" / "m"
    DurableLearner(folder, model(), columns=["u", "v"]).close()
    for k in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        size = seen(folder)
        run_until(lambda size=size, process=process: seen(folder) != size or process.poll() is not None)
        time.sleep(0.02 * (k % 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.main([*command[3:], "--once"]) == 0
    with DurableLearner(folder) as learner:
        assert learner.total == messages and sum(learner.positions.values()) == messages


def seen(folder):
    """What changes when something is written."""
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.glob("learner.db-wal"))]
