"""Model files: what goes in comes out, and nothing else gets in."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from unittest.mock import Mock

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from archives import entries_of, rewritten
from reloaded import reloaded
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs, make_moons

import kernelstream
from kernelstream import (
    DoublyStochasticClassifier,
    FeatureClassifier,
    FeatureRegressor,
    KernelClassifier,
    NystroemClassifier,
    losses,
    model_io,
    updates,
)
from kernelstream.copies import seeded
from kernelstream.estimators import DoublySchedule
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.kernels import Gaussian, Laplacian, Polynomial
from kernelstream.model_io import ModelFileError
from kernelstream.model_io.values import component_class, component_name, decode, encode

FIXTURES = Path(__file__).parent / "fixtures"

X, y = make_moons(240, noise=0.2, random_state=0)
target = np.sin(2 * X[:, 0]) + X[:, 1]


def dumped(est, notes=None):
    file = io.BytesIO()
    kernelstream.save(est, file, notes)
    return file


def changed(est, **entries):
    """The file of an estimator, with other entries in its header."""
    return rewritten(model_io.to_bytes(est), lambda header, arrays: header.update(entries))


def components():
    for module in ("kernels", "losses", "updates", "features", "budgets"):
        home = getattr(kernelstream, module)
        for name in getattr(home, "__all__", dir(home)):
            cls = getattr(home, name)
            if isinstance(cls, type) and issubclass(cls, BaseEstimator) and cls.__module__.startswith("kernelstream."):
                yield pytest.param(cls, id=f"{module}.{name}")


@pytest.mark.parametrize("cls", list(components()))
def test_every_component_has_a_name(cls):
    assert component_class(component_name(cls)) is cls


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(2**70), 0.1, float("inf"), float("-inf"), "median", "π \N{SNOWMAN}",
        [1, [2.5, "a"]], (1, (2,)), {}, {1: "a", "b": [None], (1, 2): 0.5},
        np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("ü"), np.array(7.5), np.array(["a", "bcd"]),
        np.arange(6).reshape(2, 3), np.zeros((0, 4), np.float32), np.asfortranarray(np.ones((3, 2))),
        Gaussian(0.5), 2.0 * Gaussian("median") + Laplacian(0.1) * Polynomial(3), [Gaussian(1.0), "laplacian"],
        updates.Averaged(updates.OGD(0.5, "sqrt")), losses.Huber(2.0),
        RandomFourier(Gaussian(0.1), 7), Nystroem(landmarks=np.ones((3, 2))),
    ],
    ids=repr,
)  # fmt: skip
def test_values(value):
    arrays = []
    text = json.dumps(encode(value, arrays, "value"), allow_nan=False)
    back = decode(json.loads(text), arrays)
    assert type(back) is type(value)
    if isinstance(value, BaseEstimator) or "Gaussian" in str(value):
        assert repr(back) == repr(value)
    else:
        np.testing.assert_equal(back, value)
        assert np.asarray(back).dtype == np.asarray(value).dtype if not isinstance(value, (dict, list, tuple)) else True


def test_a_generator_is_not_stored():
    """The model goes on from its own seed, bit for bit."""
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2
    for random_state in (np.random.default_rng(3), np.random.RandomState(3)):
        model = FeatureClassifier(random_state=random_state).partial_fit(X, y)
        back = reloaded(model)
        assert back.random_state is None
        np.testing.assert_array_equal(back.learn(X, y), model.learn(X, y))
    made = [seeded(FeatureClassifier(random_state=np.random.default_rng(3))).random_state for _ in range(2)]
    assert made[0] == made[1] and isinstance(made[0], int)  # of a service, whose replay must draw the same


def test_sparse_values():
    arrays = []
    csr = sp.random(5, 4, 0.5, format="csr", random_state=0)
    assert (decode(encode(csr, arrays, "X"), arrays) != csr).nnz == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_zeros_take_a_bit(dtype):
    """The bytes that stay are those of entries that are not 0; a negative zero is one of them, and so is NaN."""
    value = np.zeros((70, 3, 101), dtype)
    value[::7, 1] = np.resize([-0.0, np.nan, 1.5, -1] if dtype[0] == "f" else [5, -1, 2**31 - 1], value[::7, 1].shape)
    arrays = []
    text = json.loads(json.dumps(encode(value, arrays, "value")))
    kept = np.frombuffer(value.tobytes(), f"u{value.itemsize}") != 0
    assert sum(array.nbytes for array in arrays) == -(-value.size // 8) + kept.sum() * value.itemsize
    assert decode(text, arrays).tobytes() == value.tobytes()


@pytest.mark.parametrize(
    "shape, bits, entries",
    [
        ([8000], np.full(999, 0, np.uint8), np.zeros(0)),
        ([8000], np.full(1000, 1, np.uint8), np.zeros(1)),
        ([8000], np.full(1000, 1, np.uint8), np.zeros((1000, 1))),
        ([8000], np.full(1000, 0, np.int8), np.zeros(0)),
        ([8000], np.full(1000, 0, np.uint8), np.zeros(0, "U3")),
        ([-8000, -1], np.full(1000, 0, np.uint8), np.zeros(0)),
        ([0, 10**30], np.zeros(0, np.uint8), np.zeros(0)),
        ([10**15], np.zeros(10, np.uint8), np.zeros(0)),
        (8000, np.zeros(1000, np.uint8), np.zeros(0)),
        ([8000.0], np.zeros(1000, np.uint8), np.zeros(0)),
        (["8"], np.zeros(1, np.uint8), np.zeros(0)),
    ],
    ids=repr,
)
def test_bits_that_do_not_fit(shape, bits, entries):
    with pytest.raises(ValueError):
        decode({"$sparse": [shape, {"$array": 0}, {"$array": 1}]}, [bits, entries])


def test_a_model_of_many_labels_is_a_small_file(rng):
    model = KernelClassifier(size="small", random_state=0).partial_fit(rng.random((200, 3)), np.arange(200) % 150)
    arrays = [value for value in model.state_.values() if isinstance(value, np.ndarray)]
    held = sum(array.nbytes for array in arrays)
    needed = sum(np.count_nonzero(array) * array.itemsize for array in arrays)
    assert len(dumped(model).getvalue()) < 1.2 * (needed + held / 32) < 0.4 * held


def test_values_that_cannot_be_kept():
    class Mine(BaseEstimator):
        pass

    for value, reason in (
        (len, "builtin_function"),
        (np.array([None]), "object"),
        (Mine(), "neither a public component"),
    ):
        with pytest.raises(ValueError, match=reason):
            encode({"a": [value]}, [], "notes")
    with pytest.raises(ValueError, match="parameter random_state"):
        kernelstream.save(FeatureClassifier(random_state=object()), io.BytesIO())


def test_notes_names_and_same_bytes(tmp_path):
    pd = pytest.importorskip("pandas")
    est = FeatureRegressor(random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), target)
    file = dumped(est, {"rows": 240, "labels": {0: "no", 1: "yes"}, "mean": X.mean(axis=0)})
    loaded, notes = model_io.read(file)
    assert list(loaded.feature_names_in_) == ["a", "b"]
    assert notes["labels"] == {0: "no", 1: "yes"}
    assert dumped(loaded, notes).getvalue() == file.getvalue()
    kernelstream.save(loaded, tmp_path / "a.ks", notes)
    assert (tmp_path / "a.ks").read_bytes() == file.getvalue()
    assert [p.name for p in tmp_path.iterdir()] == ["a.ks"]
    about = model_io.describe(tmp_path / "a.ks")
    assert about["class"] == "estimators.FeatureRegressor"
    assert about["entries"]["w"] == {"shape": [1, 512], "dtype": "float64"}
    assert about["feature_names"] == ["a", "b"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.ks"
    kernelstream.save(FeatureClassifier(random_state=1).fit(X, y), path)
    before = path.read_bytes()
    monkeypatch.setattr(model_io.os, "fsync", Mock(side_effect=OSError("no space left on device")))
    with pytest.raises(OSError, match="no space"):
        kernelstream.save(FeatureClassifier(random_state=2).fit(X, y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------------- files that must be refused
def test_foreign_files(tmp_path):
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "hello")
    arrays = io.BytesIO()
    np.savez(arrays, X=X)
    foreign = [
        b"1,2,3\n",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        pickle.dumps(FeatureClassifier()),
        other.getvalue(),
        arrays.getvalue(),
        b"PK\x03\x04",
        b"P",
        bytes(1000),
    ]
    for content in foreign:
        (tmp_path / "x.ks").write_bytes(content)
        with pytest.raises(
            ModelFileError, match=r"x\.ks: (this is not a kernelstream model file|the file is truncated)"
        ):
            kernelstream.load(tmp_path / "x.ks")
    (tmp_path / "x.ks").write_bytes(b"")
    with pytest.raises(ModelFileError, match="empty"):
        kernelstream.load(tmp_path / "x.ks")
    with pytest.raises(FileNotFoundError):
        kernelstream.load(tmp_path / "nothing.ks")
    with pytest.raises(OSError):
        kernelstream.load(tmp_path)


def test_any_damage_is_noticed():
    content = dumped(FeatureClassifier(RandomFourier(n_components=5), random_state=0).fit(X, y)).getvalue()
    rng = np.random.default_rng(0)
    for cut in [*range(0, 60), *rng.integers(60, len(content), 100), len(content) - 1]:
        with pytest.raises(ModelFileError):
            kernelstream.load(io.BytesIO(content[:cut]))
    for place in rng.permutation(len(content))[:400]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        with pytest.raises(ModelFileError):
            kernelstream.load(io.BytesIO(bytes(damaged)))


def test_newer_format():
    with pytest.raises(ModelFileError, match=r"in format 99; this version .* reads formats up to"):
        kernelstream.load(changed(FeatureClassifier(), version=99))


@pytest.mark.parametrize(
    "name",
    [
        "", "os.system", "builtins.eval", "demo.run", "zoo.make", "_values.build", "kernels.Gaussian", "kernels._base",
        "kernels:gaussian", "estimators.StreamEstimator", "estimators.FeatureClassifier.__init__",
    ],
)  # fmt: skip
def test_a_file_names_estimators_only(name):
    with pytest.raises(ModelFileError):
        kernelstream.load(changed(FeatureClassifier(random_state=0).fit(X, y), **{"class": name}))


@pytest.mark.parametrize(
    "value",
    [
        {"$eval": "1"},
        {"$array": 99},
        {"$array": -1},
        {"$array": "0"},
        {"$component": ["os.system", {}]},
        {"$component": ["kernels.Gaussian", {"nope": 1}]},
        {"$component": 3},
        {"$float": "1e5"},
        {"$number": ["O", 1]},
        {"a": 1, "b": 2},
        {"$csr": [1, 2, 3, 4]},
        {"$dict": [[{"$dict": []}, 1]]},
    ],
    ids=str,
)
def test_a_file_holds_known_values_only(value):
    def change(header, arrays):
        header["parameters"]["features"] = value

    with pytest.raises(ModelFileError):
        kernelstream.load(rewritten(dumped(FeatureClassifier(random_state=0).fit(X, y)).getvalue(), change))


def test_objects_in_arrays_are_refused():
    evil = io.BytesIO()
    np.lib.format.write_array(evil, np.array([print]), allow_pickle=True)

    def change(header, arrays):
        arrays[0] = np.array([1])

    entries = entries_of(rewritten(model_io.to_bytes(FeatureClassifier(random_state=0).fit(X, y)), change).getvalue())
    entries["arrays/0.npy"] = evil.getvalue()
    with pytest.raises(ModelFileError, match="holds object"):
        kernelstream.load(io.BytesIO(model_io._pack(entries)))


@pytest.mark.parametrize(
    "spec",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,), }",
        "junk",
    ],
)
def test_impossible_arrays_are_refused(spec):
    spec = spec.encode().ljust(117) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + len(spec).to_bytes(2, "little") + spec + bytes(8)
    with pytest.raises((ModelFileError, ValueError)):
        model_io._read_array(npy, {"dtype": "<f8", "shape": [1000000000000]}, 0)


small = RandomFourier(n_components=9)
FITTED = {
    "feature": lambda: FeatureClassifier(small, standardize=True, random_state=0).fit(X, y),
    "averaged": lambda: FeatureClassifier(small, update=updates.Averaged("ogd"), random_state=0).fit(X, y),
    "regressor": lambda: FeatureRegressor(small, random_state=0).fit(X, target),
    "nystroem map": lambda: FeatureClassifier(Nystroem(n_components=9), random_state=0).fit(X, y),
    "warm-up": lambda: FeatureClassifier(small, random_state=0).partial_fit(X[:5], y[:5]),
    "sparse warm-up": lambda: FeatureClassifier(small, random_state=0).partial_fit(sp.csr_array(X[:5]), y[:5]),
    "nystroem": lambda: NystroemClassifier(budget=20, gamma=1.0, refresh=50, random_state=0).fit(X, y),
    "expansion": lambda: NystroemClassifier(budget=200, gamma=1.0, random_state=0).fit(X, y),
    "multiclass": lambda: FeatureClassifier(small, random_state=0).fit(*make_blobs(100, centers=4, random_state=0)),
    "doubly": lambda: DoublyStochasticClassifier(gamma=0.7, schedule=DoublySchedule(16, 6)).partial_fit(X, y),
}


@pytest.mark.parametrize("kind", FITTED)
def test_every_wrong_shape_is_noticed(kind):
    est = FITTED[kind]()
    content = dumped(est).getvalue()
    kernelstream.load(io.BytesIO(content))
    for entry, value in est.state_.items():
        for spoil in (_longer, _flat, _complex) if isinstance(value, np.ndarray) else (None, "x", -1):

            def change(header, arrays, entry=entry, spoil=spoil):
                spec = header["state"][entry]
                if isinstance(spec, dict):
                    arrays[spec["$array"]] = spoil(arrays[spec["$array"]])
                else:
                    header["state"][entry] = spoil

            if (isinstance(value, (float, str)) and spoil == -1) or (np.size(value) == 0 and spoil is _longer):
                continue
            assert refuses(rewritten(content, change)), f"{entry} was accepted after {spoil}"

        def without(header, arrays, entry=entry):
            del header["state"][entry]

        if entry not in (
            "classes_fixed",
            "class_counts",
            "link",  # files from before there were probabilities for every loss
            "G",  # without it a model goes on with the update of the torch engine, which has none
            "w_mean",
            "center",
            "pool_seen",
            "pool",
            "x_count",
            "n_support",
        ):
            assert refuses(rewritten(content, without)), f"a state without {entry} was accepted"


def refuses(file):
    try:
        kernelstream.load(file)
    except ModelFileError:
        return True
    return False


def _longer(array):
    return np.concatenate([array, array[-1:]])


def _flat(array):
    return array.reshape(-1, 1, 1)


def _complex(array):
    return np.full(array.shape, "a") if array.dtype.kind in "iu" else array.astype(np.complex128)


def test_what_is_written_can_be_read(tmp_path):
    """Weights of 1e18 harm no probabilities; a state that load would refuse is not written over a good file."""
    est, path = kernelstream.zoo.make("fogd", random_state=0), tmp_path / "model.ks"
    est.learn(X, y, sample_weight=np.full(len(y), 1e18))
    kernelstream.save(est, path)
    truth = est.predict_proba(X)
    np.testing.assert_array_equal(kernelstream.load(path).predict_proba(X), truth)
    est.state_["link"][5] = np.nan
    with pytest.raises(ValueError, match=r"link.*NaN"):
        kernelstream.save(est, path)
    np.testing.assert_array_equal(kernelstream.load(path).predict_proba(X), truth)


# ---------------------------------------------------------------------- other ways of saving
def test_joblib(tmp_path):
    est = FeatureClassifier(random_state=0).fit(X, y)
    joblib.dump(est, tmp_path / "m.joblib")
    for mode in (None, "r"):  # in memory, and mapped
        loaded = joblib.load(tmp_path / "m.joblib", mmap_mode=mode)
        np.testing.assert_array_equal(loaded.predict(X), est.predict(X))


@pytest.mark.parametrize(
    "est",
    [
        FeatureClassifier(random_state=0),
        FeatureClassifier(RandomFourier(Gaussian(0.5)), losses.Logistic(), random_state=0),
        NystroemClassifier(random_state=0),
    ],
    ids=repr,
)
def test_skops(est):
    skops = pytest.importorskip("skops.io")
    est = clone(est).fit(X, y)
    content = skops.dumps(est)
    trusted = skops.get_untrusted_types(data=content)
    assert all(name.startswith("kernelstream.") for name in trusted)
    back = skops.loads(content, trusted=trusted)
    np.testing.assert_array_equal(back.decision_function(X), est.decision_function(X))
    back.partial_fit(X, y)


# ---------------------------------------------------------------------- files of released formats
FIRST = FeatureClassifier(RandomFourier(Gaussian(0.7), 20), losses.Logistic(), updates.OGD(0.5, "sqrt"), random_state=7)


@pytest.mark.parametrize("version", range(1, model_io.VERSION + 1))
def test_a_file_of_every_format_is_still_read(version):
    """The files stay as they are: a change of the format comes with a new number and a new file."""
    path = FIXTURES / f"format_{version}.ks"
    assert model_io.describe(path)["format_version"] == version
    est, notes = model_io.read(path)
    assert str(est.get_params()) == str(FIRST.get_params())
    np.testing.assert_allclose(est.decision_function(notes["X"]), notes["scores"], rtol=1e-10, atol=1e-12)
    # Fourier features by their definition, from the frequencies of the seed
    W = est._learner.mapping(est.state_).W
    Z = np.hstack([np.cos(notes["X"] @ W), np.sin(notes["X"] @ W)]) / np.sqrt(W.shape[1])
    np.testing.assert_allclose(Z @ est.state_["w"][0], notes["scores"], rtol=1e-9)
    est.partial_fit(notes["X"], est.classes_[[0, 1] * (len(notes["X"]) // 2)])
