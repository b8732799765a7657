"""Readers: the same rows whatever the block size, the packing, and the place one starts from."""

import bz2
import gzip
import io
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from kernelstream import FeatureClassifier, streams
from kernelstream.evaluate import prequential
from kernelstream.streams import CSV, Arrays, Arrow, BadRowError, Blocks, Frame, LibSVM, _bytes, _columns, _parsers

rng = np.random.default_rng(0)
DENSE = np.round(rng.standard_normal((500, 7)) * (rng.random((500, 7)) < 0.5), 6)
LABELS = rng.integers(0, 3, 500).astype(float)


def libsvm_bytes(X=DENSE, y=LABELS):
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False)
    return out.getvalue()


def csv_bytes(X=DENSE, y=LABELS, header=True, sep=","):
    lines = [sep.join([*(f"x{j}" for j in range(X.shape[1])), "y"])] if header else []
    lines += [sep.join([*(repr(float(v)) for v in row), f"{label:g}"]) for row, label in zip(X, y, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def whole(stream):
    """All rows of a stream, dense, and the sizes of its blocks."""
    blocks = list(stream)
    width = max(X.shape[1] for X, _ in blocks)
    parts = []
    for X, _ in blocks:
        X = X.toarray() if sp.issparse(X) else X
        parts.append(np.pad(X, ((0, 0), (0, width - X.shape[1]))))
    y = None if blocks[0][1] is None else np.concatenate([y for _, y in blocks])
    return np.concatenate(parts), y, [X.shape[0] for X, _ in blocks]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same table in every format."""
    home = tmp_path_factory.mktemp("streams")
    (home / "a.libsvm").write_bytes(libsvm_bytes())
    (home / "a.csv").write_bytes(csv_bytes())
    (home / "a.tsv").write_bytes(csv_bytes(sep="\t"))
    for name, pack in ((".gz", gzip.compress), (".bz2", bz2.compress)):
        (home / f"a.libsvm{name}").write_bytes(pack(libsvm_bytes()))
        (home / f"a.csv{name}").write_bytes(pack(csv_bytes()))
    np.savez(home / "a.npz", X=DENSE, y=LABELS)
    np.savez_compressed(home / "packed.npz", X=DENSE, y=LABELS)
    csr = sp.csr_matrix(DENSE)
    parts = {"X_data": csr.data, "X_indices": csr.indices, "X_indptr": csr.indptr, "X_shape": np.array(csr.shape)}
    np.savez(home / "csr.npz", y=LABELS, **parts)
    np.savez_compressed(home / "packed_csr.npz", y=LABELS, **parts)
    np.save(home / "a.npy", np.column_stack([DENSE, LABELS]))
    return home


FILES = ["a.libsvm", "a.libsvm.gz", "a.libsvm.bz2", "a.csv", "a.tsv", "a.csv.gz", "a.csv.bz2", "a.npz", "packed.npz",
         "csr.npz", "packed_csr.npz", "a.npy"]  # fmt: skip


def opened(path, **options):
    if path.name.startswith(("a.csv", "a.tsv")):
        options["target"] = "y"
    if path.name == "a.npy":
        options["target"] = -1
    return streams.open(path, **options)


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_table(folder, name):
    for block in (1, 64, 1000):
        with opened(folder / name, block=block) as stream:
            X, y, sizes = whole(stream)
        np.testing.assert_array_equal(X, DENSE)
        np.testing.assert_array_equal(y, LABELS)
        assert sizes[:-1] == [block] * (len(sizes) - 1)
        assert stream.rows == 500


@pytest.mark.parametrize("name", FILES)
def test_going_on_from_a_position(folder, name):
    blocks = list(opened(folder / name, block=70))
    stream = opened(folder / name, block=70)
    positions = [stream.position]
    for _ in stream:
        positions.append(stream.position)
    assert stream.read() is None
    for start in (0, 3, 7, len(blocks)):
        fresh = opened(folder / name, block=70)
        for other in (fresh, stream):  # forwards from the start, and backwards from the end
            other.seek(positions[start])
            assert other.position == positions[start]
            rest = list(other)
            assert len(rest) == len(blocks) - start
            for (X, y), (X0, y0) in zip(rest, blocks[start:], strict=True):
                assert X.shape == X0.shape
                assert (X != X0).sum() == 0
                np.testing.assert_array_equal(y, y0)


def test_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packer = zstandard.ZstdCompressor()
    text = libsvm_bytes()
    (tmp_path / "a.svm.zst").write_bytes(packer.compress(text[:5000]) + packer.compress(text[5000:]))  # two frames
    X, y, _ = whole(streams.open(tmp_path / "a.svm.zst", block=99))
    np.testing.assert_array_equal(X, DENSE)
    np.testing.assert_array_equal(y, LABELS)
    (tmp_path / "a.svm.zst").write_bytes(packer.compress(text)[:-100] + bytes(100))
    with pytest.raises(ValueError, match="zstd file is damaged"):
        list(streams.open(tmp_path / "a.svm.zst"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_truncated_packed_files(tmp_path, pack):
    (tmp_path / "a.svm").write_bytes(pack(libsvm_bytes())[:-30])
    with pytest.raises(ValueError, match=r"a\.svm: .* (truncated or damaged|is damaged)"):
        list(streams.open(tmp_path / "a.svm"))


def test_small_reads_change_nothing(folder, monkeypatch):
    monkeypatch.setattr(_bytes, "CHUNK", 13)
    for kind, name in ((LibSVM, "a.libsvm"), (lambda text, **kw: CSV(text, "y", **kw), "a.csv.gz")):
        text = _bytes.Text(folder / name, chunk=13)
        X, y, _ = whole(kind(text, block=37))
        np.testing.assert_array_equal(X, DENSE)
        np.testing.assert_array_equal(y, LABELS)


def test_standard_input(folder):
    code = """if True:
        import sys
        from kernelstream import streams
        s = streams.open("-", target=sys.argv[1] or None, block=100)
        if len(sys.argv) > 2:
            s.seek(eval(sys.argv[2]))
        total = 0
        for X, y in s:
            total += len(y)
            if len(sys.argv) <= 2 and total == 200:
                print(s.position)
        print(type(s).__name__, total, X.shape[1])
    """
    for name, target, kind in (("a.libsvm", "", "LibSVM"), ("a.csv.gz", "y", "CSV")):
        data = (folder / name).read_bytes()
        run = [sys.executable, "-c", code, target]
        out = subprocess.run(run, input=data, capture_output=True, check=True).stdout.decode().splitlines()
        assert out[1] == f"{kind} 500 7"
        again = subprocess.run([*run, out[0]], input=data, capture_output=True, check=True).stdout.decode()
        assert again.splitlines() == [f"{kind} 300 7"]


# ---------------------------------------------------------------------- libsvm
def test_libsvm_like_scikit_learn(tmp_path):
    X = sp.random(300, 50, 0.1, random_state=0, format="csr")
    X.data = np.concatenate([X.data[:100] * 1e-300, X.data[100:200] * 1e250, X.data[200:]])
    y = rng.standard_normal(300)
    for zero_based in (False, True):
        dump_svmlight_file(
            X, y, str(tmp_path / "f"), zero_based=zero_based, comment="made by a test", query_id=np.arange(300)
        )
        X0, y0 = load_svmlight_file(str(tmp_path / "f"), zero_based=zero_based, n_features=50)
        for dtype in (np.float64, np.float32):
            stream = LibSVM(tmp_path / "f", 1000, zero_based=zero_based, n_features=50, dtype=dtype, on_error="skip")
            X1, y1 = stream.read()
            assert X1.dtype == dtype
            if dtype == np.float64:
                assert (X1 != X0).nnz == 0
                np.testing.assert_array_equal(y1, y0)
            else:  # 1e250 has no place in float32
                assert stream.skipped > 0


def test_libsvm_forms():
    text = b"# comment\n\n  \t\n+1 1:1\n-1.5e1\t2:.5 3:1. 4:1e-3  # end\r\n0\n3 qid:7 1:2\n1e2 7:+1E+2"
    X, y, _ = whole(LibSVM(io.BytesIO(text)))
    np.testing.assert_array_equal(y, [1, -15, 0, 3, 100])
    expected = np.zeros((5, 7))
    expected[0, 0], expected[1, 1:4], expected[3, 0], expected[4, 6] = 1, [0.5, 1, 1e-3], 2, 100
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x 1:1", "label is not a number"),
        ("1,2 1:1", "label is not a number"),
        ("1_0 1:1", "label is not a number"),
        ("nan 1:1", "label is not a number"),
        ("1e999 1:1", "label is not finite"),
        ("1 2", "has no value"),
        ("1 a:1", "index of a feature is not a whole"),
        ("1 1.5:1", "index of a feature is not a whole"),
        ("1 -1:1", "index of a feature is not a whole"),
        ("1 :1", "index of a feature is not a whole"),
        ("1 99999999999:1", "larger than 2147483646"),
        ("1 0:1", "indices start at 1"),
        ("1 2:1 1:1", "ascending"),
        ("1 2:1 2:1", "ascending"),
        ("1 1:", "value of a feature is not a number"),
        ("1 1:x", "value of a feature is not a number"),
        ("1 1:1:1", "value of a feature is not a number"),
        ("1 1:inf", "value of a feature is not a number"),
        ("1 1:-1e999", "value of a feature is not finite"),
        ("1 qid:x 1:1", "value of a feature is not a number"),
        ("1 1:1\0", "value of a feature is not a number"),
        ("\xff\xfe", "label is not a number"),
    ],
)
def test_libsvm_bad_rows(line, reason, caplog, tmp_path):
    text = b"1 1:1\n\n" + line.encode("latin-1") + b"\n2 2:2\n"
    path = tmp_path / "bad.svm"
    path.write_bytes(text)
    with pytest.raises(BadRowError, match=rf"bad\.svm, line 3: .*{reason}") as caught:
        list(LibSVM(path))
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    with caplog.at_level(logging.WARNING):
        for policy in ("skip", "log"):
            stream = LibSVM(path, on_error=policy)
            X, y, _ = whole(stream)
            assert y.tolist() == [1, 2]
            assert X.tolist() == [[1, 0], [0, 2]]
            assert stream.skipped == 1
    assert len(caplog.records) == 1
    assert "line 3" in caplog.text
    python = _parsers.parse_libsvm_python(text, 0, 100, False, 0, False)
    assert reason in _parsers.REASONS[python[-1][0][3]]


def test_libsvm_width():
    text = b"1 1:1\n" * 10 + b"1 5:1\n" + b"1 2:1\n" * 10
    stream = LibSVM(io.BytesIO(text), block=5)
    assert [X.shape[1] for X, _ in stream] == [1, 1, 5, 5, 5]
    assert {X.shape[1] for X, _ in LibSVM(io.BytesIO(text), block=5, n_features=9)} == {9}
    with pytest.raises(BadRowError, match=r"line 11: .*larger than n_features"):
        list(LibSVM(io.BytesIO(text), n_features=4))
    with pytest.raises(BadRowError, match="not finite"):
        list(LibSVM(io.BytesIO(b"1 1:1e300\n"), dtype="float32"))


def test_a_line_that_never_ends(monkeypatch):
    monkeypatch.setattr(_bytes, "LONGEST", 1000)
    with pytest.raises(ValueError, match="not a text file"):
        list(LibSVM(_bytes.Text(io.BytesIO(b"1" * 5000), chunk=100)))


# ---------------------------------------------------------------------- csv
def test_csv_quotes_blank_lines_and_ends():
    text = '\ufeff"a, b" ;c;"say ""y"""\r\n\r\n1; 2 ;3\r\n"4";"5";"6"\r\n 7;8;9'.encode()
    for python in (False, True):
        stream = CSV(io.BytesIO(text), target="c", block=2)
        stream.quoted = stream.quoted or python
        assert stream.delimiter == ";"
        assert stream.feature_names == ["a, b", 'say "y"']
        X, y, sizes = whole(stream)
        assert X.tolist() == [[1, 3], [4, 6], [7, 9]]
        assert y.tolist() == [2, 5, 8]
        assert sizes == [2, 1]


def test_csv_without_header():
    stream = CSV(io.BytesIO(b"1,2,3\n4,5,6\n"), target=-1)
    X, y = stream.read()
    assert X.tolist() == [[1, 2], [4, 5]]
    assert y.tolist() == [3, 6]
    assert CSV(io.BytesIO(b"a,b\nc,d\n"), hashed=[0, 1], header=False).read()[0].shape == (2, 2048)
    X, y = CSV(io.BytesIO(b"1,2,3\n"), header=False).read()
    assert y is None
    assert CSV(io.BytesIO(b"1,2\n3,4\n"), header=True).read()[0].tolist() == [[3, 4]]


def test_csv_labels():
    text = b"a,y\n1,?\n2,cat\n3,dog\n4,7\n"
    stream = CSV(io.BytesIO(text), "y", on_error="skip")
    _, y = stream.read()
    assert y.tolist() == ["cat", "dog", "7"]
    assert stream.skipped == 1
    assert stream.position["labels"] is True
    _, y = CSV(io.BytesIO(b"a,y\n1,0\n2,1\n"), "y", labels=True).read()
    assert y.tolist() == ["0", "1"]


@pytest.mark.parametrize("quoted", [False, True])
def test_csv_categories(quoted):
    text = b"city,size,colour,price\nRome,1,red,5\nOslo,0,blue,6\nRome,2,blue,7\n"

    def read(**options):
        stream = CSV(io.BytesIO(text), "price", **options)
        stream.quoted = stream.quoted or quoted
        return stream, stream.read()[0]

    stream, X = read(hashed={"city": 50}, one_hot={"colour": ["red", "green", "blue"]})
    assert sp.issparse(X)
    expected = np.zeros((3, 54))
    for row, (city, size, colour) in enumerate([("Rome", 1, 0), ("Oslo", 0, 2), ("Rome", 2, 2)]):
        expected[row, _columns.bucket("city", city, 50)] = 1
        expected[row, 50] = size
        expected[row, 51 + colour] = 1
    np.testing.assert_array_equal(X.toarray(), expected)
    X.check_format(full_check=True)
    assert stream.feature_names[50:] == ["size", "colour=red", "colour=green", "colour=blue"]
    stream, X = read(drop=["city"], one_hot={"colour": ["red", "blue"]})
    assert X.tolist() == [[1, 1, 0], [0, 0, 1], [2, 0, 1]]
    stream, X = read(features=["colour", "size"], one_hot={"colour": ["red", "blue"]})
    assert X.tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 2]]
    with pytest.raises(
        BadRowError, match=r"line 2: column 'city': 'Rome' is not a number \(if it holds categories, declare it"
    ):
        read()
    with pytest.raises(BadRowError, match="line 3: column 'colour': 'blue' is none of the values"):
        read(drop=["city"], one_hot={"colour": ["red"]})


def test_hashing_is_the_same_everywhere():
    # printf city=Rome | b2sum -l 64, read as a little-endian number
    assert _columns.bucket("city", "Rome", 2**64) == 0xECD0E7DCAAF7F2D7
    assert _columns.bucket("city", "Rome", 1000) == 0xECD0E7DCAAF7F2D7 % 1000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,2", "2 fields, but there are 3 columns"),
        ("1,2,3,4", "4 fields"),
        ("1,x,3", "column 'b': 'x' is not a number"),
        ("1,,3", "column 'b' is missing"),
        ("1,NA,3", "column 'b' is missing"),
        ("1,2,", r"column 'y' \(the target\) is missing"),
        ("1,1e999,3", "column 'b': '1e999' is not finite"),
        ("1,inf,3", "'inf' is not a number"),
        ("1,1_0,3", "'1_0' is not a number"),
        ("1,0x10,3", "'0x10' is not a number"),
        ("1,\u0662,3", "is not a number"),
        ("a" * 300, "1 fields"),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_csv_bad_rows(line, reason, quoted):
    text = f"a,b,y\n1,2,3\n\n{line}\n4,5,6\n".encode()

    def stream(**options):
        made = CSV(io.BytesIO(text), "y", **options)
        made.quoted = made.quoted or quoted
        return made

    with pytest.raises(BadRowError, match=f"line 4: .*{reason}"):
        list(stream())
    skipping = stream(on_error="skip", block=1)
    X, _, _ = whole(skipping)
    assert X.tolist() == [[1, 2], [4, 5]]
    assert skipping.skipped == 1


def test_csv_missing_values_can_be_filled():
    text = b"a,b,y\n1,,3\n?,NaN,6\nnull,N/A,1\n"
    for quoted in (False, True):
        stream = CSV(io.BytesIO(text), "y", missing=-1.0)
        stream.quoted = stream.quoted or quoted
        assert stream.read()[0].tolist() == [[1, -1], [-1, -1], [-1, -1]]
    with pytest.raises(BadRowError, match="not finite"):
        CSV(io.BytesIO(b"a\n1e300\n"), dtype="float32").read()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "prise"}, "did you mean 'price'"),
        ({"target": 9}, "no column 9"),
        ({"target": "price", "drop": ["x"]}, "no column 'x'"),
        ({"target": "price", "features": ["price"]}, "cannot be a feature and the target"),
        ({"hashed": ["price"], "target": "price"}, "not a feature"),
        ({"hashed": {"size": 0}}, "buckets"),
        ({"hashed": ["size"], "one_hot": {"size": ["1"]}}, "hashed and as one_hot"),
        ({"drop": ["size", "price"]}, "no column left"),
        ({"delimiter": "ab"}, "one ASCII"),
        ({"missing": float("nan")}, "finite"),
        ({"block": 0}, "block"),
        ({"on_error": "ignore"}, "on_error"),
        ({"dtype": "int32"}, "dtype"),
    ],
)
def test_csv_bad_options(options, reason):
    with pytest.raises(ValueError, match=reason):
        CSV(io.BytesIO(b"size,price\n1,2\n"), **options)


def test_csv_bad_headers():
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        CSV(io.BytesIO(b"a,a\n1,2\n"))
    with pytest.raises(ValueError, match="is empty"):
        CSV(io.BytesIO(b""))
    assert CSV(io.BytesIO(b"a,b\n")).read() is None


# ---------------------------------------------------------------------- tables
@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(
        {
            "x": np.r_[rng.standard_normal(299), np.nan],
            "n": np.arange(300),
            "flag": np.arange(300) % 2 == 0,
            "city": [["Rome", "Oslo", None][i % 3] for i in range(300)],
            "label": [["no", "yes"][i % 2] for i in range(300)],
        }
    )


def expected_table(table):
    good = table[table.city.notna() & table.x.notna()]
    X = np.zeros((len(good), 5))
    X[:, 0], X[:, 1], X[:, 2] = good.x, good.n, good.flag
    X[:, 3], X[:, 4] = good.city == "Rome", good.city == "Oslo"
    return X, good.label.to_numpy(str)


OPTIONS = {"target": "label", "one_hot": {"city": ["Rome", "Oslo"]}, "on_error": "skip", "block": 37}


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
    with pytest.raises(BadRowError, match="data frame, row 3: column 'city' is missing"):
        Frame(table, "label", hashed=["city"]).read()
    with pytest.raises(ValueError, match="column 'city' holds no numbers: drop it, or declare it"):
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


# ---------------------------------------------------------------------- arrays and iterators
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
    X, y, _ = whole(streams.rows(zip(DENSE.tolist(), LABELS, strict=True), 64))
    np.testing.assert_array_equal(X, DENSE)
    with pytest.raises(ValueError, match="had not"):
        list(streams.rows([({"a": 1}, 0), ({"b": 1}, 0)]))


# ---------------------------------------------------------------------- open, and use
def test_open_tells_formats_by_content(folder, tmp_path):
    for name in ("a.libsvm", "a.libsvm.gz", "a.csv", "a.npz", "a.npy"):
        (tmp_path / "data").write_bytes((folder / name).read_bytes())
        kind = {"li": LibSVM, "cs": CSV, "np": Arrays}[name[2:4]]
        assert type(streams.open(tmp_path / "data")) is kind
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        streams.open(tmp_path / "data")
    (tmp_path / "data").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    with pytest.raises(ValueError, match="no format that can be read"):
        streams.open(tmp_path / "data")
    with pytest.raises(ValueError, match="'target' is no option of LibSVM"):
        streams.open(folder / "a.libsvm", target="y")
    with pytest.raises(ValueError, match="format must be one of"):
        streams.open(folder / "a.csv", format="excel")
    with pytest.raises(FileNotFoundError):
        streams.open(folder / "nothing.csv")
    with pytest.raises(ValueError, match="read from files, not from pipes"):
        streams.open(io.BytesIO((folder / "a.npz").read_bytes()))
    assert isinstance(streams.open((DENSE, LABELS)), Arrays)
    assert isinstance(streams.open(iter([(DENSE, LABELS)])), Blocks)


def test_a_stream_feeds_prequential(folder):
    result = prequential(FeatureClassifier(random_state=0), streams.open(folder / "a.libsvm"), classes=[0, 1, 2])
    assert result.n_rows == 500


def test_memory_is_bounded(tmp_path):
    """A file of 60 MB passes through less than 20 MB more than an empty one."""
    line = b",".join([b"%d.25"] * 30) + b"\n"
    path = tmp_path / "big.csv"
    with open(path, "wb") as file:
        for i in range(250):
            file.write((line % tuple(range(i, i + 30))) * 1200)
    assert os.path.getsize(path) > 45e6
    code = f"""if True:
        import resource
        from kernelstream import streams
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        s = streams.open({str(path)!r}, target=0)
        s.read()
        before = peak()
        n = sum(len(y) for X, y in s)
        print(n, peak() - before)
    """
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(out[0]) == 250 * 1200 - 1024
    assert int(out[1]) < 20_000  # kilobytes
