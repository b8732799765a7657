"""Named data sets: the shipped ones, files in a folder, scaling, and the errors."""

import json
import os

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream import cli, datasets

needs_files = pytest.mark.skipif(not os.environ.get("KERNELSTREAM_DATA"), reason="KERNELSTREAM_DATA is not set")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with one dense set, one sparse set and one that pretends to be a benchmark."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(50, 4)).astype(np.float32)
    X[:, 2] = 7.0
    y = np.where(rng.random(50) < 0.5, -1, 1).astype(np.int8)
    perm = np.array([rng.permutation(50) for _ in range(3)])
    np.savez(tmp_path / "mine.npz", X=X, y=y, is_test=np.arange(50) >= 40, perm=perm, weight=np.arange(50))
    S = sp.random(30, 6, density=0.4, format="csr", dtype=np.float32, random_state=0)
    S.data -= 0.5
    np.savez(
        tmp_path / "thin.npz",
        X_data=S.data,
        X_indices=S.indices,
        X_indptr=S.indptr,
        X_shape=S.shape,
        y=np.linspace(0, 1, 30, dtype=np.float32),
    )
    np.savez(tmp_path / "german.npz", X=X, y=y)
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "shape", "task"),
    [
        ("breast_cancer", (569, 30), "binary"),
        ("digits", (1797, 64), "multiclass"),
        ("wine", (178, 13), "multiclass"),
        ("iris", (150, 4), "multiclass"),
        ("diabetes", (442, 10), "regression"),
    ],
)
def test_shipped_sets_need_no_folder(name, shape, task, monkeypatch):
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    data = datasets.load(name)
    assert (data.X.shape, data.task, data.name, data.is_test) == (shape, task, name, None)
    assert data.X.dtype == np.float32
    assert len(data.y) == shape[0]
    assert datasets.info(name)["rows"] == shape[0]


def test_files(home):
    np.savez(home / "molecules.npz", charges=np.ones((3, 2)), y=np.ones(3))  # has no rows, and is not listed
    assert {"mine", "thin"} <= set(datasets.names()) and "molecules" not in datasets.names()
    assert set(datasets.names()) >= {"mine", "thin", "digits"}
    data = datasets.load("mine")
    assert data.task == "binary"
    assert data.is_test.sum() == 10
    assert data.perm.shape == (3, 50)
    X, y = datasets.load("mine", return_X_y=True)
    assert X.shape == (50, 4)
    assert y.dtype == np.int8
    assert datasets.info("mine") == {
        "rows": 50,
        "columns": 4,
        "task": "binary",
        "sparse": False,
        "source": str(home / "mine.npz"),
    }
    assert datasets.info("thin")["sparse"]


def test_split_cuts_arrays_of_rows_only(home):
    train, test = datasets.load("mine", split="train"), datasets.load("mine", split="test")
    assert (len(train.X), len(test.X)) == (40, 10)
    assert test.weight.tolist() == list(range(40, 50))
    assert test.perm.shape == (3, 50)
    assert not train.is_test.any()
    with pytest.raises(ValueError, match="'thin' has no train/test split"):
        datasets.load("thin", split="train")


def test_dense_scaling(home):
    raw = datasets.load("mine").X.astype(float)
    varying = [0, 1, 3]
    X = datasets.load("mine", scale="minmax").X
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.min(axis=0), 0.0)
    np.testing.assert_array_equal(X.max(axis=0), [1.0, 1.0, 0.0, 1.0])
    X = datasets.load("mine", scale="minmax-sym").X
    np.testing.assert_allclose([X[:, varying].min(axis=0), X[:, varying].max(axis=0)], [[-1] * 3, [1] * 3], rtol=1e-6)
    assert not X[:, 2].any()
    X = datasets.load("mine", scale="standard").X
    expected = (raw - raw.mean(axis=0))[:, varying] / raw.std(axis=0)[varying]
    np.testing.assert_allclose(X[:, varying], expected, rtol=1e-5, atol=1e-6)
    assert not X[:, 2].any()
    # over all rows, before the split
    np.testing.assert_array_equal(datasets.load("mine", scale="standard", split="test").X, X[40:])


def test_sparse_scaling_keeps_zeros(home):
    raw = datasets.load("thin")
    assert sp.issparse(raw.X)
    assert raw.task == "regression"
    dense = raw.X.toarray().astype(float)
    X = datasets.load("thin", scale="minmax").X
    np.testing.assert_allclose(X.toarray(), dense / abs(dense).max(axis=0), rtol=1e-6)
    X = datasets.load("thin", scale="standard").X
    np.testing.assert_allclose(X.toarray(), dense / dense.std(axis=0), rtol=1e-5)
    assert X.nnz == raw.X.nnz
    assert X.dtype == np.float32


def test_unknown_names_say_what_is_there(home, monkeypatch):
    with pytest.raises(ValueError, match=r"unknown data set 'mino': did you mean 'mine'\? available are .*thin"):
        datasets.load("mino")
    with pytest.raises(ValueError, match=r"missing data set 'covtype'.*KERNELSTREAM_DATA"):
        datasets.load("covtype")
    with pytest.raises(ValueError, match=r"unknown data set '../mine'"):
        datasets.load("../mine")
    monkeypatch.delenv("KERNELSTREAM_DATA")
    with pytest.raises(ValueError, match=r"missing data set 'a9a'.*set KERNELSTREAM_DATA to a folder"):
        datasets.load("a9a")
    monkeypatch.setenv("KERNELSTREAM_DATA", str(home / "nowhere"))
    with pytest.raises(ValueError, match="not a folder"):
        datasets.names()


def test_checksums(home):
    with pytest.raises(ValueError, match=r"german.npz is damaged or another file: md5 \w{32}, expected 0850"):
        datasets.load("german")
    assert len(datasets.load("german", check=False).X) == 50


def test_bad_files_are_named(home):
    (home / "junk.npz").write_bytes(b"not an archive")
    np.savez(home / "half.npz", X=np.ones((2, 2)))
    np.savez(home / "odd.npz", X=np.ones((2, 2)), y=np.ones(3))
    np.savez(home / "objects.npz", X=np.array([[None]]), y=np.ones(1))
    for name, message in {
        "junk": "junk.npz cannot be read",
        "half": "half.npz has no array y",
        "odd": "odd.npz has 2 rows in X but 3 in y",
        "objects": "objects.npz cannot be read: Object arrays",  # would need pickle
    }.items():
        with pytest.raises(ValueError, match=message):
            datasets.load(name)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"scale": "unit"}, "scale must"), ({"split": "dev"}, "split must")]
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.load("iris", **arguments)


@needs_files
@pytest.mark.parametrize(
    ("name", "shape", "task", "tests"),
    [
        ("ijcnn1", (141691, 22), "binary", 91701),
        ("a9a", (48842, 123), "binary", 16281),
        ("german", (1000, 24), "binary", None),
        ("satimage", (6435, 36), "multiclass", 2000),
        ("housing", (506, 13), "regression", None),
    ],
)
def test_benchmark_files(name, shape, task, tests):
    if name not in datasets.names():
        pytest.skip(f"{name}.npz is not in the folder")
    data = datasets.load(name)
    assert (data.X.shape, data.task, data.X.dtype) == (shape, task, np.float32)
    assert (None if data.is_test is None else data.is_test.sum()) == tests
    found = datasets.info(name)
    assert (found["rows"], found["columns"], found["task"]) == (*shape, task)


def test_what_comes_with_the_library(monkeypatch):
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    shapes = {
        "electricity": (45_312, 8),
        "german": (1000, 24),
        "housing": (506, 13),
        "mg": (1385, 6),
        "svmguide3": (1243, 21),
    }
    assert {name: datasets.load(name).X.shape for name in shapes} == shapes  # by their checksums
    y = datasets.load("electricity").y
    assert np.mean(y[1:] == y[:-1]) == pytest.approx(0.8533, abs=5e-5)  # its fingerprint: labels that stay the same


def test_sources_of_the_benchmark_files(capsys):
    assert cli.main(["datasets", "fetch", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["german"]["here"] and said["mnist"]["home"].startswith("http")
