"""Faults that only a load shows: what refused requests keep, and who waits for a model that wakes."""

import gc
import json
import logging
import os
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_cases import crash, logistic, moons
from live_client import Client
from waiting import run_until

from kernelstream import FeatureRegressor
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream_service import DurableLearner, Store, app, logs, metrics, store
from kernelstream_service.serve import Server


def views_alive(server, name):
    """Notes every copy of a model that readers get; returns how many of them there still are."""
    seen = []
    with server.store.use(name) as learner:
        publish = learner.keeper.readers.publish

        def noted():
            publish()
            seen.append(weakref.ref(learner.keeper.readers.view.model))

        learner.keeper.readers.publish = noted
    return seen, lambda: sum(ref() is not None for ref in seen)


@pytest.mark.parametrize("tokens", [None, "the-right-one"])
def test_refused_requests_keep_no_copy_alive(fresh, tokens):
    """Without the garbage collector: bad rows, unknown models and ids, wrong tokens; copies are renewed between."""
    server, client = fresh({"m": logistic()}, token=tokens, options={"swap_ms": 0})
    X, y = moons(20)
    good = {"rows": X.tolist(), "y": y.tolist()}
    assert client.post("/models/m/learn", good)[0] == 200
    stranger = Client(server.port, "the-wrong-one")
    seen, alive = views_alive(server, "m")
    gc.collect()
    gc.disable()
    try:
        for _ in range(15):
            assert client.post("/models/m/predict", {"rows": [[1.0, 2.0]]})[0] == 422
            assert client.post("/models/m/predict", {"rows": [[1.0, 2.0]] * 100})[0] == 422
            assert client.post("/models/m/learn", {"rows": [[1.0, "x", 2.0]], "y": [1]})[0] == 422
            assert client.post("/models/m/learn", {"rows": [[1e300] * 3], "y": [1]})[0] == 422  # by the model itself
            assert client.post("/models/m/learn", {"ids": ["nobody"], "y": [1]})[0] == 409
            assert client.post("/models/m/rollback", {"to": 7})[0] == 409
            assert client.post("/models/none/predict", good)[0] in (403, 404)
            assert stranger.post("/models/m/predict", good)[0] == (401 if tokens else 422)
            assert client.ask("PUT", "/models/m/challenger", b"no model", {})[0] in (403, 415)
            assert client.post("/models/m/learn", good)[0] == 200
        run_until(lambda: len(seen) >= 10, 20)
        run_until(lambda: alive() <= 3, 5)
    finally:
        gc.enable()


def test_a_waking_model_keeps_nobody_waiting(tmp_path, monkeypatch):
    """While one model is being loaded, others and the state of the server answer; its own callers wait, or get 503."""
    X, y = moons(30)
    with Store(tmp_path) as held:
        for name in ("sleepy", "other"):
            held.create(name, logistic())
            with held.use(name) as learner:
                learner.learn(X, y)
    gate, inside = threading.Event(), threading.Event()
    real = store.DurableLearner

    def slowly(folder, *args, **options):
        if folder.name == "sleepy":
            inside.set()
            assert gate.wait(60)
        return real(folder, *args, **options)

    monkeypatch.setattr(store, "DurableLearner", slowly)
    body, found = {"rows": X[:1].tolist()}, []
    with Server(Store(tmp_path), port=0) as server:
        asking = [
            threading.Thread(target=lambda: found.append(Client(server.port).post("/models/sleepy/predict", body)))
            for _ in range(12)
        ]
        watching = [
            threading.Thread(target=lambda: Client(server.port).get("/events?model=sleepy&count=1")) for _ in range(8)
        ]
        for thread in [*asking, *watching]:
            thread.start()
        assert inside.wait(20)
        client = Client(server.port)
        for _ in range(3):
            for path in ("/health", "/live", "/models", "/metrics"):
                assert client.get(path)[0] == 200
            assert client.post("/models/other/predict", body)[0] == 200
            assert client.post("/models/other/learn", {"rows": X.tolist(), "y": y.tolist()})[0] == 200
        assert not found
        monkeypatch.setattr(app, "WAKE_SECONDS", 0.1)
        status, answer = client.post("/models/sleepy/predict", body)
        assert status == 503 and "is being loaded" in answer["error"] and client.answer.getheader("retry-after")
        gate.set()
        for thread in [*asking, *watching]:
            thread.join(30)
        assert [status for status, _ in found] == [200] * 12


def test_a_row_takes_few_calls_of_the_service(fresh):
    """At most forty of its own functions for a prediction of one row over HTTP; a coroutine counts at every step."""
    home, counts, here = os.path.dirname(app.__file__), [0], threading.current_thread()

    def note(frame, event, arg):
        if threading.current_thread() is not here:
            counts[0] += event == "call" and frame.f_code.co_filename.startswith(home)

    threading.setprofile(note)
    try:
        _, client = fresh({"m": logistic()})
        X, y = moons(50)
        client.post("/models/m/learn", {"rows": X.tolist(), "y": y.tolist()})
        asked = []
        for _ in range(30):
            before = counts[0]
            assert client.post("/models/m/predict", {"rows": X[:1].tolist()})[0] == 200
            asked.append(counts[0] - before)
    finally:
        threading.setprofile(None)
    assert np.median(asked) <= 40, sorted(asked)


def test_connections_stay_open(fresh):
    """As long as somebody who looks every minute needs."""
    server, _ = fresh({"m": logistic()})
    assert server._server.config.timeout_keep_alive == 75


@pytest.mark.parametrize("cell, column", [(1e300, "size"), (-1e300, "size"), (10**400, "size"), (10**18, "day")])
def test_cells_out_of_range_are_told(fresh, cell, column):
    model = make_stream(Columns(), FeatureRegressor(RandomFourier(n_components=5), random_state=0))
    model.learn([{"size": float(i), "day": f"2024-01-{1 + i % 28:02d}"} for i in range(40)], np.arange(40.0))
    _, client = fresh({"m": model})
    row = {"size": 3.0, "day": "2024-02-01"} | {column: cell}
    for path, more in (("/models/m/predict", {}), ("/models/m/learn", {"y": [1.0]})):
        status, answer = client.post(path, {"rows": [row], **more})
        assert status == 200 and f"column '{column}'" in answer["warnings"][0], answer


def test_a_malformed_row_has_one_status(fresh):
    """However large the body is."""
    _, client = fresh({"m": logistic()})
    for n in (1, 5_000):
        rows = [[1.0, 2.0, 3.0]] * n
        for row in (7, "row", None):
            assert client.post("/models/m/learn", {"rows": [*rows, row], "y": [1] * (n + 1)})[0] == 422
        assert client.post("/models/m/learn", json.dumps({"rows": rows, "y": [1] * n})[:-1])[0] == 400


def test_a_clock_that_is_set_back(tmp_path, monkeypatch):
    with DurableLearner(tmp_path, logistic()) as learner:
        learner.learn(*moons(5))
        learner.snapshot()
        monkeypatch.setattr(time, "time", lambda: 1.0)
        ages = [value for _, name, _, value, *_ in metrics._facts(learner) if name == "snapshot_age_seconds"]
        crash(learner)
    again = DurableLearner(tmp_path)
    ages += [value for _, name, _, value, *_ in metrics._facts(again) if name == "snapshot_age_seconds"]
    again.close()
    assert len(ages) == 2 and all(0 <= age < 60 for age in ages)


def test_warnings_are_lines_of_json(capfd):
    names = ("kernelstream", "kernelstream_service", "uvicorn", "py.warnings")
    before = {name: (logging.getLogger(name).handlers, logging.getLogger(name).level) for name in names}
    try:
        logs.start("warning")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(False)  # it is still on where a test before has started a server in this process
            logging.captureWarnings(True)
            warnings.warn("a column is gone", UserWarning, stacklevel=1)
            logging.captureWarnings(False)
    finally:
        for name, (handlers, level) in before.items():
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = handlers, True
            logger.setLevel(level)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert lines and "a column is gone" in lines[-1]["message"] and lines[-1]["level"] == "warning"


def test_a_name_is_checked_before_its_model_is_read(fresh, monkeypatch):
    _, client = fresh({}, token="all-of-them")
    monkeypatch.setattr(app, "read_model", lambda content: 1 / 0)
    status, answer = client.ask("PUT", "/models/-x", b"anything", {"Content-Type": "application/octet-stream"})
    assert status == 422 and "a name is" in answer["error"]
