"""Checkpoints: a run that was killed and resumed is the run that was not."""

import gzip
import io
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import kernelstream as ks
from kernelstream import files, streams
from kernelstream.checkpoint import Checkpoints, train
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.model_io import to_bytes
from kernelstream.testing.streaming import assert_same_state

rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
target = np.sin(2 * X[:, 0])


def table(block=64, labels=y):
    return streams.Arrays(X, labels, block)


def stop_after(rows, stream):
    return lambda: stream.rows >= rows


@pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_operations_on_files(tmp_path, every, rng):
    wide = rng.random((3000, 30)) < 0.3
    with open(tmp_path / "data.svm", "w") as file:
        for i, row in enumerate(wide):
            pairs = " ".join(f"{j + 1}:{rng.random():.4f}" for j in np.flatnonzero(row[: 5 + i // 100]))
            file.write(f"{i % 3} {pairs}\n" if i % 50 else "a line that cannot be read\n")
    script = Path(__file__).with_name("kill_and_resume.py")
    command = [sys.executable, str(script), str(tmp_path), str(every), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    killed, resumed = map(int, done.stdout.split())
    assert killed >= 60 // every
    assert resumed >= killed // 4  # many had something to go on from


@pytest.mark.parametrize(
    "est",
    [ks.FeatureClassifier(random_state=0), ks.NystroemClassifier(random_state=0), ks.FeatureRegressor(random_state=0)],
    ids=repr,
)
def test_interrupted_and_resumed_is_bit_identical(est, tmp_path):
    labels = target if isinstance(est, ks.FeatureRegressor) else y
    whole = clone(est)
    straight = train(whole, table(labels=labels))
    for rows in (0, 64, 100, 500, 1000):
        folder = tmp_path / str(rows)
        stream = table(labels=labels)
        first = train(clone(est), stream, folder, every=200, stop=stop_after(rows, stream))
        assert first.finished == (rows >= 1000) or rows == 1000
        second = clone(est)
        run = train(second, table(labels=labels), folder, every=200, resume=True)
        assert run.finished
        assert run.rows == 1000
        assert run.resumed == first.rows
        assert run.value == straight.value
        assert to_bytes(second) == to_bytes(whole)


def test_the_error_of_a_run_begins_with_the_first_forecast(tmp_path):
    """Targets far from zero, and a run that goes on within it: what nothing was known of does not count."""
    far = 1e6 + target
    scores = ks.FeatureRegressor(random_state=0).learn(X, far)
    stream = table(labels=far)
    train(ks.FeatureRegressor(random_state=0), stream, tmp_path, stop=stop_after(200, stream))
    run = train(ks.FeatureRegressor(random_state=0), table(labels=far), tmp_path, resume=True)
    assert run.resumed and run.value == pytest.approx(np.mean((scores - far)[1:] ** 2), rel=1e-9)


def test_checkpoints_are_few_and_whole(tmp_path):
    run = train(ks.FeatureClassifier(random_state=0), table(50), tmp_path, every=100, keep=2)
    assert [path.name for path in Checkpoints(tmp_path).files()] == [
        "checkpoint-000000000900.ks",
        "checkpoint-000000001000.ks",
    ]
    assert run.rows == 1000
    assert run.metric == "mistake_rate"
    for path in Checkpoints(tmp_path).files():
        assert ks.load(path).state_["t"] == int(path.stem[-12:])


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    whole = ks.FeatureClassifier(random_state=0)
    train(whole, table())
    stream = table()
    train(ks.FeatureClassifier(random_state=0), stream, tmp_path, every=128, stop=stop_after(600, stream))
    latest = Checkpoints(tmp_path).files()[-1]
    latest.write_bytes(latest.read_bytes()[:500])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f".kernelstream-{files._MACHINE}-{ended.pid}-{16 * 'a'}.tmp").write_bytes(b"half")
    resumed = ks.FeatureClassifier(random_state=0)
    with pytest.warns(RuntimeWarning, match="skipping a checkpoint"):
        run = train(resumed, table(), tmp_path, every=128, resume=True)
    assert 0 < run.resumed < 600
    assert to_bytes(resumed) == to_bytes(whole)
    assert not list(tmp_path.glob("*.tmp"))


def test_only_the_same_run_can_go_on(tmp_path):
    stream = table()
    est = ks.FeatureClassifier(random_state=0)
    train(est, stream, tmp_path, every=100, stop=stop_after(300, stream), notes={"data": "a"})
    with pytest.raises(ValueError, match="holds checkpoints of an earlier run"):
        train(ks.FeatureClassifier(random_state=0), table(), tmp_path)
    for other, options, reason in (
        (ks.FeatureClassifier(random_state=1), {}, "random_state=1.* now"),
        (ks.FeatureClassifier(random_state=0), {"notes": {"data": "b"}}, "data='b' now, 'a' then"),
        (ks.FeatureRegressor(random_state=0), {}, "FeatureRegressor"),
    ):
        with pytest.raises(ValueError, match=rf"belongs to another run: .*{reason}"):
            train(other, table(), tmp_path, resume=True, **({"notes": {"data": "a"}} | options))
    with pytest.raises(ValueError, match="block=10 now, 64 then"):
        train(ks.FeatureClassifier(random_state=0), table(10), tmp_path, resume=True, notes={"data": "a"})
    with pytest.raises(ValueError, match="needs the folder"):
        train(est, table(), resume=True)
    with pytest.raises(ValueError, match="every must be"):
        train(est, table(), every=0)
    with pytest.raises(ValueError, match="keep must be"):
        Checkpoints(tmp_path, 0)
    with pytest.raises(ValueError, match="no target to learn"):
        train(est, streams.Arrays(X))
    assert train(ks.FeatureClassifier(random_state=0), table(), tmp_path / "new", resume=True).resumed == 0


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("files", [1, 2])
def test_data_edited_behind_the_run_are_noticed(tmp_path, packed, files):
    rows = ["a,b,y\n", *(f"{a:.6f},{b:.6f},{int(a * b > 0)}\n" for a, b in X[:, :2])]
    paths = [tmp_path / f"{i}.csv" for i in range(files)]

    def write(content, at):
        paths[at].write_bytes((gzip.compress if packed else bytes)("".join(content).encode()))

    def opened(source):
        return streams.open(source, target="y", block=64)

    def stream():
        return opened(paths[0]) if files == 1 else streams.Chain(paths, opened)

    for at in range(files):
        write(rows, at)
    first, learned = stream(), 640 if files == 1 else 1000 + 640
    train(ks.FeatureClassifier(random_state=0), first, tmp_path / "run", every=100, stop=stop_after(learned, first))
    assert 640 * len(rows[1]) > 3 * 4096
    rng = np.random.default_rng(1)
    for line in rng.integers(1, 641, 8).tolist():  # one digit, anywhere in what was learned, in any of the files
        edited = list(rows)
        edited[line] = edited[line][:4] + str((int(edited[line][4]) + 1) % 10) + edited[line][5:]
        at = line % files
        write(edited, at)
        before = ks.FeatureClassifier(random_state=0)
        with pytest.raises(ValueError, match=rf"{at}\.csv has changed in its first [\d,]+ bytes"):
            train(before, stream(), tmp_path / "run", resume=True)
        assert not hasattr(before, "state_")
        write(rows, at)
    write([*rows, *rows[1:11]], files - 1)  # what was appended, or comes after the run, is no edit
    run = train(ks.FeatureClassifier(random_state=0), stream(), tmp_path / "run", resume=True)
    assert run.finished and run.rows == 1000 * files + 10


def test_other_data_in_a_pipe_are_noticed(tmp_path):
    rows = [f"{int(a * b > 0)} 1:{a:.6f} 2:{b:.6f}\n" for a, b in X[:, :2]]

    def pipe(lines):
        source = io.BytesIO("".join(lines).encode())
        return streams.LibSVM(streams.bytes.LineBuffer(source, chunk=4096), block=64)

    first = pipe(rows)
    train(ks.FeatureClassifier(random_state=0), first, tmp_path, every=100, stop=stop_after(640, first))
    edited = [*rows[:500], rows[500].replace("1:", "1:1"), *rows[501:]]
    with pytest.raises(ValueError, match="has changed in its first"):
        train(ks.FeatureClassifier(random_state=0), pipe(edited), tmp_path, resume=True)
    assert train(ks.FeatureClassifier(random_state=0), pipe(rows), tmp_path, resume=True).rows == 1000


def test_a_run_of_long_blocks_holds_what_it_was_before_each(tmp_path, monkeypatch):
    """What is held can be written as a checkpoint, and the run that goes on from it ends as any other."""
    monkeypatch.setattr("kernelstream.checkpoint.LONG_BLOCK_SECONDS", 0.0)
    whole, held = ks.FeatureClassifier(random_state=0), []
    train(whole, table(), hold=lambda *given: held.append(given), notes={"a": 1})
    assert held and [rows % 64 for _, rows, _ in held] == [0] * len(held)
    model, rows, inside = held[len(held) // 2]
    Checkpoints(tmp_path).save(pickle.loads(model), rows, inside)
    again = ks.FeatureClassifier(random_state=0)
    assert train(again, table(), tmp_path, resume=True, notes={"a": 1}).resumed == rows
    assert to_bytes(again) == to_bytes(whole)


# ---------------------------------------------------------------------- rows that get wider
def growing(labels):
    """Sparse blocks whose width grows from 2 to 4 columns."""
    for start, stop, width in ((0, 150, 2), (150, 400, 3), (400, 1000, 4)):
        yield X[start:stop, :width], labels[start:stop]


def widened():
    rows = X.copy()
    rows[:150, 2:] = 0
    rows[150:400, 3:] = 0
    return rows


def learn_both(grown, wide, labels):
    """One model learns rows that get wider, the other the same rows at their full width."""
    for rows, part in growing(labels):
        if hasattr(grown, "state_"):
            grown.widen(rows.shape[1])
        grown.learn(rows, part)
    wide.learn(widened(), labels)


WIDENING = {
    "fourier": lambda kind: kind(RandomFourier(n_components=40), random_state=0),
    "fourier, no warm-up": lambda kind: kind(RandomFourier(n_components=40, gamma=0.3), random_state=0),
    "laplacian": lambda kind: kind(RandomFourier("laplacian", n_components=40, gamma=0.3), random_state=0),
    "qmc": lambda kind: kind(RandomFourier(n_components=32, gamma=0.3, sampling="qmc"), random_state=0),
    "nystroem map": lambda kind: kind(Nystroem(n_components=30), random_state=0),
    "standardized": lambda kind: kind(RandomFourier(n_components=40), standardize=True, random_state=0),
}


@pytest.mark.parametrize(
    "name, engine", [*((name, "native") for name in WIDENING), ("fourier", "python"), ("nystroem map", "python")]
)
def test_a_widened_model_is_the_model_of_wide_rows(name, engine):
    for kind, labels in ((ks.FeatureClassifier, y), (ks.FeatureRegressor, target)):
        grown, wide = (WIDENING[name](kind).set_params(engine=engine) for _ in range(2))
        learn_both(grown, wide, labels)
        assert grown.n_features_in_ == 4
        assert_same_state(grown.state_, wide.state_, 1e-7, name)
        np.testing.assert_allclose(grown.predict(X), wide.predict(X), rtol=1e-6)


@pytest.mark.parametrize("budget", [30, 2000])  # with and without reaching the second phase
@pytest.mark.parametrize("refresh", [None, 100])
@pytest.mark.parametrize("gamma", [None, 0.5])
def test_nystroem_learners_widen(budget, refresh, gamma):
    for kind, labels in ((ks.NystroemClassifier, y), (ks.NystroemRegressor, target)):
        grown, wide = (kind(gamma=gamma, budget=budget, refresh=refresh, random_state=0) for _ in range(2))
        learn_both(grown, wide, labels)
        np.testing.assert_allclose(grown.predict(X[:50]), wide.predict(X[:50]), rtol=1e-4, atol=1e-6)


def test_widening_within_the_warm_up_of_sparse_rows():
    grown, wide = (ks.FeatureClassifier(RandomFourier(n_components=40), random_state=0) for _ in range(2))
    rows = widened()
    for start, stop, width in ((0, 7, 2), (7, 50, 3), (50, 1000, 4)):
        if hasattr(grown, "state_"):
            grown.widen(width)
        part = widened()[start:stop]
        part[:, width:] = 0
        rows[start:stop] = part
        grown.learn(sp.csr_array(part[:, :width]), y[start:stop])
    wide.learn(sp.csr_array(rows), y)
    assert_same_state(grown.state_, wide.state_, 1e-7, "sparse")


def test_what_cannot_widen_says_so():
    est = ks.FeatureClassifier(RandomFourier(gamma=0.5, sampling="orthogonal"), random_state=0).fit(X[:, :2], y)
    before = to_bytes(est)
    with pytest.raises(ValueError, match=r"RandomFourier.* cannot take more columns"):
        est.widen(3)
    assert to_bytes(est) == before
    est = ks.FeatureClassifier(random_state=0).fit(X, y)
    for width in (3, 4.5, True, "5"):
        with pytest.raises(ValueError, match="n_features must be an integer >= 4"):
            est.widen(width)
    assert est.widen(4) is est
    with pytest.raises(AttributeError):
        ks.FeatureClassifier().widen(3)
    named = ks.FeatureClassifier(random_state=0).fit(
        pytest.importorskip("pandas").DataFrame(X, columns=list("abcd")), y
    )
    with pytest.raises(ValueError, match="columns by name"):
        named.widen(5)


def test_a_stream_that_gets_wider(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{i % 2} {i % 7 + 1}:1 {10 + i // 300}:{i % 2}\n" for i in range(900)))
    est = ks.FeatureClassifier(RandomFourier(n_components=50, gamma=0.5), random_state=0)
    run = train(est, streams.open(path, block=100))
    assert est.n_features_in_ == 12
    assert run.value < 0.2
