"""Readers of any broker: every message is learned exactly once, whatever happens to the reader."""

import errno
import json

import numpy as np
import pytest
from broker_cases import Flaky, Listed, content, model

from kernelstream import model_io
from kernelstream_service import DurableLearner, LogError, admin
from kernelstream_service.consume import consume
from kernelstream_service.sources import BadMessage, parse, split


def test_messages():
    assert parse(b'{"row": [1, 2], "y": 3}', None).row == [1, 2]
    told = parse(b'{"size": 1, "price": 3}', "price")
    assert (told.row, told.y) == ({"size": 1}, 3)
    assert parse(b'{"size": 1}', "price").y is None
    for bad in (b"", b"{", b"[]", b'{"x": 1}', b'{"row": 5}', b"\xff", b"[" * 100_000):
        with pytest.raises(BadMessage):
            parse(bad, None)


def test_addresses():
    assert split("kafka://a:1,b:2/topic") == ("kafka", "a:1,b:2", "topic")
    assert split("redis://:pw@h:6379/2/events") == ("redis", ":pw@h:6379", "2/events")
    for bad in ("kafka://a:1", "kafka:///t", "http://a/t", "topic", ""):
        with pytest.raises(ValueError, match="a source is"):
            split(bad)


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
        letters = list(admin.dead(tmp_path))
        assert [(one["part"], one["at"], one["content"].encode()) for one in letters] == [
            ("t/0", 10 + i, bad[i]) for i in range(4)
        ]
        assert all(reason in one["reason"] for reason, one in zip(("JSON", "'v'", "'word'", "numbers"), letters))
        again = consume(learner, Listed({"t/0": mixed}, again=26), target="y", once=True)
        assert again.skipped == again.learned == 0  # delivered once more, they are neither learned nor left out


@pytest.mark.parametrize("after", [False, True])
def test_a_source_that_fails_now_and_then(tmp_path, short_waits, caplog, after):
    """Whichever call fails: every message is learned once, in the calls of a source that never fails."""
    messages = [content(i) if i % 10 else b"no JSON" for i in range(40)]
    options = {"target": "y", "batch": 8, "once": True}
    source = Flaky({"t/0": messages}, after)
    with DurableLearner(tmp_path / "a", model(), columns=["u", "v"], flush="request") as learner:
        done = consume(learner, source, answers=True, **options)
        state = model_io.to_bytes(learner.champion.model)
    with DurableLearner(tmp_path / "b", model(), columns=["u", "v"], flush="request") as calm:
        consume(calm, Listed({"t/0": messages}), **options)
        assert model_io.to_bytes(calm.champion.model) == state
    assert {message.at for message, _ in source.answers} == {i for i in range(40) if i % 10}
    assert (done.messages, done.learned, done.skipped) == (40, 36, 4) and done.outages > 1
    assert len(list(admin.dead(tmp_path / "a"))) == 4
    assert caplog.text.count("trying again") == caplog.text.count("it works again") == done.outages


def test_a_full_disk_is_waited_for(tmp_path, short_waits, monkeypatch):
    """Whichever call it refuses, bad messages between; a source that fails for good ends the run."""
    messages = [content(i) if i % 5 else b'{"u": 1, "v": 1, "y": "word"}' for i in range(42)]
    with DurableLearner(tmp_path, model(), columns=["u", "v"], flush="request") as learner:
        append, calls = learner.keeper.journal.append, iter(range(10**9))

        def sometimes(contents, dead):
            if next(calls) % 3 == 1:
                raise LogError(errno.ENOSPC, "No space left on device")
            return append(contents, dead)

        monkeypatch.setattr(learner.keeper.journal, "append", sometimes)
        done = consume(learner, Listed({"t/0": messages}), target="y", batch=10, once=True)
        assert learner.total == done.learned == 33 and done.outages
        assert [one["at"] for one in admin.dead(tmp_path)] == list(range(0, 42, 5))
        broken = Listed({"t/0": messages})
        broken.read = lambda *_: (_ for _ in ()).throw(OSError("it is not allowed"))
        with pytest.raises(OSError, match="not allowed"):
            consume(learner, broken, target="y", once=True)


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
