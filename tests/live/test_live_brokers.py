"""Brokers: every message is learned exactly once, whatever happens to the reader."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from kernelstream import FeatureClassifier, FeatureRegressor, cli, model_io, save
from kernelstream.features import RandomFourier
from kernelstream.live import DurableLearner, Store, outages
from kernelstream.live.consume import CURSOR, Shared, consume, consume_by, consume_group, name_of_key
from kernelstream.live.sources import BadMessage, Message, Unavailable, open_source, parse, split


def model():
    return FeatureRegressor(RandomFourier(n_components=10), random_state=0)


def content(i, key="a"):
    x = np.random.default_rng(i).normal(size=2)
    return json.dumps({"u": x[0], "v": x[1], "y": x[0] - x[1], "key": key}).encode()


class Listed:
    """A source in memory: parts with messages, which may be delivered again."""

    def __init__(self, parts, again=0):
        self.parts, self.again = parts, again
        self.places, self.answers, self.finished = {}, [], False

    def seek(self, positions):
        self.places = {part: max(0, int(positions.get(part, 0)) - self.again) for part in self.parts}

    def read(self, most, seconds):
        found = []
        for part, messages in self.parts.items():
            at = self.places[part]
            found += [Message(part, i, i + 1, messages[i]) for i in range(at, min(at + most, len(messages)))]
            self.places[part] = min(at + most, len(messages))
        self.finished = not found
        return found

    def answer(self, answers):
        self.answers += answers

    def settled(self, positions):
        self.told = positions

    def close(self):
        pass


# -------------------------------------------------------------------- messages
def test_messages():
    assert parse(b'{"row": [1, 2], "y": 3}', None).row == [1, 2]
    told = parse(b'{"size": 1, "price": 3}', "price")
    assert (told.row, told.y) == ({"size": 1}, 3)
    assert parse(b'{"size": 1}', "price").y is None
    told = parse(b'{"size": 1, "city": "Rome", "price": 3}', "price", "city")
    assert (told.row, told.key) == ({"size": 1}, "Rome")
    for bad in (b"", b"{", b"[]", b'{"x": 1}', b'{"row": 5}', b"\xff", b"[" * 100_000):
        with pytest.raises(BadMessage):
            parse(bad, None)


def test_addresses():
    assert split("kafka://a:1,b:2/topic") == ("kafka", "a:1,b:2", "topic")
    assert split("redis://:pw@h:6379/2/events") == ("redis", ":pw@h:6379", "2/events")
    for bad in ("kafka://a:1", "kafka:///t", "http://a/t", "topic", ""):
        with pytest.raises(ValueError, match="a source is"):
            split(bad)


# -------------------------------------------------------------------- the reader
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_positions_go_with_the_model(tmp_path, batch):
    """Stopped anywhere and started again over a source that delivers old messages too: each is learned once."""
    parts = {"t/0": [content(i) for i in range(60)], "t/1": [content(100 + i) for i in range(25)]}
    calls = 0

    def stop():
        nonlocal calls
        calls += 1
        return calls % 4 == 0

    done = 0
    for _ in range(80):
        with DurableLearner(tmp_path, model(), columns=["u", "v"], flush="request") as learner:
            options = {"target": "y", "batch": batch, "once": True, "stop": stop}
            done += consume(learner, Listed(parts, again=2), **options).learned
            if learner.total == 85:
                break
    assert done == 85 and learner.positions == {"t/0": 60, "t/1": 25}


def test_the_model_is_the_one_of_the_messages(tmp_path):
    rows = [json.loads(content(i)) for i in range(50)]
    X, y = np.array([[r["u"], r["v"]] for r in rows]), np.array([r["y"] for r in rows])
    with DurableLearner(tmp_path, model(), columns=["u", "v"]) as learner:
        consume(learner, Listed({"t/0": [content(i) for i in range(50)]}), target="y", batch=10, once=True)
        plain = model()
        for i in range(0, 50, 10):
            plain.learn(X[i : i + 10], y[i : i + 10])
        assert model_io.to_bytes(learner.champion.model) == model_io.to_bytes(plain)


def test_bad_messages_are_left_out_and_counted(tmp_path):
    good = [content(i) for i in range(20)]
    bad = [b"no JSON", b'{"u": 1, "y": 2}', b'{"u": "word", "v": 1, "y": 2}', b'{"u": 1, "v": 1, "y": "word"}',
           b'{"u": 1, "v": 1}', b'{"u": 1, "v": 1, "y": null}']  # fmt: skip
    mixed = [*good[:10], *bad, *good[10:]]
    with DurableLearner(tmp_path, model(), columns=["u", "v"]) as learner:
        done = consume(learner, Listed({"t/0": mixed}), target="y", batch=100, once=True)
        assert (done.messages, done.learned, done.skipped) == (26, 20, 4)  # two had no target yet: not bad
        assert learner.positions == {"t/0": 26}
        letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert [(one["part"], one["at"], one["content"].encode()) for one in letters] == [
            ("t/0", 10 + i, bad[i]) for i in range(4)
        ]
        assert all(reason in one["reason"] for reason, one in zip(("JSON", "'v'", "'word'", "numbers"), letters))
        again = consume(learner, Listed({"t/0": mixed}, again=26), target="y", once=True)
        assert again.skipped == again.learned == 0  # delivered once more, they are neither learned nor left out


# -------------------------------------------------------------------- outages
class Flaky(Listed):
    """A source whose calls fail now and then, before they do anything or after it."""

    def __init__(self, parts, after):
        super().__init__(parts)
        self.after, self.calls = after, 0

    def fails(self, then):
        self.calls += 1
        if self.calls % 3 == 0 and not self.after:
            raise Unavailable("no answer")
        found = then()
        if self.calls % 3 == 0:
            raise Unavailable("no answer")
        return found

    def read(self, most, seconds):
        return self.fails(lambda: super(Flaky, self).read(most, seconds))

    def answer(self, answers):
        self.fails(lambda: super(Flaky, self).answer(answers))


@pytest.fixture
def short_waits(monkeypatch):
    monkeypatch.setattr(outages, "FIRST", 0.001)
    monkeypatch.setattr(outages, "MOST", 0.004)


@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_a_source_that_fails_now_and_then(tmp_path, short_waits, caplog, after, by):
    """Whichever call fails: every message is learned once, in the calls of a source that never fails."""
    messages = [content(i) if i % 10 else b"no JSON" for i in range(40)]
    options = {"target": "y", "batch": 8, "once": True}
    source = Flaky({"t/0": messages}, after)
    if by:
        with Store(tmp_path, flush="request") as store:
            done = consume_by(store, model(), source, "key", **options)
            with store.use(name_of_key("a")) as learner:
                assert learner.total == 36
            assert store.keys() == {name_of_key("a"): "a"}
        dead = tmp_path / CURSOR / "dead.jsonl"
    else:
        with DurableLearner(tmp_path / "a", model(), columns=["u", "v"], flush="request") as learner:
            done = consume(learner, source, answers=True, **options)
            state = model_io.to_bytes(learner.champion.model)
        with DurableLearner(tmp_path / "b", model(), columns=["u", "v"], flush="request") as calm:
            consume(calm, Listed({"t/0": messages}), **options)
            assert model_io.to_bytes(calm.champion.model) == state
        assert {message.at for message, _ in source.answers} == {i for i in range(40) if i % 10}
        dead = tmp_path / "a" / "dead.jsonl"
    assert (done.messages, done.learned, done.skipped) == (40, 36, 4) and done.outages > 1
    assert len(dead.read_text().splitlines()) == 4
    assert caplog.text.count("trying again") == caplog.text.count("it works again") == done.outages


def test_a_full_disk_is_waited_for(tmp_path, short_waits, monkeypatch):
    """Also while the learner of a new key is created; a source that fails for good ends the run."""
    real, writes = os.write, iter(range(10**9))

    def sometimes(file, content):
        if next(writes) % 60 in (*range(12, 18), *range(40, 47)):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, content)

    messages = [content(i, f"key {i % 7}") for i in range(42)]
    with Store(tmp_path, flush="request") as store:
        store.create(CURSOR, model())
        monkeypatch.setattr(os, "write", sometimes)
        done = consume_by(store, model(), Listed({"t/0": messages}), "key", target="y", batch=10, once=True)
        monkeypatch.undo()
        assert done.learned == 42 and done.outages > 2
        for key in range(7):
            with store.use(name_of_key(f"key {key}")) as learner:
                assert learner.total == 6
        broken = Listed({"t/0": messages})
        broken.read = lambda *_: (_ for _ in ()).throw(OSError("it is not allowed"))
        with pytest.raises(OSError, match="not allowed"):
            consume_by(store, model(), broken, "key", target="y", once=True)


def test_answers_come_before_learning(tmp_path):
    """Each answer is that of the model before the batch, and is known by its place."""
    messages = [content(i) for i in range(30)]
    source = Listed({"t/0": messages})
    with DurableLearner(tmp_path, model(), columns=["u", "v"]) as learner:
        done = consume(learner, source, target="y", batch=10, once=True, answers=True)
    assert done.answered == 30 and [message.at for message, _ in source.answers] == list(range(30))
    plain = model()
    rows = [json.loads(text) for text in messages]
    X, y = np.array([[r["u"], r["v"]] for r in rows]), np.array([r["y"] for r in rows])
    assert source.answers[0][1]["prediction"] is None
    for i in range(0, 20, 10):
        plain.learn(X[i : i + 10], y[i : i + 10])
        expected = plain.predict(X[i + 10 : i + 20])
        assert [about["prediction"] for _, about in source.answers[i + 10 : i + 20]] == expected.tolist()


def test_a_learner_for_each_key(tmp_path):
    """More keys than fit in memory; stopped and started again, each row is learned once, by the learner of its key."""
    keys = [f"shop {i % 5} / ü" for i in range(100)]
    parts = {"t/0": [content(i, key) for i, key in enumerate(keys)]}
    done, rounds = 0, 0
    while done < 100 and rounds < 10:
        rounds += 1
        limit = iter([False, False, True])
        with Store(tmp_path, awake=2, flush="request") as store:
            source = Listed(parts, again=10)
            options = {"target": "y", "batch": 20, "once": True, "stop": lambda limit=limit: next(limit)}
            done += consume_by(store, model(), source, "key", **options).learned
            assert len(store.awake()) <= 3
    assert rounds >= 3
    with Store(tmp_path, awake=2) as store:
        assert len(store.names()) == 6 and CURSOR in store
        for number in range(5):
            mine = [json.loads(parts["t/0"][i]) for i in range(100) if i % 5 == number]
            with store.use(name_of_key(f"shop {number} / ü")) as learner:
                assert learner.total == 20 and learner.columns == ["u", "v"]
                assert learner.champion.scores.rows == len(mine)


# -------------------------------------------------------------------- Kafka, in memory of this process
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


@pytest.mark.parametrize("code, passing", [("_TRANSPORT", True), ("_ALL_BROKERS_DOWN", True), ("_RESOLVE", True),
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
    import kernelstream.live.kafka as room

    before, room.WAIT = room.WAIT, 0.5
    try:
        with DurableLearner(tmp_path, model()) as learner, pytest.raises(OSError, match="Kafka does not answer"):
            consume(learner, open_source("kafka://127.0.0.1:1/rows", options={"log_level": "0"}), target="y", once=True)
    finally:
        room.WAIT = before


def run_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.02)


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
    from kernelstream.live.kafka import Kafka

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
    from kernelstream.live.kafka import Kafka

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


# -------------------------------------------------------------------- Redis, a real one
def start_redis(port, folder, *options):
    """A server of its own, and a client."""
    redis = pytest.importorskip("redis")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs redis-server")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    client = redis.Redis(port=port)
    until = time.monotonic() + 20
    while True:
        try:
            client.ping()
            break
        except redis.RedisError:
            assert time.monotonic() < until
            time.sleep(0.05)
    return process, client


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory):
    """Port of a server, and a client."""
    port = free_port()
    process, client = start_redis(port, tmp_path_factory.mktemp("redis"))
    yield port, client
    client.close()
    process.terminate()
    process.wait()


def test_redis(tmp_path, redis_server):
    """Entries with a field of JSON, and entries whose fields are the columns; answers have the ids of the entries."""
    port, client = redis_server
    for i in range(60):
        about = json.loads(content(i))
        client.xadd("rows", {"json": content(i)} if i % 2 else {name: str(value) for name, value in about.items()})
    ids = [name.decode() for name, _ in client.xrange("rows")]
    url = f"redis://127.0.0.1:{port}/rows"
    learner = DurableLearner(tmp_path, model(), columns=["u", "v"])
    done = consume(learner, open_source(url, "told"), target="y", once=True, batch=7, answers=True)
    assert done.learned == 60 and learner.positions == {"rows": ids[-1]}
    assert [name.decode() for name, _ in client.xrange("told")] == ids
    plain = model()
    rows = [json.loads(content(i)) for i in range(60)]
    X, y = np.array([[r["u"], r["v"]] for r in rows]), np.array([r["y"] for r in rows])
    for i in range(0, 60, 7):
        plain.learn(X[i : i + 7], y[i : i + 7])
    assert model_io.to_bytes(learner.champion.model) == model_io.to_bytes(plain)
    learner.close()
    client.xadd("rows", {"json": content(60)})
    with DurableLearner(tmp_path) as learner:
        assert consume(learner, open_source(url, "told"), target="y", once=True, answers=True).learned == 1
    assert client.xlen("told") == 61


def test_redis_that_is_killed_and_comes_back(tmp_path, caplog):
    """The reader waits for it, says so once, and goes on: every entry is learned once."""
    port, options = free_port(), ("--appendonly", "yes", "--appendfsync", "always")
    process, client = start_redis(port, tmp_path, *options)
    learner = DurableLearner(tmp_path / "m", model(), columns=["u", "v"], flush="request")
    leave, found = threading.Event(), []
    try:

        def read():
            source = open_source(f"redis://127.0.0.1:{port}/rows", "told")
            found.append(consume(learner, source, target="y", answers=True, batch=5, stop=leave.is_set))

        for i in range(30):
            client.xadd("rows", {"json": content(i)})
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        run_until(lambda: learner.total > 0)
        process.kill()
        process.wait()
        run_until(lambda: "trying again" in caplog.text or (learner.total == 30 and not thread.is_alive()))
        process, client = start_redis(port, tmp_path, *options)
        for i in range(30, 60):
            client.xadd("rows", {"json": content(i)})
        run_until(lambda: learner.total >= 60 or not thread.is_alive())
        leave.set()
        thread.join(30)
        assert [done.learned for done in found] == [60] and learner.total == 60
        assert found[0].outages == caplog.text.count("trying again") == 1
        entries = client.xrange("rows")
        assert learner.positions == {"rows": entries[-1][0].decode()}
        assert [name for name, _ in client.xrange("told")] == [name for name, _ in entries]
    finally:
        leave.set()
        process.kill()
        process.wait()
        learner.close()


def test_redis_that_is_not_there():
    pytest.importorskip("redis")
    with pytest.raises(OSError, match="Redis does not answer"):
        open_source("redis://127.0.0.1:1/rows")


# -------------------------------------------------------------------- the command
def test_the_command(tmp_path, redis_server, capsys):
    port, client = redis_server
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b = rng.normal(size=2).tolist()
        client.xadd("flats", {"size": a, "rooms": b, "price": a + b})
    client.xadd("flats", {"size": 1})
    np.savetxt(tmp_path / "f.csv", rng.normal(size=(20, 3)), delimiter=",", header="size,rooms,price", comments="")
    path = str(tmp_path / "flats.ks")
    assert cli.main(["train", str(tmp_path / "f.csv"), "--target", "price", "--model", path, "-q"]) == 0
    command = ["consume", f"redis://127.0.0.1:{port}/flats", "--model", path, "--target", "price", "--once"]
    capsys.readouterr()
    assert cli.main(command) == 0
    told = capsys.readouterr()
    assert "31 messages, 30 rows learned, 1 left out" in told.out and "no column 'rooms'" in told.err
    assert cli.main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == 0
    with DurableLearner(tmp_path / "flats.live" / "flats") as learner:
        assert learner.total == 50  # 20 rows it was trained on, 30 of the stream


def test_wrong_usage(tmp_path, capsys):
    save(FeatureClassifier(), tmp_path / "m.ks")
    path = str(tmp_path / "m.ks")
    for arguments, message in (
        (["topic", "--model", path], "a source is"),
        (["redis://h:1/s", "--model", path, "--group", "g"], "for Kafka"),
        (["kafka://h:1/s", "--model", path, "--option", "key"], "KEY=VALUE"),
        (["kafka://h:1/s", "--model", path, "--flush", "never"], "--flush is"),
    ):
        assert cli.main(["consume", *arguments]) == 2
        assert message in capsys.readouterr().err
