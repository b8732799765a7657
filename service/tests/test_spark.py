"""Spark: learners in its state store, one learner by batches, sums over executors, models as functions."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernelstream as ks
from kernelstream import distributed, model_io
from kernelstream.features import RandomFourier
from kernelstream_service.keyed import KeyedLearner

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet", "ignore:The copy keyword")

SCHEMA = "k long, at long, a double, b double, y double"


@pytest.fixture(scope="module")
def session():
    pytest.importorskip("pyspark")
    from kernelstream_service import spark

    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # half the time of short runs
    try:
        made = spark.session("local[2]", spark_sql_shuffle_partitions=2, spark_default_parallelism=2)
    except RuntimeError as error:
        pytest.skip(str(error))
    yield made
    made.stop()


@pytest.fixture
def table(rng):
    pd = pytest.importorskip("pandas")
    n = 400
    found = pd.DataFrame({"k": rng.integers(0, 3, n), "at": np.arange(n), "a": rng.normal(size=n)})
    return found.assign(b=rng.normal(size=n), y=lambda f: np.sin(f.a) + f.b**2)


def test_missing_java_is_named(monkeypatch, session):
    from kernelstream_service import spark

    monkeypatch.setattr(spark.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match="openjdk-17-jre"):
        spark.session()


def run(frame, folder, name="run"):
    """Answers to all there is, and the counts of each batch."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(folder / name))
        .option("checkpointLocation", str(folder / f"{name}.checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counts = [progress["observedMetrics"]["kernelstream"] for progress in query.recentProgress]
    return frame.sparkSession.read.parquet(str(folder / name)).toPandas(), counts


def states(session, checkpoint, key="k"):
    """States by key."""
    rows = session.read.format("statestore").option("stateVarName", "model").load(str(checkpoint)).collect()
    return {
        row.key[key]: bytes((row.value.value if "ttlExpirationMs" in row.value else row.value).file) for row in rows
    }


def test_a_learner_for_each_key_goes_on_after_a_restart(session, table, tmp_path):
    from kernelstream_service import spark

    table.loc[5, "a"] = np.nan
    table.loc[7, "y"] = np.nan
    (tmp_path / "in").mkdir()
    model, learner = ks.FeatureRegressor(random_state=0), KeyedLearner(ks.FeatureRegressor(random_state=0))
    expected = dict.fromkeys(range(3))
    for part in range(2):
        rows = table.iloc[200 * part : 200 * (part + 1)]
        rows.sample(frac=1, random_state=0).to_parquet(tmp_path / "in" / f"{part}.parquet")
        stream = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
        answers, counts = run(spark.learn_by(stream, model, "k", "y", order="at"), tmp_path)
        forecasts = {}
        for key, mine in rows.groupby("k"):
            expected[key], said = learner.step(expected[key], mine[["a", "b"]].to_numpy(), mine["y"].tolist())
            forecasts |= dict(zip(mine["at"], said.prediction))
    assert (counts[-1].rows, counts[-1].problems) == (200, 0)
    assert len(answers) == 400 and "NaN" in answers.set_index("at").problem[5]
    assert answers.problem.notna().sum() == 1
    later = answers[answers["at"] >= 200]
    assert_array_equal(later.prediction, [forecasts[at] for at in later["at"]])
    assert states(session, tmp_path / "run.checkpoint") == expected


def test_messages_bring_columns_late_and_bad_ones_are_counted(session, table, tmp_path):
    from kernelstream_service import spark

    texts = [f'{{"a": {row.a}, "y": "{"up" if row.y > 1 else "down"}"}}' for row in table.itertuples()]
    texts[3], texts[300] = "{no json", '{"a": 1.0, "late": "word", "y": "up"}'
    (tmp_path / "in").mkdir()
    table[["k", "at"]].assign(value=texts).to_parquet(tmp_path / "in" / "0.parquet")
    stream = session.readStream.schema("k long, at long, value string").parquet(str(tmp_path / "in"))
    model = ks.FeatureClassifier(random_state=0)
    answers, counts = run(
        spark.learn_by(stream, model, "k", "y", messages="value", order="at", probabilities=True), tmp_path
    )
    assert (counts[0].rows, counts[0].problems) == (400, 1)
    by = answers.set_index("at")
    assert "JSON" in by.problem[3] and by.prediction[300] in ("up", "down")
    assert_allclose(sum(by.probabilities[399].values()), 1.0)
    assert max(by.probabilities[399], key=by.probabilities[399].get) == by.prediction[399]
    kept = model_io.load(io.BytesIO(states(session, tmp_path / "run.checkpoint")[table.k[300]]))
    assert "late" in kept.columns_.kinds_


def test_idle_keys_are_forgotten_and_the_query_ends(session, table, tmp_path):
    from kernelstream_service import spark

    setting = "spark.sql.streaming.noDataMicroBatches.enabled"
    session.conf.set(setting, False)
    (tmp_path / "in").mkdir()
    first, second = table[:200], table[200:].query("k == 1")
    try:
        for i, rows in enumerate((first, second)):
            rows.to_parquet(tmp_path / "in" / f"{i}.parquet")
            stream = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
            run(spark.learn_by(stream, ks.FeatureRegressor(random_state=0), "k", "y", order="at", ttl=1.0), tmp_path)
            time.sleep(1.0)
    finally:
        session.conf.unset(setting)
    found = states(session, tmp_path / "run.checkpoint")
    assert list(found) == [1] and KeyedLearner.counts(found[1])["learned"] == len(second)


def test_one_model_learns_a_repeated_batch_once(session, table, tmp_path):
    from kernelstream_service import spark

    table.loc[250, "a"] = np.inf
    parts = [session.createDataFrame(table.iloc[i : i + 200]) for i in (0, 200)]
    model, said = ks.FeatureRegressor(random_state=0), {}

    def learn():
        return spark.OneModel(
            tmp_path / "model",
            model,
            "y",
            order="at",
            features=["a", "b"],
            answers=lambda frame, number: said.update({number: frame.toPandas()}),
        )

    one = learn()
    one(parts[0], 0)
    one(parts[0], 0)
    one.close()
    one = learn()  # another process, to which Spark gives the last batch again
    one(parts[0], 0)
    one(parts[1], 1)
    assert one.learner.total == 399 and one.problems == 1
    with pytest.raises(ValueError, match="waits for batch 2"):
        one(parts[0], 0)
    one.close()
    by_hand = ks.FeatureRegressor(random_state=0)
    X, y = table[["a", "b"]].to_numpy(), table.y.to_numpy()
    by_hand.learn(X[:200], y[:200])
    good = np.isfinite(X[200:]).all(axis=1)
    assert_allclose(said[1].prediction[good], by_hand.predict(X[200:][good]), rtol=1e-12)
    assert said[1].problem[50] and said[1].problem.notna().sum() == 1


def test_a_model_as_a_function_of_columns(session, table, tmp_path):
    from kernelstream_service import spark

    X = table[["a", "b"]].to_numpy()
    model = ks.FeatureClassifier(random_state=0).fit(X, np.where(table.y > 1, "up", "down"))
    model_io.save(model, tmp_path / "model.ks")
    label, chance = spark.udf(tmp_path / "model.ks"), spark.udf(model, "predict_proba")
    table.loc[0, "a"] = None
    found = session.createDataFrame(table).select("at", label("a", "b").alias("p"), chance("a", "b").alias("q"))
    found = found.toPandas().sort_values("at", ignore_index=True)
    assert found.p[0] is None or found.p[0] != found.p[0]
    assert_array_equal(found.p[1:], model.predict(X[1:]))
    assert_array_equal(np.stack(found.q[1:]), model.predict_proba(X[1:]))


@pytest.mark.parametrize(
    "model",
    [
        ks.OnlineRidge(RandomFourier(n_components=20, gamma=0.5), random_state=0),
        ks.FalkonClassifier(n_centers=10, gamma=2.0, lam=0.2, tol=1e-10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sums_over_executors_are_those_of_one_machine(session, table, model):
    from sklearn.base import clone

    X, y = table[["a", "b"]].to_numpy(), table.y.to_numpy()
    if isinstance(model, ks.FalkonClassifier):
        y = np.where(y > 1, "up", "down")
    frame = session.createDataFrame(table[["a", "b"]].assign(y=y))
    frame = frame.repartition(9 if isinstance(model, ks.OnlineRidge) else 2)  # a tree, or a few that the driver adds
    rows = frame.toPandas()  # in the order of the partitions, from which centres are drawn
    X, y = rows[["a", "b"]].to_numpy(), rows["y"].to_numpy()
    here = clone(model).fit(X, y, **({"shuffle": False} if isinstance(model, ks.OnlineRidge) else {}))
    there = distributed.fit(clone(model), frame, "y")
    score = "decision_function" if isinstance(model, ks.FalkonClassifier) else "predict"
    assert_allclose(getattr(there, score)(X), getattr(here, score)(X), rtol=1e-8, atol=1e-8)
    assert_array_equal(there.feature_names_in_, ["a", "b"])
    answers, expected = distributed.predict(there, frame).toPandas(), there.predict(rows[["a", "b"]])
    assert_array_equal(answers["y"], y)
    if isinstance(model, ks.FalkonClassifier):
        assert_array_equal(answers["predict"], expected)
    else:
        assert_allclose(answers["predict"], expected, rtol=1e-12, atol=1e-12)


def test_what_is_wrong_on_an_executor_is_named(session, table):
    table.loc[100, "a"] = np.nan
    frame = session.createDataFrame(table[["a", "b", "y"]]).coalesce(1)
    with pytest.raises(distributed.BadPartitionError, match=r"partition 0, row 1: .*NaN"):
        distributed.fit(ks.OnlineRidge(RandomFourier(n_components=20, gamma=0.5)), frame, "y")
    with pytest.raises(ValueError, match="must name the target"):
        distributed.fit(ks.OnlineRidgeClassifier(), frame, "z")


@pytest.mark.slow
def test_a_driver_killed_twenty_times_leaves_the_states_of_training_from_files(session, tmp_path, rng):
    """10^6 rows, 100 keys; Spark repeats batches, and the states are those of learning every row once, bit for bit."""
    pd = pytest.importorskip("pandas")
    rows, files, keys, kills = 1_000_000, 25, 100, 20
    (tmp_path / "in").mkdir()
    tables = []
    for i in range(files):
        n = rows // files
        X, key = rng.normal(size=(n, 2)), rng.permutation(np.arange(n, dtype=np.int32) % keys)
        table = pd.DataFrame({"key": key, "at": np.arange(i * n, (i + 1) * n), "a": X[:, 0], "b": X[:, 1]})
        tables.append(table.assign(y=np.sin(X[:, 0] + key) + X[:, 1] ** 2))
        tables[-1].sample(frac=1, random_state=i).to_parquet(tmp_path / "in" / f"{i:02d}.parquet")
        os.utime(tmp_path / "in" / f"{i:02d}.parquet", (1e9 + i, 1e9 + i))
    begun = time.monotonic()
    span = 0.0  # seconds from the start of a query to somewhat beyond the end of its first batch
    for kill in range(kills):
        process = driver(tmp_path)
        began = time.monotonic()
        while not span and not entries(tmp_path, "commits"):
            time.sleep(0.05)
        span = span or 1.2 * (time.monotonic() - began)
        time.sleep(rng.uniform(0.0, span))  # while it reads, learns, writes states or answers, or commits
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        begun_batches, done = entries(tmp_path, "offsets"), entries(tmp_path, "commits")
        print(
            f"kill {kill + 1}: {time.monotonic() - began:.1f} s after the start of the query, "
            f"{len(done)} batches done, {len(begun_batches - done)} cut"
        )
    assert driver(tmp_path).wait() == 0
    print(f"{kills} kills, {rows} rows in {time.monotonic() - begun:.0f} s")
    found, answers = states(session, tmp_path / "checkpoint", "key"), session.read.parquet(str(tmp_path / "answers"))
    assert answers.count() == rows == answers.select("at").distinct().count()
    for key in range(keys):
        by_batch, at_once = ks.FeatureRegressor(random_state=0), ks.FeatureRegressor(random_state=0)
        mine = [table[table.key == key] for table in tables]
        for part in mine:
            by_batch.learn(part[["a", "b"]].to_numpy(), part.y.to_numpy())
        notes = {"learned": rows // keys, "problems": 0}
        assert found[key] == model_io.to_bytes(by_batch, notes)
        whole = pd.concat(mine)
        at_once.learn(whole[["a", "b"]].to_numpy(), whole.y.to_numpy())
        assert_allclose(at_once.state_["w"], by_batch.state_["w"], rtol=1e-10, atol=1e-12)
    print(f"{keys} of {keys} states equal those of training from files, bit for bit")


def driver(folder):
    """A driver whose query has been started, in a session of its own."""
    program = [sys.executable, str(Path(__file__).with_name("spark_killed.py")), str(folder)]
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(program, start_new_session=True, stdout=subprocess.PIPE, env=env)
    process.stdout.readline()
    return process


def entries(folder, log):
    """Batches in a log of the checkpoint: begun ("offsets"), or done ("commits")."""
    return {path.name for path in (folder / "checkpoint" / log).glob("[0-9]*")}
