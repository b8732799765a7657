"""ARFF and MATLAB files, which are read as all other tables are; scipy's own readers and hand-written rows as truth."""

import contextlib
import gzip
import io
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from command_line import out, run

from kernelstream import streams
from kernelstream_papers import matlab

WORDS = b"""% made for this test
@RELATION 'a b'

@attribute 'the size' numeric
@attribute colour {red, 'dark blue', "it's"}
@ATTRIBUTE 3 REAL
@attribute class {yes,no}
@Data
% between the rows
1.5, 'dark blue', 3, yes
2,red,?,no

3e1,'it\\'s',-1,yes
{0 7, 3 no}
"""


def test_arff_gives_names_words_gaps_and_lines():
    stream = streams.open(io.BytesIO(WORDS.split(b"\n", 1)[1]), target="class", mixed=True)  # known by @relation
    cells, y = stream.read()
    assert cells.columns == {
        "the size": ["1.5", "2", "3e1", "7"],
        "colour": ["dark blue", "red", "it's", "red"],  # the first of its values where a sparse row has none
        "3": ["3", "?", "-1", "0"],
    }
    assert y.tolist() == ["yes", "no", "yes", "no"] and stream.lines == [9, 10, 12, 13]


def test_arff_of_numbers_is_what_scipy_reads(tmp_path):
    X = np.random.default_rng(0).normal(size=(5000, 4)).round(6)
    y = np.where(X[:, 0] > 0, "up", "down")
    head = "% comment\n@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in "1234")
    rows = "".join(",".join([*map(repr, row), label]) + "\n" for row, label in zip(X.tolist(), y, strict=True))
    path = tmp_path / "a.arff"
    path.write_text(head + "@attribute class {up,down}\n@data\n" + rows)
    truth, _ = scipy.io.arff.loadarff(path)
    packed = tmp_path / "a.arff.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for source in (path, packed):
        parts = list(streams.open(source, target="class", block=700))
        np.testing.assert_array_equal(
            np.vstack([X for X, _ in parts]), np.column_stack([truth[name] for name in "1234"])
        )
        assert np.concatenate([y for _, y in parts]).tolist() == [label.decode() for label in truth["class"]]
        first, again = streams.open(source, target="class", block=700), streams.open(source, target="class", block=700)
        first.read()
        again.seek(json.loads(json.dumps(first.position)))
        np.testing.assert_array_equal(again.read()[0], X[700:1400])


def test_bad_arff_is_named(tmp_path):
    for text, message in (
        ("@relation a\nx,y\n1,2\n", "line 2: 'x,y' is not a line"),
        ("@relation a\n@data\n1\n", "needs"),
    ):
        (tmp_path / "bad.arff").write_text(text)
        with pytest.raises(ValueError, match=message):
            streams.open(tmp_path / "bad.arff", target=0)
    text = "@relation a\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n{7 1}\n3,x\n4,5\n"
    (tmp_path / "bad.arff").write_text(text)
    with pytest.raises(streams.BadRowError, match="line 6: 1 fields, but there are 2 columns"):
        streams.open(tmp_path / "bad.arff", target="b", labels=False).read()
    stream = streams.open(tmp_path / "bad.arff", target="b", labels=False, on_error="skip")
    assert stream.read()[1].tolist() == [2.0, 5.0] and stream.skipped == 2


def test_arff_learns_as_the_same_rows_in_a_csv(tmp_path, capsys):
    rng = np.random.default_rng(0)
    colour, x = rng.choice(["red", "blue"], 200), rng.normal(size=200)
    label = np.where((colour == "red") == (x > 0), "yes", "no")
    rows = "".join(f"{a},{b!r},{c}\n" for a, b, c in zip(colour, x.tolist(), label, strict=True))
    head = "@relation r\n@attribute colour {red,blue}\n@attribute x numeric\n@attribute label {yes,no}\n@data\n"
    (tmp_path / "a.arff").write_text(head + rows)
    (tmp_path / "a.csv").write_text("colour,x,label\n" + rows)
    found = [
        json.loads(out(capsys, "evaluate", tmp_path / name, "--target", "label", "-a", "fogd", "--json", "-q"))
        for name in ("a.arff", "a.csv")
    ]
    assert found[0]["rows"] == 200 and found[0]["mistake_rate"] == found[1]["mistake_rate"] < 0.4


def test_matlab_files_of_the_authors(tmp_path):
    """``data`` with the label first and ``ID_ALL``, permutations from 1; and X with y, dense or sparse."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], 30)
    orders = np.array([rng.permutation(30) for _ in range(4)])
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"data": np.column_stack([y, X]), "ID_ALL": orders + 1.0})
    stream = streams.open(path, block=20)
    np.testing.assert_array_equal(stream.orders, orders)
    parts = list(stream)
    np.testing.assert_array_equal(np.vstack([X for X, _ in parts]), X)
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), y)
    found, target = streams.open(path, target=2, block=30).read()  # another column of the matrix
    np.testing.assert_array_equal(target, X[:, 1])
    np.testing.assert_array_equal(found, np.column_stack([y, X[:, [0, 2]]]))
    scipy.io.savemat(path, {"X": sp.csc_matrix(X), "y": y[:, None]})
    rows, target = streams.open(path, block=30).read()
    np.testing.assert_array_equal(rows.toarray(), X)
    np.testing.assert_array_equal(target, y)
    scipy.io.savemat(path, {"a": X, "b": X})
    with pytest.raises(ValueError, match="holds a, b; it must hold X and y, or data"):
        streams.open(path)
    path.write_bytes(b"MATLAB 5.0 MAT-file" + b" " * 50)
    with pytest.raises(ValueError, match="is damaged"):
        streams.open(path)


def test_train_on_matlab(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    scipy.io.savemat(tmp_path / "a.mat", {"data": np.column_stack([np.sign(X[:, 0]), X])})
    assert run("train", tmp_path / "a.mat", "-a", "fogd", "-m", tmp_path / "m.ks", "-q") == 0
    capsys.readouterr()
    assert json.loads(out(capsys, "info", tmp_path / "m.ks", "--json"))["classes"] == [-1, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_variables_are_those_of_scipy(tmp_path, packed):
    rng = np.random.default_rng(4)
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    saved = {f"a_{kind}": (100 * rng.random((5, 3))).astype(kind) for kind in kinds}
    saved |= {"three": rng.random((2, 3, 4)), "none": np.zeros((0, 4)), "truth": rng.random((3, 3)) > 0.5, "n": 7}
    saved |= {"sparse": sp.random(9, 7, 0.3, "csc", random_state=0), "empty": sp.csc_matrix((4, 5))}
    others = {"word": "abc", "parts": {"a": 1}, "cell": np.array([1, "b"], object), "complex": np.ones((2, 2)) * 1j}
    scipy.io.savemat(tmp_path / "a.mat", saved | others, do_compression=packed)
    found, truth = matlab.variables((tmp_path / "a.mat").read_bytes()), scipy.io.loadmat(tmp_path / "a.mat")
    assert found.keys() == saved.keys() | others.keys() and all(found[name] is None for name in others)
    for name in saved:
        if sp.issparse(truth[name]):
            assert (found[name] != truth[name]).nnz == 0
        else:
            np.testing.assert_array_equal(found[name], truth[name], strict=name != "truth")


def test_wrong_bytes_are_errors_and_nothing_worse(tmp_path):
    """Of most of these, scipy's reader takes the interpreter down."""
    X = np.random.default_rng(5).normal(size=(20, 3))
    scipy.io.savemat(tmp_path / "a.mat", {"X": X, "S": sp.csc_matrix(X), "y": np.sign(X[:, 0])})
    whole = (tmp_path / "a.mat").read_bytes()
    for at in (*range(124, 192), *range(whole.index(b"S\0") - 40, whole.index(b"S\0") + 400)):
        for byte in (0, 15, 255):
            (tmp_path / "b.mat").write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            with contextlib.suppress(ValueError):
                for _ in streams.open(tmp_path / "b.mat"):
                    pass
    for size in range(len(whole) - 3, 0, -97):
        (tmp_path / "b.mat").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"b\.mat"):
            list(streams.open(tmp_path / "b.mat"))
