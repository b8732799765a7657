"""Rows a second on Spark, on this machine: what Spark takes by itself, and with a learner for each key.

    OPENBLAS_NUM_THREADS=1 python service/benchmarks/spark_stream.py [--rows 1000000] [--batch 100000] [--page]

Generated rows of 8 columns of float64 in Parquet files, a file a batch; 100 keys; two cores (``local[2]``). The same
query runs with a function that returns its input and keeps a state of a few bytes ("Spark alone"), and with learners of
several sizes. Beside them one process without Spark that learns the same keys (``keyed.KeyedLearner``),
and ridge regression summed up by Spark and by Dask. "By processor time" is
what the same work would give if nothing else ran on the two cores. Rates leave out the first batch, in which processes
start. Writes spark_stream.json beside this file; ``--page`` puts the tables into docs/spark.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client
from pyspark.sql.streaming import StatefulProcessor

from kernelstream import FeatureRegressor, KernelRegressor, OnlineRidge, distributed, spark
from kernelstream.features import RandomFourier
from kernelstream_service.keyed import KeyedLearner

ROOT = Path(__file__).parents[2]
KEYS, COLUMNS = 100, 8
NAMES = [f"x{i}" for i in range(COLUMNS)]
SCHEMA = "key int, at long, y double, " + ", ".join(f"{name} double" for name in NAMES)
LEARNERS = {
    "Spark alone": None,
    "FeatureRegressor, 100 frequencies": FeatureRegressor(random_state=0),
    "OnlineRidge, 50 frequencies": OnlineRidge(RandomFourier(n_components=50), random_state=0),
    "KernelRegressor, small": KernelRegressor(size="small", random_state=0),
}


class Same(StatefulProcessor):
    """Returns its input, and keeps a few bytes."""

    def init(self, handle: Any) -> None:
        self.kept = handle.getValueState("model", "file binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        self.kept.get()
        for frame in rows:
            yield frame[["key", "at", "y"]].assign(prediction=0.0)
        self.kept.update((b"state",))

    def close(self) -> None:
        """Nothing is open."""


def generate(folder: Path, rows: int, batch: int) -> list[Path]:
    rng, files = np.random.default_rng(0), []
    for start in range(0, rows, batch):
        X = rng.normal(size=(batch, COLUMNS))
        frame = pd.DataFrame(X, columns=NAMES).assign(
            key=rng.integers(0, KEYS, batch).astype(np.int32), at=np.arange(start, start + batch)
        )
        frame["y"] = np.sin(X[:, 0] + frame["key"]) + X[:, 1] * X[:, 2]
        files.append(folder / f"{start // batch:05d}.parquet")
        frame.to_parquet(files[-1])
        os.utime(files[-1], (1e9 + start, 1e9 + start))  # Spark reads files in the order of their times
    return files


def processor() -> float:
    """Seconds of processor time that this process and all it has started have used."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rsplit(")", 1)[1].split()
            parents[entry.parent.name] = fields[1]
            used[entry.parent.name] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total = 0.0
    for one, seconds in used.items():
        at: str | None = one
        while at is not None and at != str(os.getpid()):
            at = parents.get(at)
        total += seconds if at is not None else 0.0
    return total


def streamed(session: Any, folder: Path, model: Any) -> tuple[float, float]:
    """Rows a second of a query by the clock and, if it had two cores for itself, by its processor time.

    The first batch is not counted.
    """
    stream = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    if model is None:
        out = "key int, at long, y double, prediction double"
        answers = stream.groupBy("key").transformWithStateInPandas(Same(), out, "append", "none")
    else:
        answers = spark.learn_by(stream, model, "key", "y", order="at")
    checkpoint = tempfile.mkdtemp()
    query = (
        answers.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    while not query.recentProgress:
        time.sleep(0.1)
    used = processor()
    query.awaitTermination()
    used = processor() - used
    shutil.rmtree(checkpoint, ignore_errors=True)
    done = [p for p in query.recentProgress if p["numInputRows"]][1:]
    rows = sum(p["numInputRows"] for p in done)
    return rows / sum(p["durationMs"]["triggerExecution"] for p in done) * 1000, rows / used * 2


def alone(files: list[Path], model: Any) -> float:
    """Rows a second of one process that learns the same keys, reading included."""
    learner, states, rows, began = KeyedLearner(model), {}, 0, time.perf_counter()
    for path in files:
        for key, mine in pd.read_parquet(path).groupby("key"):
            states[key] = learner.step(states.get(key), mine[NAMES].to_numpy(), mine["y"].to_numpy())[0]
            rows += len(mine)
    return rows / (time.perf_counter() - began)


def summed(session: Any, folder: Path, rows: int) -> dict[str, float]:
    """Rows a second of ridge regression on two cores, by each engine."""
    model, found = OnlineRidge(RandomFourier(n_components=250, gamma=0.1), random_state=0), {}
    frame = session.read.parquet(str(folder)).drop("key", "at")
    for _ in range(2):  # the first starts processes
        began = time.perf_counter()
        distributed.fit(model, frame, "y")
        found["Spark"] = rows / (time.perf_counter() - began)
    parts = distributed.files(folder / "*.parquet", target="y", drop=["key", "at"])
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        for _ in range(2):
            began = time.perf_counter()
            distributed.fit(model, parts)
            found["Dask"] = rows / (time.perf_counter() - began)
    return found


def by_key(session: Any, folder: Path, files: list[Path], name: str) -> dict[str, Any]:
    model = LEARNERS[name]
    return {"by key": {name: [*streamed(session, folder, model), None if model is None else alone(files, model)]}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    record = Path(__file__).with_suffix(".json")
    with tempfile.TemporaryDirectory() as folder:
        files = generate(Path(folder), args.rows, args.batch)
        session = spark.session("local[2]", spark_sql_shuffle_partitions=2)
        found: dict[str, Any] = {
            "rows": args.rows, "batch": args.batch, "machine": platform.machine(), "load": os.getloadavg()[0],
            "spark": session.version,
        }  # fmt: skip
        steps = [lambda name=name: by_key(session, Path(folder), files, name) for name in LEARNERS]
        for step in [*steps, lambda: {"ridge": summed(session, Path(folder), args.rows)}]:
            for name, value in step().items():
                found.setdefault(name, {}).update(value)
            found["load after"] = os.getloadavg()[0]
            print(found, flush=True)
            # at every step: a run that is cut short leaves what it has measured
            record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            if args.page:
                page = ROOT / "docs" / "spark.md"
                page.write_text(inserted(page.read_text(encoding="utf-8"), tables(found)), encoding="utf-8")
        session.stop()


def tables(found: dict[str, Any]) -> str:
    lines = [
        f"Spark {found['spark']}, `local[2]` on two {found['machine']} cores (load {found['load']:.0f} to "
        f"{found['load after']:.0f}), {found['rows']:,} rows of {COLUMNS} columns, {KEYS} keys, "
        f"{found['batch']:,} rows a batch:",
        "",
        "| learner of each key | rows/s on Spark | by processor time | one process without Spark |",
        "|---|---:|---:|---:|",
    ]
    for name, (rate, by_it, own) in found["by key"].items():
        lines.append(f"| {name} | {rate:,.0f} | {by_it:,.0f} | {'' if own is None else f'{own:,.0f}'} |")
    if "ridge" not in found:
        return "\n".join(lines)
    lines += ["", "| ridge, 500 features, two cores | rows/s |", "|---|---:|"]
    lines += [f"| `distributed.fit`, {name} | {rate:,.0f} |" for name, rate in found["ridge"].items()]
    return "\n".join(lines)


def inserted(page: str, table: str) -> str:
    start, end = "<!-- figures: written by service/benchmarks/spark_stream.py -->", "<!-- end of figures -->"
    before, rest = page.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


if __name__ == "__main__":
    main()
