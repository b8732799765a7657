"""Kafka: killed readers, outages, and partitions that move between processes."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from broker_cases import Listed, content, model
from waiting import run_until

from kernelstream import cli, save
from kernelstream_service import DurableLearner
from kernelstream_service.consume import Shared, consume, consume_group
from kernelstream_service.sources import Unavailable, open_source


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


def test_kafka_that_is_not_there(tmp_path):
    pytest.importorskip("confluent_kafka")
    import kernelstream_service.kafka as room

    before, room.BROKER_SECONDS = room.BROKER_SECONDS, 0.5
    try:
        with DurableLearner(tmp_path, model()) as learner, pytest.raises(OSError, match="Kafka does not answer"):
            consume(learner, open_source("kafka://127.0.0.1:1/rows", options={"log_level": "0"}), target="y", once=True)
    finally:
        room.BROKER_SECONDS = before


def totals(folder):
    """Rows learned by the learners of all partitions, and their positions."""
    rows, positions = 0, {}
    for name in os.listdir(folder):
        with DurableLearner(os.path.join(folder, name)) as learner:
            rows += learner.total
            positions |= learner.positions
    return rows, positions


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
        size = log_bytes(folder)
        run_until(lambda size=size, process=process: log_bytes(folder) != size or process.poll() is not None)
        time.sleep(0.02 * (k % 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.main([*command[3:], "--once"]) == 0
    with DurableLearner(folder) as learner:
        assert learner.total == messages and sum(learner.positions.values()) == messages


def log_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("log-*.bin")), len(list(folder.glob("snapshot-*")))


def test_a_part_goes_to_another_process(tmp_path):
    """The new owner waits until the old one has let go, and goes on where it was."""
    messages = [content(i) for i in range(40)]
    options = {"columns": ["u", "v"], "flush": "request"}
    first, second = (Shared(tmp_path, "m", model(), **options) for _ in range(2))
    source = Listed({"t/0": messages[:25], "t/1": messages[:5]})
    assert first.gained(["t/0", "t/1"]) == {}
    assert consume_group(first, source, target="y", batch=5, once=True).learned == 30 and not first.learners
    assert first.gained(["t/0"]) == {"t/0": 25}
    with pytest.raises(Exception, match="in use"):
        Shared(tmp_path, "m", model(), patience=0.05, **options).gained(["t/0"])
    threading.Timer(0.2, first.lost, [["t/0"]]).start()
    assert second.gained(["t/0"]) == {"t/0": 25}
    rest = Listed({"t/0": messages})
    assert consume_group(second, rest, target="y", once=True).learned == 15  # it begins at 0, and skips 25
    assert totals(tmp_path) == (45, {"t/0": 40, "t/1": 5})


@pytest.mark.slow
def test_partitions_move_with_their_state(tmp_path, kafka):
    """A second process of the group joins, then the first one leaves: every partition goes on where it was."""
    from kernelstream_service.kafka import Kafka

    address, producer = kafka
    fill(producer, "moving", 400)
    quick = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "200", "log_level": "0"}
    members = []

    def join():
        shared = Shared(tmp_path, "m", model(), columns=["u", "v"], flush="request")
        source = Kafka(address, "moving", None, quick, "group", shared.gained, shared.lost)
        leave = threading.Event()
        options = {"target": "y", "batch": 5, "stop": leave.is_set}
        thread = threading.Thread(target=consume_group, args=(shared, source), kwargs=options, daemon=True)
        thread.start()
        members.append((shared, leave, thread))

    join()
    run_until(lambda: len(members[0][0].learners) == 4)
    join()
    run_until(lambda: 0 < len(members[1][0].learners) < 4)
    fill(producer, "moving", 400)
    members[0][1].set()
    members[0][2].join(30)
    run_until(lambda: len(members[1][0].learners) == 4)
    fill(producer, "moving", 200)
    run_until(lambda: sum(learner.total for learner in list(members[1][0].learners.values())) == 1000)
    members[1][1].set()
    members[1][2].join(30)
    assert totals(tmp_path) == (1000, {f"moving/{k}": 250 for k in range(4)})


@pytest.mark.slow
def test_an_outage_of_a_group(tmp_path, kafka):
    """The answers of some batches are not taken: the partitions are given back, and come again with their positions."""
    from kernelstream_service.kafka import Kafka

    address, producer = kafka
    fill(producer, "outages", 200)
    shared = Shared(tmp_path, "m", model(), columns=["u", "v"], flush="request")
    source = Kafka(address, "outages", "told", {"log_level": "0"}, "outages", shared.gained, shared.lost)
    answer, calls = source.answer, iter(range(10**9))

    def failing(answers):
        answer(answers)
        if next(calls) in (2, 7):
            raise Unavailable("no answer")

    source.answer = failing
    rows = 0

    def stop():
        nonlocal rows
        rows = max(rows, sum(learner.total for learner in shared.learners.values()))
        return rows >= 200

    done = consume_group(shared, source, target="y", batch=7, answers=True, stop=stop)
    assert (done.learned, done.outages) == (200, 2)
    assert totals(tmp_path) == (200, {f"outages/{k}": 50 for k in range(4)})


@pytest.mark.slow
def test_a_million_messages_with_kills_and_rebalances(tmp_path, kafka):
    """Two processes share four partitions; twenty times one of them is killed and another one takes its place.

    Every kill is a rebalance, and the return of a process is one more. In the end the learners of the four partitions
    have learned each message once.
    """
    messages, kills = int(os.environ.get("KERNELSTREAM_MESSAGES", 1_000_000)), 20
    address, producer = kafka

    import confluent_kafka as ck

    watch = ck.Consumer({"bootstrap.servers": address, "group.id": "g", "log_level": 0})
    parts, produced = [ck.TopicPartition("million", k) for k in range(4)], 0

    def behind():
        """Messages that the group has not learned yet; the pretended broker forgets them when there are too many."""
        return produced - sum(max(0, part.offset) for part in watch.committed(parts, timeout=30))

    def more():
        nonlocal produced
        for i in range(messages // kills):
            u, v = i * 7 % 100 / 50 - 1, i * 13 % 100 / 50 - 1
            producer.produce("million", b'{"u": %f, "v": %f, "y": %f}' % (u, v, u - v), partition=i % 4)
            produced += 1
            if i % 10_000 == 9_999:
                producer.flush(60)
        producer.flush(60)

    more()
    save(model(), tmp_path / "m.ks")
    command = [sys.executable, "-m", "kernelstream.cli", "consume", f"kafka://{address}/million", "--model",
               str(tmp_path / "m.ks"), "--target", "y", "--group", "g", "--store", str(tmp_path / "store"),
               "--flush", "request", "--snapshot-rows", "20000", "--option", "log_level=0",
               "--option", "session.timeout.ms=6000", "--option", "heartbeat.interval.ms=200"]  # fmt: skip

    def begin():
        with open(tmp_path / f"reader-{time.monotonic():.3f}.log", "w") as said:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)

    def logged():
        return sum(path.stat().st_size for path in (tmp_path / "store").rglob("log-*.bin"))

    rng, processes = np.random.default_rng(0), [begin(), begin()]
    try:
        for kill in range(kills):
            if kill:
                run_until(lambda: behind() < 80_000, 600)
                more()
            size = logged()
            run_until(lambda size=size: logged() != size, 120)  # somebody learns
            time.sleep(float(rng.uniform(0, 1.5)))
            victim = int(rng.integers(2))
            processes[victim].send_signal(signal.SIGKILL)
            processes[victim].wait()
            processes[victim] = begin()

        run_until(lambda: behind() == 0, 1800)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    watch.close()
    said = [path.read_text() for path in sorted(tmp_path.glob("reader-*.log"))]
    assert not any(said), said
    assert totals(tmp_path / "store") == (messages, {f"million/{k}": messages // 4 for k in range(4)})
