"""What an operator sees from outside: Prometheus' numbers, the dashboard and the alerts that use them, and logs."""

import json
import logging
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from live_cases import logistic, moons
from live_client import Client
from prometheus_client.parser import text_string_to_metric_families
from waiting import run_until

from kernelstream.columns import Columns, make_stream
from kernelstream_service import DurableLearner, logs, metrics
from kernelstream_service.consume import Consumed

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXTS = {"alerts.yml", "grafana.json"}


def samples(text):
    """Name and labels to value, of Prometheus' text."""
    families = text_string_to_metric_families(text)
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def test_numbers_of_a_model(fresh):
    server, client = fresh({"flats": make_stream(Columns(), logistic())}, options={"flush": "each"})
    rows = [{"town": "Rome" if i % 2 else "Oslo", "size": float(i)} for i in range(20)]
    assert client.post("/models/flats/learn", {"rows": rows, "y": [i % 2 for i in range(20)]})[0] == 200
    wrong = {"rows": [{"town": "Rome", "size": "large"}] * 3, "y": [0, 1, 0]}
    assert client.post("/models/flats/learn", wrong)[0] == 200
    assert client.post("/models/flats/learn", {"rows": 7})[0] == 422
    with server.store.use("flats") as learner:
        learner.latest()
        size = sum(path.stat().st_size for path in learner.folder.glob("learner.db*") if path.suffix != ".db-shm")
    assert client.post("/models/flats/predict", {"rows": rows[:3]})[0] == 200
    found = samples(client.get("/metrics")[1])
    assert client.answer.getheader("content-type").startswith("text/plain; version=0.0.4")

    def value(name):
        return found[name, ("model", "flats")]

    assert value("kernelstream_rows_learned_total") == 23 == value("kernelstream_rows_since_snapshot")
    assert value("kernelstream_wrong_cells_total") == 3
    assert value("kernelstream_log_bytes") == size > 0
    assert 0 <= value("kernelstream_snapshot_age_seconds") < 60
    assert value("kernelstream_fsync_seconds_count") >= 2 and value("kernelstream_fsync_seconds_sum") > 0
    path = ("path", "/models/{name}/learn")
    assert found["kernelstream_requests_total", path, ("status", "200")] == 2
    assert found["kernelstream_requests_total", path, ("status", "422")] == 1
    assert found[("kernelstream_learn_seconds_count",)] == 2 and found[("kernelstream_waiting_rows",)] == 0
    assert found[("process_resident_memory_bytes",)] > 1e6 and value("kernelstream_healthy") == 1
    counts = [found["kernelstream_predict_seconds_bucket", ("le", bound)] for bound in ("0.001", "0.1", "+Inf")]
    assert counts == sorted(counts) and counts[-1] == found[("kernelstream_predict_seconds_count",)] == 1


def test_everything_that_is_drawn_is_exported(fresh, tmp_path):
    """Every name in the dashboard and in the alerts is one that a server or a reader gives."""
    _, client = fresh({"m": logistic()})
    X, y = moons(50)
    body = {"rows": X.tolist(), "y": y.tolist()}
    assert client.post("/models/m/learn", body)[0] == 200
    with DurableLearner(tmp_path / "m", logistic()) as learner:
        learner.learn(X, y)
        learner.challenge(logistic())
        learner.learn(X, y)
        done = Consumed(messages=5, skipped=2)
        with metrics.serve_reader(0, lambda: [("m", learner)], done) as port:
            reader = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert samples(reader)[("kernelstream_messages_left_out_total",)] == 2
    text = client.get("/metrics")[1]
    known = {name for name, *_ in [*samples(text), *samples(reader)]}
    for name in TEXTS:
        used = set(re.findall(r"\b(?:kernelstream|process)_[a-z_]+\b", (DEPLOY / name).read_text()))
        assert len(used) > 10 and used <= known, used - known
    if shutil.which("promtool"):
        for content in (text, reader):
            run = subprocess.run(["promtool", "check", "metrics"], input=content, text=True, capture_output=True)
            assert run.returncode == 0, run.stdout + run.stderr


def test_the_dashboard_and_the_alerts_can_be_read(tmp_path):
    board = json.loads((DEPLOY / "grafana.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) and all(target["expr"] for panel in panels for target in panel["targets"])
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert set(re.findall(r"\$(?!__)\{?([a-z]+)", json.dumps(panels))) <= names
    if shutil.which("promtool"):
        drawn = sorted({target["expr"] for panel in panels for target in panel["targets"]})
        plain = [re.sub(r"\$(instance|model)", ".*", text.replace("$__rate_interval", "1m")) for text in drawn]
        rules = [{"record": f"panel:{i}", "expr": text} for i, text in enumerate(plain)]
        (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
        for file in (DEPLOY / "alerts.yml", tmp_path / "panels.yml"):
            run = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr


# -------------------------------------------------------------------- request ids and logs
def test_requests_have_ids(fresh):
    _, client = fresh({"m": logistic()})
    for path in ("/live", "/models/none", "/nothing", "/"):
        client.get(path, X_Request_ID="job-17/a")
        assert client.answer.getheader("x-request-id") == "job-17/a"
    seen = set()
    for given in ({}, {"X_Request_ID": "a b"}, {"X_Request_ID": "x" * 200}, {"X_Request_ID": '"}\n'.strip()}):
        client.post("/models/m/predict", {"rows": []}, **given)
        seen.add(client.answer.getheader("x-request-id"))
    assert len(seen) == 4 and all(re.fullmatch("[0-9a-f]{16}", name) for name in seen)


def test_logs_are_lines_of_json(fresh, monkeypatch):
    """Each request is a line at level "info", and an error of the server has the id of its request."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(json.loads(logs.JSONLines().format(record)))
    logger = logging.getLogger("kernelstream_service")
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.INFO)
    logging.getLogger("kernelstream_service.requests").manager._clear_cache()
    server, client = fresh({"m": logistic()})
    client.get("/models/none", X_Request_ID="job-1")
    monkeypatch.setattr(server.store, "names", lambda: 1 / 0)
    status, answer = client.get("/models", X_Request_ID="job-2")
    assert status == 500 and "X-Request-ID" in answer["error"]
    run_until(lambda: len(lines) >= 3, 5)
    logging.getLogger("kernelstream_service.requests").manager._clear_cache()
    first, failure, second = lines
    assert (first["status"], first["path"], first["request"]) == (404, "/models/none", "job-1")
    assert first["level"] == "info" and first["client"] == "127.0.0.1" and 0 < first["seconds"] < 10
    assert failure["level"] == "error" and failure["request"] == "job-2" and "ZeroDivisionError" in failure["error"]
    assert (second["status"], second["request"]) == (500, "job-2")


def test_the_command_logs_requests(tmp_path):
    from kernelstream import save

    model = logistic()
    model.learn(*moons(20))
    save(model, tmp_path / "m.ks")
    command = [sys.executable, "-m", "kernelstream.cli", "serve", tmp_path / "m.ks", "--port", "0", "--log", "info"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in server.stderr if " at http://" in line)
        client = Client(int(re.search(r"http://[^:]+:(\d+)", line)[1]))
        assert client.get("/models/m", X_Request_ID="abc")[0] == 200
        found = next(json.loads(line) for line in server.stderr if '"abc"' in line)
        assert found["path"] == "/models/m" and found["status"] == 200
    finally:
        server.terminate()
        server.wait(20)
