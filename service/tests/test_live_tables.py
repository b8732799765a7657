"""Bodies that are tables: lines of JSON, and Arrow."""

import json

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)
pytest.importorskip("pyarrow")

import pyarrow as pa
from live_cases import logistic
from live_client import caught_up

from kernelstream.columns import Columns, make_stream
from kernelstream_service import schemas, tables
from kernelstream_service.problems import Problem

ARROW = "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"
ROWS = [{"town": "Rome" if i % 3 else "Oslo", "size": float(i), "when": f"2024-01-{1 + i % 28:02d}"} for i in range(60)]
ROWS[7]["size"] = None
Y = [i % 2 for i in range(60)]


def arrow(rows, options=None, schema=None):
    table = pa.Table.from_pylist(rows, schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def lines(rows):
    return "\n".join(map(json.dumps, rows)).encode()


@pytest.fixture
def flats(fresh):
    server, client = fresh({name: make_stream(Columns(), logistic()) for name in ("json", "arrow", "lines")})
    return server, client


def test_all_bodies_are_the_same(flats):
    """The same rows, targets and ids learned from the three kinds give the same models, to the bit."""
    server, client = flats
    told = [row | {"y": y, "key": f"k{i}"} for i, (row, y) in enumerate(zip(ROWS, Y))]
    ids = [row["key"] for row in told]
    assert client.post("/models/json/learn", {"rows": ROWS, "y": Y, "ids": ids})[1]["learned"] == 60
    for name, kind, content in (("arrow", ARROW, arrow(told)), ("lines", LINES, lines(told))):
        query = f"/models/{name}/learn?target=y&id=key"
        assert client.post(query, content, Content_Type=kind)[1]["learned"] == 60
        assert client.post(query, content, Content_Type=kind)[1]["repeated"] == 60
    found = []
    for name, kind, content in (
        ("json", "application/json", {"rows": ROWS}), ("arrow", ARROW, arrow(ROWS)), ("lines", LINES, lines(ROWS)),
    ):  # fmt: skip
        caught_up(server, name)
        status, answer = client.post(f"/models/{name}/predict", content, Content_Type=kind)
        assert status == 200
        found.append(answer)
    assert found[0] == found[1] == found[2] and "column 'size' is missing in row 7" in found[0]["warnings"][0]


def test_types_of_arrow(flats):
    """Words as dictionaries, dates as timestamps, whole numbers: what the same rows in JSON are."""
    server, client = flats
    client.post("/models/json/learn", {"rows": ROWS, "y": Y})
    caught_up(server, "json")
    table = pa.table({
        "town": pa.array([row["town"] for row in ROWS]).dictionary_encode(),
        "size": pa.array([row["size"] for row in ROWS], pa.float32()),
        "when": pa.array(np.array([row["when"] for row in ROWS], "datetime64[us]")),
    })  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=13)
    plain = client.post("/models/json/predict", {"rows": ROWS})[1]
    assert client.post("/models/json/predict", sink.getvalue().to_pybytes(), Content_Type=ARROW)[1] == plain


def test_tables_that_are_refused(flats):
    _, client = flats
    learn, predict = "/models/json/learn", "/models/json/predict"
    told = [row | {"y": y} for row, y in zip(ROWS, Y)]

    def refused(path, content, kind, status, text):
        found, answer = client.post(path, content, Content_Type=kind)
        assert found == status and text in answer["error"], (found, answer)

    refused(learn, lines(told), LINES, 422, "name the column of the target")
    refused(learn + "?target=price", lines(told), LINES, 422, "row 0 has no column 'price'")
    refused(learn + "?target=y&goal=y", lines(told), LINES, 422, "unknown parameter 'goal'")
    refused(learn + "?target=y", b'{"a": 1}\n{"a": ', LINES, 400, "not JSON")
    refused(learn + "?target=y", b'{"a": 1, "y": 1}\n7\n', LINES, 422, "Expected `object | array`")
    refused(learn + "?target=y", b"[1, 2]\n", LINES, 422, "row 0 has no column 'y'")
    refused(learn + "?target=y", lines([{"a": 1, "y": [2]}]), LINES, 422, "Expected")
    refused(predict, b"no arrow", ARROW, 400, "not an Arrow stream")
    refused(predict, b"", ARROW, 400, "not an Arrow stream")
    for cut in (10, 100, 300):
        refused(predict, arrow(ROWS)[:-cut], ARROW, 400, "not an Arrow stream")
    for codec in ("zstd", "lz4"):
        refused(predict, arrow(ROWS, pa.ipc.IpcWriteOptions(compression=codec)), ARROW, 415, "without compression")
    refused(predict, arrow([{"a": [1, 2]}]), ARROW, 422, "column 'a' has the type list")
    refused(learn + "?target=y", arrow(ROWS), ARROW, 422, "row 0 has no column 'y'")
    assert client.get("/models/json")[1]["rows"] == 0


def test_small_bodies_do_not_become_large_ones():
    """Rows without bytes, and long words that a dictionary has once."""
    nothing = pa.table({"a": pa.nulls(10**9)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, nothing.schema) as writer:
        writer.write_table(nothing)
    with pytest.raises(Problem, match="at most 50,000 rows"):
        tables.from_arrow(sink.getvalue().to_pybytes(), schemas.Predict, {}, 50_000)
    words = pa.DictionaryArray.from_arrays(np.zeros(40_000, np.int32), ["x" * 10_000])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("a", words.type)])) as writer:
        writer.write_batch(pa.record_batch([words], ["a"]))
    with pytest.raises(Problem, match="characters"):
        tables.from_arrow(sink.getvalue().to_pybytes(), schemas.Predict, {}, 50_000)


def test_damaged_streams_are_refused():
    """Whatever byte is changed: rows of the right number and types, or a problem, and nothing else."""
    body = arrow([{"a": float(i), "b": "word"} for i in range(5)])
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        content = bytearray(body)
        content[rng.integers(len(content))] = rng.integers(256)
        try:
            tables.from_arrow(bytes(content), schemas.Predict, {}, 100)
        except Problem:
            refused += 1
    assert refused > 50
