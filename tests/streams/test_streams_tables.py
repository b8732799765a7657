"""Data frames, Arrow files, arrays and iterators."""

import numpy as np
import pytest
import scipy.sparse as sp
from stream_rows import DENSE, LABELS, whole

from kernelstream import streams
from kernelstream.streams import Arrays, Arrow, BadRowError, Blocks, Frame


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(
        {
            "x": np.r_[np.random.default_rng(0).standard_normal(299), np.nan],
            "n": np.arange(300),
            "flag": np.arange(300) % 2 == 0,
            "city": [["Rome", "Oslo", None][i % 3] for i in range(300)],
            "label": [["no", "yes"][i % 2] for i in range(300)],
        }
    )


def expected_table(table):
    good = table[table.city.notna() & table.x.notna()]
    return np.column_stack([good.x, good.n, good.flag]).astype(float), good.city.to_numpy(str)


OPTIONS = {"target": "city", "drop": ["label"], "on_error": "skip", "block": 37}


def check_table(stream, table):
    X, y, sizes = whole(stream)
    X0, y0 = expected_table(table)
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)
    assert stream.skipped == 300 - len(y0)
    assert set(sizes[:-1]) == {37}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(table, library):
    if library == "polars":
        frame = pytest.importorskip("polars").from_pandas(table)
    elif library == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(table)
    else:
        frame = table
    check_table(Frame(frame, **OPTIONS), table)
    check_table(streams.open(frame, **OPTIONS), table)
    stream = Frame(frame, **OPTIONS)
    stream.read()
    position = stream.position
    second = stream.read()
    stream.seek(position)
    np.testing.assert_array_equal(stream.read()[0], second[0])


def test_frames_one_after_the_other(table):
    pieces = [table.iloc[i : i + 50] for i in range(0, 300, 50)]
    check_table(Frame(iter(pieces), **OPTIONS), table)
    with pytest.raises(BadRowError, match=r"data frame, row 3: column 'city' \(the target\) is missing"):
        Frame(table, "city", drop=["label"]).read()
    with pytest.raises(ValueError, match="column 'city' holds no numbers: drop it, or encode the rows"):
        Frame(table, "label").read()
    with pytest.raises(ValueError, match="no data frame"):
        Frame(iter([]))
    X, y = Frame(table, "n", drop=["city", "label"], missing=0.0, block=300).read()
    assert y.tolist() == list(range(300))
    assert X[-1, 0] == 0


@pytest.mark.parametrize("kind", ["parquet", "feather", "arrow", "arrow stream"])
def test_arrow_files(table, kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / f"t.{kind.split()[0]}"
    data = pa.Table.from_pandas(table)
    if kind == "parquet":
        from pyarrow.parquet import write_table

        write_table(data, path, row_group_size=64)
    elif kind == "feather":
        from pyarrow.feather import write_feather

        write_feather(data, path, chunksize=64)
    else:
        new = pa.ipc.new_stream if kind == "arrow stream" else pa.ipc.new_file
        with new(str(path), data.schema) as writer:
            writer.write_table(data, max_chunksize=50)
    check_table(streams.open(path, **OPTIONS), table)
    stream = Arrow(path, **OPTIONS)
    blocks = list(stream)
    for stop in (0, 1, 4):
        stream = Arrow(path, **OPTIONS)
        for _ in range(stop):
            stream.read()
        again = Arrow(path, **OPTIONS)
        again.seek(stream.position)
        rest = list(again)
        assert len(rest) == len(blocks) - stop
        np.testing.assert_array_equal(rest[0][0], blocks[stop][0])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is not a Parquet, Feather or Arrow file"):
        Arrow(path)


def test_arrays_in_memory_and_bad_values(caplog):
    X = DENSE.copy()
    X[3, 1], X[10, 0] = np.nan, np.inf
    y = LABELS.copy()
    y[20] = np.nan
    keep = np.delete(np.arange(500), [3, 10, 20])
    for rows in (X, sp.csr_matrix(X)):
        stream = Arrays(rows, y, 64, on_error="log")
        got, target, sizes = whole(stream)
        np.testing.assert_array_equal(got, DENSE[keep])
        np.testing.assert_array_equal(target, LABELS[keep])
        assert stream.skipped == 3
        assert set(sizes[:-1]) == {64}
    assert "array, row 4: a value is NaN or infinite" in caplog.text
    assert "array, row 21: the target is NaN" in caplog.text
    with pytest.raises(BadRowError, match="row 4"):
        list(Arrays(X, y))
    with pytest.raises(ValueError, match="500 rows but a target of shape"):
        Arrays(X, y[:-1])
    with pytest.raises(ValueError, match="two-dimensional"):
        Arrays(np.ones(3))


def test_arrays_in_other_files(tmp_path):
    sp.save_npz(tmp_path / "scipy.npz", sp.csr_matrix(DENSE))
    np.save(tmp_path / "X.npy", np.asfortranarray(DENSE))
    np.save(tmp_path / "y.npy", LABELS)
    np.savez(tmp_path / "f.npz", X=np.asfortranarray(DENSE))
    for X, y in (
        (tmp_path / "scipy.npz", LABELS),
        (tmp_path / "X.npy", tmp_path / "y.npy"),
        (tmp_path / "f.npz", LABELS),
    ):
        got, target, _ = whole(Arrays(X, y, 77))
        np.testing.assert_array_equal(got, DENSE)
        np.testing.assert_array_equal(target, LABELS)
    np.savez_compressed(tmp_path / "bad.npz", X=np.asfortranarray(DENSE))
    with pytest.raises(ValueError, match="stored by columns"):
        Arrays(tmp_path / "bad.npz")
    np.savez(tmp_path / "bad.npz", Z=DENSE)
    with pytest.raises(ValueError, match="holds Z; it must hold X"):
        Arrays(tmp_path / "bad.npz")
    np.savez(tmp_path / "bad.npz", X=np.array([[None]]))
    with pytest.raises(ValueError, match="Python objects"):
        Arrays(tmp_path / "bad.npz")
    parts = {"X_data": np.ones(3), "X_indices": np.arange(3), "X_indptr": np.array([0, 2]), "X_shape": np.array([1, 3])}
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(ValueError, match="do not fit together"):
        Arrays(tmp_path / "bad.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(ValueError, match="damaged"):
        Arrays(tmp_path / "bad.npz")


def test_iterators():
    pairs = [(DENSE[i : i + n], LABELS[i : i + n]) for i, n in ((0, 100), (100, 0), (100, 1), (101, 399))]
    for source in (pairs, iter(pairs), [(sp.csr_matrix(X), y) for X, y in pairs]):
        X, y, sizes = whole(Blocks(source, 64))
        np.testing.assert_array_equal(X, DENSE)
        np.testing.assert_array_equal(y, LABELS)
        assert sizes == [64] * 7 + [52]
    stream = Blocks(pairs, 64)
    stream.seek({"rows": 128, "skipped": 0})
    np.testing.assert_array_equal(stream.read()[0], DENSE[128:192])
    stream.seek({"rows": 64, "skipped": 0})
    np.testing.assert_array_equal(stream.read()[0], DENSE[64:128])
    with pytest.raises(ValueError, match="ends before"):
        stream.seek({"rows": 501, "skipped": 0})
    with pytest.raises(ValueError, match=r"pairs \(X, y\)"):
        Blocks([1, 2]).read()
