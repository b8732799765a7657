"""Model files with a right signature and wrong content; see forged_models.py for the ones made at random."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from archives import entries_of, rewritten

import kernelstream
from kernelstream import KernelAWV, KernelRegressor, budgets, features, kernels, model_io, second_order
from kernelstream.estimators import (
    BinningClassifier,
    BudgetClassifier,
    DoublySchedule,
    DoublyStep,
    DoublyStochasticClassifier,
    FeatureClassifier,
    MultiKernelClassifier,
    NystroemClassifier,
    OnlineRidge,
    RRFClassifier,
)
from kernelstream.features import RandomFourier, sampling, spectra
from kernelstream.kernels import Gaussian, Laplacian, Linear
from kernelstream.model_io import ModelFileError
from kernelstream.state import schema as _schema

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits of processes are those of Linux")

rng = np.random.default_rng(0)
X = rng.random((60, 3))
y = (X[:, 0] > 0.5).astype(int)


# ---------------------------------------------------------------------- at random
def fuzz(trials, first, every):
    script = Path(__file__).with_name("forged_models.py")
    command = [sys.executable, str(script), str(trials), str(first), "--every", str(every)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    counts = found["counts"]
    assert found["failures"] == []
    assert sum(counts.values()) == trials
    assert found["models"] > 200 // every  # all algorithms for all their tasks, or some of them
    # neither is everything refused, nor is nothing noticed
    assert counts["refused"] > 0.4 * trials
    assert counts["used"] > 0.15 * trials
    return counts


@linux
def test_some_forgeries():
    fuzz(60, 0, every=15)


@linux
@pytest.mark.slow
def test_a_hundred_thousand_forgeries():
    fuzz(100_000, 1_000_000, every=1)


# ---------------------------------------------------------------------- one by one
def forged(est, change):
    """The file of a model after ``change(header, put)``, signed; ``put(name, value)`` enters an array."""

    def changed(header, arrays):
        def put(name, value):
            arrays[header["state"][name]["$array"]] = np.asarray(value)

        change(header, put)

    return rewritten(model_io.to_bytes(est), changed)


def refused(est, change, match):
    kernelstream.load(forged(est, lambda header, put: None))
    with pytest.raises(ModelFileError, match=match):
        kernelstream.load(forged(est, change))


def budgeted(strategy="auto", **params):
    return BudgetClassifier(gamma=1.0, budget=5, strategy=strategy, update="perceptron", **params).fit(X, y)


fourier = FeatureClassifier(RandomFourier(n_components=4, gamma=1.0), random_state=0).fit(X, y)
binned = BinningClassifier(n_components=3, lam=0.1, gamma=1.0, random_state=0).fit(X, y)
starts = binned.state_["starts"]


@pytest.mark.parametrize(
    "wrong",
    [starts[::-1], starts + 1, starts * 2, [0, -5, *starts[2:]], [0, 10**15, *starts[2:]], np.zeros(4)],
    ids=str,
)
def test_cells_outside_the_table(wrong):
    refused(binned, lambda header, put: put("starts", np.array(wrong, np.int64)), "starts")


@pytest.mark.parametrize("value", [-1.0, 5.0, 2.5, 1e300])
def test_the_oldest_slot_is_one(value):
    refused(budgeted("forgetron"), lambda header, put: put("budget_memory", [0.0, 9.0, value]), "oldest")
    refused(budgeted("remove_smallest"), lambda header, put: put("budget_memory", [value]), "oldest")


def test_sizes_of_support_vectors_are_not_negative():
    for strategy in ("merge", "remove_smallest", "transfer"):
        refused(budgeted(strategy), lambda header, put: put("diag", [-1.0] * 5), "'diag'.* must be >= 0")


def test_an_array_of_width_nothing():
    est = BudgetClassifier(gamma=1.0, budget=None).fit(X, y)

    def change(header, put):
        put("alpha", np.zeros((1, 0)))
        put("support", np.zeros((0, 3)))
        put("diag", np.zeros(0))
        header["state"]["n_support"] = 0

    refused(est, change, "'support'|'alpha'")  # its room would be doubled for ever


@pytest.mark.parametrize("value", [np.inf, np.nan, -np.inf])
def test_only_finite_numbers(value):
    ridge = OnlineRidge(RandomFourier(n_components=4, gamma=1.0), random_state=0).fit(X, X[:, 0])
    for est, name in ((ridge, "gram"), (ridge, "b"), (fourier, "w"), (budgeted(), "alpha"), (binned, "w")):
        shape = est.state_[name].shape
        refused(est, lambda header, put, name=name, shape=shape: put(name, np.full(shape, value)), "infinity|NaN")
    refused(binned, lambda header, put: header["state"].update(lam={"$float": repr(float(value))}), "'lam'")


def test_counts_that_loop_for_ever():
    ridge = OnlineRidge(RandomFourier(n_components=4, gamma=1.0), random_state=0).fit(X, X[:, 0])
    full = len(ridge.state_["window"])
    refused(ridge, lambda header, put: header["state"].update(n_window=full), "'n_window'")
    unfilled = NystroemClassifier(budget=50, gamma=1.0).partial_fit(X[:9], y[:9])
    refused(unfilled, lambda header, put: header["state"].update(n_support=50), "'n_support'")
    doubly = DoublyStochasticClassifier(
        gamma=1.0, step=DoublyStep(eta=0.5), schedule=DoublySchedule(batch_size=7, block_size=4), random_state=0
    )
    doubly.partial_fit(X[:30], y[:30])
    batch = {"batch_size": doubly.state_["waiting"]}
    refused(doubly, lambda header, put: header["parameters"]["schedule"]["$component"][1].update(batch), "'waiting'")
    waiting = FeatureClassifier(random_state=0).partial_fit(X[:20], y[:20])
    refused(waiting, lambda header, put: header["state"].update(warm_rows=20), "kept")


def test_numbers_of_the_default_learner_that_no_stream_reaches():
    """More columns than there is memory for are refused, and more rows than there are whole numbers do no harm."""
    rows = np.random.default_rng(0).normal(size=(200, 3))
    default = KernelRegressor(size="small", random_state=0).partial_fit(rows, rows[:, 0])
    refused(default, lambda header, put: header["state"].update(n_features=2**31), "x_mean")
    usual = default.state_["intervals/o0/size"][1]
    loaded = kernelstream.load(forged(default, lambda header, put: put("intervals/o0/size", [1e308, usual])))
    assert np.isfinite(loaded.learn(rows, rows[:, 0])).all()


def test_weights_of_learners_have_their_places():
    est = MultiKernelClassifier([fourier, budgeted()], random_state=0).fit(X, y)
    for changes in ({"history_stride": 0}, {"history_stride": -1}, {"t": 10**9}):
        refused(est, lambda header, put, changes=changes: header["state"].update(changes), "places")

    def own_width(header, put):
        header["state"]["members/0/n_features"] = 10**6

    refused(est, own_width, "in common")


def test_sparse_rows_that_wait():
    est = FeatureClassifier(random_state=0).partial_fit(kernels._rows.sparse.csr_array(X[:20]), y[:20])
    columns, ends = est.state_["warm_X_indices"].copy(), est.state_["warm_X_indptr"].copy()
    for name, wrong in (
        ("warm_X_indices", np.where(np.arange(len(columns)) == 5, -1, columns)),
        ("warm_X_indices", np.where(np.arange(len(columns)) == 5, 3, columns)),
        ("warm_X_indices", columns[::-1]),  # not ascending
        ("warm_X_indices", np.zeros_like(columns)),  # one column three times
        ("warm_X_indptr", ends[::-1]),
        ("warm_X_indptr", ends + 1),
        ("warm_X_indptr", np.where(ends == ends[3], 10**6, ends)),
    ):
        refused(est, lambda header, put, name=name, wrong=wrong: put(name, wrong.astype(np.int32)), "warm_X")


def test_sizes_are_compared_before_anything_is_made(monkeypatch):
    """A parameter may ask for much more than the file holds; nothing is drawn to find that out."""
    drawn = Mock(side_effect=AssertionError("something was drawn"))
    ensemble = MultiKernelClassifier([fourier], random_state=0).fit(X, y)
    doubly = DoublyStochasticClassifier(gamma=1.0, schedule=DoublySchedule(block_size=4), random_state=0).fit(X, y)
    learned = RRFClassifier(4, 1.0, random_state=0).fit(X, y)
    transfer = budgeted(budgets.Transfer(n_components=4))
    files = [forged(est, lambda header, put: None) for est in (fourier, ensemble, doubly, learned, transfer, binned)]
    monkeypatch.setattr(sampling, "frequencies", drawn)
    monkeypatch.setattr(spectra, "frequencies", drawn)
    monkeypatch.setattr(kernelstream.core.grids, "draw", drawn)
    for file in files:
        kernelstream.load(file)
    many = 10**9

    def larger(part, name):
        """A parameter of the model, or of one of its parts, that asks for a lot."""

        def change(header, put):
            parameters = header["parameters"]
            (parameters if part is None else parameters[part]["$component"][1])[name] = many

        return change

    def longer(name):
        return lambda header, put: header["state"].update({name: many})

    started = time.process_time()
    for est, change in (
        (fourier, larger("features", "n_components")),
        (NystroemClassifier(budget=4, gamma=1.0).fit(X, y), larger(None, "budget")),
        (binned, larger(None, "n_components")),
        (doubly, larger("schedule", "block_size")),
        (learned, larger(None, "n_components")),
        (transfer, larger("strategy", "n_components")),
        (KernelAWV(gamma=1.0).fit(X, X[:, 0]), longer("n_rows")),
        (fourier, longer("n_outputs")),
    ):
        with pytest.raises(ModelFileError):
            kernelstream.load(forged(est, change))
    assert time.process_time() - started < 5  # each takes milliseconds
    # Support sets begin small, so a budget may be far larger than the set; no room is made for it.
    assert kernelstream.load(forged(budgeted(), larger(None, "budget"))).state_["alpha"].shape[1] < 100
    # Nothing in such a model is as wide as its rows, so they may be wide; loading does not make the map for them.
    kernelstream.load(forged(fourier, longer("n_features")))


def test_one_array_is_one_value():
    def change(header, put):
        header["state"]["G"] = header["state"]["w"]

    refused(fourier, change, "two values")


def test_arrays_of_nothing():
    entries = entries_of(model_io.to_bytes(fourier))
    header = json.loads(entries["kernelstream.json"])
    place = header["state"]["classes"]["$array"]
    shape = 10**12
    spec = f"{{'descr': '<U0', 'fortran_order': False, 'shape': ({shape},), }}".encode().ljust(117) + b"\n"
    entries[f"arrays/{place}.npy"] = b"\x93NUMPY\x01\x00" + len(spec).to_bytes(2, "little") + spec
    header["arrays"][place] = {"dtype": "<U0", "shape": [shape]}
    entries["kernelstream.json"] = json.dumps(header).encode()
    with pytest.raises(ModelFileError, match="does not have 0 bytes"):
        kernelstream.load(io.BytesIO(model_io._pack(entries)))


def test_entries_that_overlap_or_come_twice():
    packed = model_io._pack({"kernelstream.json": b"{}", "arrays/0.npy": b"x" * 50})
    large = packed.replace((50).to_bytes(4, "little"), (5000).to_bytes(4, "little"))
    body = large[:-64]
    with pytest.raises(ModelFileError, match="overlap"):
        kernelstream.load(io.BytesIO(body + model_io.hashlib.sha256(body).hexdigest().encode()))
    twice = model_io._pack({"kernelstream.json": b"{}", "arrays/0.npy": b"x", "arrays/1.npy": b"y"})
    body = twice.replace(b"arrays/1.npy", b"arrays/0.npy")[:-64]
    with pytest.raises(ModelFileError, match="twice"):
        kernelstream.load(io.BytesIO(body + model_io.hashlib.sha256(body).hexdigest().encode()))


@pytest.mark.parametrize(
    "text", [b"[" * 100_000 + b"]" * 100_000, b'{"version": NaN}', b"\xff", b"3", b"", b'{"format": 1']
)
def test_headers_that_are_none(text):
    with pytest.raises(ModelFileError):
        kernelstream.load(io.BytesIO(model_io._pack({"kernelstream.json": text})))


def test_modules_that_need_other_packages(monkeypatch):
    monkeypatch.setattr("kernelstream.model_io.values.import_module", Mock(side_effect=ModuleNotFoundError))
    with pytest.raises(ValueError, match="not a component"):
        model_io.component_class("river.RiverClassifier")


def test_towers_of_components():
    node = {"$component": ["updates.OGD", {}]}
    for _ in range(12):
        node = {"$component": ["updates.Averaged", {"update": node}]}
    refused(fourier, lambda header, put: header["parameters"].update(update=node), "nested too deeply")
    kernel = {"$component": ["kernels.Gaussian", {"gamma": 1.0}]}
    for _ in range(9):
        kernel = {"$component": ["kernels.Sum", {"left": kernel, "right": kernel}]}
    features_of = {"$component": ["features.RandomFeatures", {"kernel": kernel}]}
    refused(fourier, lambda header, put: header["parameters"].update(features=features_of), "too many parts")


def test_long_sums_of_kernels_can_be_kept_and_printed():
    kernel = Gaussian(0.5)
    for i in range(1, 30):
        kernel = kernel + i * Laplacian(0.5) if i % 2 else kernel * Gaussian(0.1)
    started = time.process_time()
    assert repr(kernel).count("Gaussian(") == 15  # scikit-learn would print for longer than anybody waits
    est = BudgetClassifier(kernel, budget=4).fit(X, y)
    again = kernelstream.load(forged(est, lambda header, put: None))
    assert repr(again.kernel) == repr(kernel)
    np.testing.assert_array_equal(again.decision_function(X), est.decision_function(X))
    assert time.process_time() - started < 5


def test_parts_of_public_modules_inside_public_modules():
    est = RRFClassifier(4, 1.0, spectra.LowRank(2), random_state=0).fit(X, y)
    again = kernelstream.load(forged(est, lambda header, put: None))
    assert again.spectrum.rank == 2
    np.testing.assert_array_equal(again.decision_function(X), est.decision_function(X))


# ---------------------------------------------------------------------- what the checks rest on
@pytest.mark.parametrize(
    "kernel", [*map(kernels.get, kernels.names()), Gaussian() + Linear(), Linear() * Gaussian() * Linear()]
)
def test_features_of_a_draw(kernel):
    if not kernel.has_features:
        pytest.skip("no random features")
    kernel = kernel.resolve(X)
    for d in (1, 3):
        made = kernel.features(X[:, :d], kernel.draw(np.random.default_rng(0), d, 5))
        assert made.shape[1] == 5 * kernel.per_draw(d)


@pytest.mark.parametrize(
    "made",
    [
        RandomFourier(n_components=5),
        RandomFourier("matern", 7, sampling="qmc"),
        features.Nystroem(n_components=6),
        features.Nystroem(n_components=6, rank=2),
        features.TensorSketch(n_components=9, gamma="scale"),
        features.RandomFeatures("chi2", 4),
        features.RandomFeatures(Gaussian("median") + Linear(), 3),
        features.TaylorFeatures(degree=3),
        features.TaylorFeatures(degree="auto"),
        features.TaylorFeatures("linear", degree=3),
        features.RawFeatures(),
    ],
    ids=repr,
)
def test_maps_know_their_width(made):
    entries = made.prepare(X, 7)
    _schema.check(entries, made.schema(entries, 3))
    assert made.width(entries, 3) == made.build(entries, 3, np.float64)(X).shape[1]


def test_every_map_says_what_it_keeps():
    for name in features.names():
        cls = type(features.get(name))
        if name != "binning":  # which is no map for these learners
            assert cls.schema is not features.FeatureMap.schema
            assert cls.width is not features.FeatureMap.width


def test_entries():
    shape = (2, 3)
    good = np.ones(shape)
    array = _schema.Array(shape, low=0.0, high=2.0)
    assert array.fault(good) is None
    for wrong, words in (
        (good[:1], r"\(2, 3\)"),
        (good.astype(np.float32), "float64"),
        (good.tolist(), "array of float64"),
        (good * np.nan, "NaN"),
        (good * np.inf, "infinity"),
        (-good, "from 0.0 to 2.0, got -1.0"),
        (3 * good, "got 3.0"),
        (np.asfortranarray(good), "C-contiguous"),
    ):
        with pytest.raises(ValueError, match=rf"state_\['a'\] .*{words}"):
            _schema.check({"a": wrong}, {"a": array})
    assert _schema.Array(shape, free=True).fault(good * np.inf) is None
    assert _schema.Array(shape, any_order=True).fault(np.asfortranarray(good)) is None
    assert _schema.Array((0, 3)).fault(np.zeros((0, 3))) is None
    rising = _schema.Array((3,), "int64", rising=True)
    assert rising.fault(np.array([0, 0, 2])) is None
    assert rising.fault(np.array([0, 2, 1])) == "must not decrease"
    for entry, right, wrongs in (
        (_schema.Count(1, 5), 5, (0, 6, 2.0, True, "3", None, 10**400)),
        (_schema.Number(0.0), 1e300, (-1.0, np.inf, np.nan, True, "1", None, 10**400)),
        (_schema.Number(free=True), np.inf, (np.nan, 10**400)),
        (_schema.Text(("a", "b")), "b", ("c", 3, None)),
        (_schema.Anything(), np.ones(2), (np.array([np.nan]), None, [1], np.array([1j]))),
    ):
        assert entry.fault(right) is None
        for wrong in wrongs:
            assert entry.fault(wrong) is not None, wrong
    with pytest.raises(ValueError, match="lacks 'a'"):
        _schema.check({}, {"a": array})
    _schema.check({}, {"a": _schema.Count(optional=True)})
    with pytest.raises(ValueError, match="do not belong there: 'b'"):
        _schema.check({"b": 1}, {})


# ---------------------------------------------------------------------- loops that must end, whatever they are given
@pytest.mark.parametrize("value", [np.inf, -np.inf, -1e308, 1e308])
def test_matrices_without_an_inverse(value):
    said = "no inverse" if np.isfinite(value) else "beyond the range of floats"
    gram = np.eye(3)
    gram[0, 1] = gram[1, 0] = value
    state = {"gram": gram[None], "ridge": np.array([1.0]), "b": np.zeros((1, 3))}
    with pytest.raises(ValueError, match=said):
        second_order.factor(state, 0, 0)
    pytest.importorskip("kernelstream._core")
    from kernelstream.second_order.blocks import Head

    with pytest.raises(ValueError, match=said):
        Head(3, 4, 1).restart(state, 0, 0, slice(0, 1))


def test_bindings_do_not_leave_their_arrays():
    _core = pytest.importorskip("kernelstream._core")
    keys = np.arange(6, dtype=np.uint64)
    _core.bin_slots(keys, np.array([0, 2, 6]))
    for wrong in ([0, 7, 6], [0, 2, 7], [1, 2, 6], [0, -1, 6], [6, 0, 6], [0, 2, 5]):
        with pytest.raises(ValueError, match="cells do not fit"):
            _core.bin_slots(keys, np.array(wrong))
    cells, out = np.zeros((2, 4), np.int32), np.zeros((4, 1))
    for wrong in ([0, 7, 6], [0, -1, 6], [2, 3, 6]):
        with pytest.raises(ValueError, match="starts"):
            _core.bin_times(cells, np.array(wrong), np.zeros((6, 1)), out, False, 1)
    for t, stride in ((10**9, 1), (5, 0), (-1, 1)):
        state = {"log_theta": np.zeros(2), "t": t, "history": np.zeros((4, 2), np.float32), "history_stride": stride}
        with pytest.raises(ValueError, match="weights do not fit"):
            _core.hedge_pass(
                state, np.zeros((2, 3, 1)), np.zeros(3), None, None, (0.1, 0.0, False, False), np.zeros((3, 1))
            )


@pytest.mark.parametrize(
    ("strategy", "missing"),
    [
        ("merge", "budget_gram"),
        ("forgetron", "budget_gram"),
        ("remove_redundant", "budget_scores"),
        ("project", "budget_basis"),
        ("projectron", "budget_factor"),
    ],
)
def test_a_strategy_without_its_arrays(strategy, missing):
    pytest.importorskip("kernelstream._core")
    est = budgeted(strategy)
    est.state_.pop(missing)
    with pytest.raises(ValueError, match="lacks what the strategy needs"):
        est.partial_fit(X, 1 - y)
    est = budgeted("forgetron")
    est.state_["budget_memory"] = np.zeros(0)
    with pytest.raises(ValueError, match="lacks what the strategy needs"):
        est.partial_fit(X, 1 - y)
