"""Redis, a real one, and the command that reads brokers."""

import json
import shutil
import socket
import subprocess
import threading
import time

import numpy as np
import pytest
from broker_cases import content, model
from command_line import err
from waiting import run_until

from kernelstream import FeatureClassifier, cli, model_io, save
from kernelstream_service import DurableLearner
from kernelstream_service.consume import consume
from kernelstream_service.sources import open_source


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


def test_redis_that_is_not_there_yet(tmp_path, short_waits, caplog):
    """The reader waits for it, and says so once."""
    pytest.importorskip("redis")
    with DurableLearner(tmp_path, model()) as learner:
        source = open_source("redis://127.0.0.1:1/rows")
        done = consume(learner, source, target="y", once=True, stop=lambda: "trying again" in caplog.text)
    assert (done.outages, done.messages) == (1, 0) and "Redis does not answer" in caplog.text


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
        (["redis://h:1/s", "--model", path, "--option", "a=b"], "for Kafka"),
        (["kafka://h:1/s", "--model", path, "--flush", "never"], "--flush must be"),
    ):
        assert message in err(capsys, 2, "consume", *arguments)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["consume", "kafka://h:1/s", "--model", path, "--option", "key"])
    assert "--option: 'key' is not of the form NAME=VALUE" in capsys.readouterr().err
