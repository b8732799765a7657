"""At the door: sparse rows that are none are refused, and a model does not depend on how its rows came."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import kernelstream as ks
from kernelstream import evaluate, streams
from kernelstream import rows as doors
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import RandomFourier
from kernelstream.kernels import Gaussian
from kernelstream.testing.streaming import assert_same_state
from kernelstream_papers.rivals import KernelSDCAClassifier

rng = np.random.default_rng(0)
X = np.where(rng.random((120, 6)) < 0.5, rng.normal(size=(120, 6)), 0.0)
y = (X[:, 0] + X[:, 1] > 0).astype(int)
small = RandomFourier(gamma=0.5, n_components=10)

FAMILIES = [
    ks.FeatureClassifier(small, random_state=0),
    ks.FeatureClassifier(RandomFourier(n_components=10), random_state=0),  # still looks at rows for its bandwidth
    ks.BudgetClassifier(gamma=0.5, budget=10, random_state=0),
    ks.BudgetClassifier("laplacian", 0.5, budget=10, random_state=0),
    ks.OnlineRidge(small, random_state=0),
    ks.RRFClassifier(10, gamma=0.5, random_state=0),
    ks.MultiKernelClassifier([ks.BudgetClassifier(gamma=g, budget=10) for g in (0.1, 1.0)], random_state=0),
    ks.CellsClassifier(4, "hashed", random_state=0),
    ks.DoublyStochasticClassifier(
        gamma=0.5, lam=0.01, step=DoublyStep(eta=1.0), schedule=DoublySchedule(16, 8), random_state=0
    ),
]
NAMES = [f"{type(est).__name__}-{i}" for i, est in enumerate(FAMILIES)]


def broken(how):
    """A CSR matrix that scipy does not look at again, with one thing wrong."""
    A = sp.csr_matrix(X[:20])
    if how == "negative":
        A.indices[3] = -1
    elif how == "too large":
        A.indices[3] = X.shape[1]
    elif how == "wraps":  # 2^32 + 1 is 1 in 32 bits
        A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
        A.indices[3] = 2**32 + 1
    elif how == "falls":
        A.indptr[5], A.indptr[6] = A.indptr[6] + 1, A.indptr[5]
    elif how == "beyond":
        A.indptr[-1] = len(A.data) + 1000
    elif how == "first":
        A.indptr[0] = 1
    elif how == "short":
        A.indptr = A.indptr[:-1]
    elif how == "floats":
        A.indices = A.indices.astype(float)
    return A


BROKEN = ["negative", "too large", "wraps", "falls", "beyond", "first", "short", "floats"]


@pytest.mark.parametrize("how", BROKEN)
def test_broken_matrices_are_refused_everywhere(how):
    bad, target = broken(how), y[:20]
    message = "not a valid CSR matrix"
    est = ks.FeatureClassifier(small, random_state=0)
    with pytest.raises(ValueError, match=message):
        est.learn(bad, target)
    assert not hasattr(est, "state_")
    est.learn(sp.csr_array(X), y)
    before = copy.deepcopy(est.state_)
    for call in (
        lambda: est.learn(bad, target),
        lambda: est.partial_fit(bad, target),
        lambda: est.predict(bad),
        lambda: est.decision_function(bad),
        lambda: est.fit(bad, target),
        lambda: KernelSDCAClassifier(gamma=1.0).fit(bad, target),
        lambda: evaluate.prequential(est, bad, target, block_size=7, progress=False),
        lambda: streams.Arrays(bad, target),
        lambda: list(streams.Blocks(iter([(bad, target)]))),
        lambda: RandomFourier(gamma=0.5).fit(bad),
        lambda: Gaussian(0.5).pairwise(bad, bad),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert_same_state(before, est.state_, 0.0, how)


@pytest.mark.parametrize("est", FAMILIES, ids=NAMES)
def test_every_family_refuses_them(est):
    est = copy.deepcopy(est)
    target = y if hasattr(est, "loss") or not isinstance(est, ks.OnlineRidge) else y.astype(float)
    est.learn(sp.csr_array(X), target)
    for how in ("negative", "too large", "falls", "beyond"):
        for call in (est.predict, lambda A: est.learn(A, target[:20])):
            with pytest.raises(ValueError, match="not a valid CSR matrix"):
                call(broken(how))


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.coo_matrix, sp.bsr_matrix])
def test_other_sparse_matrices(make):
    est = ks.FeatureClassifier(small, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(est.decision_function(make(X)), est.decision_function(sp.csr_array(X)))
    bad = make(X)
    (bad.row if make is sp.coo_matrix else bad.indices)[0] = 1000
    with pytest.raises(ValueError, match="not a valid"):
        est.predict(bad)


def forms(A):
    """The same matrix as others may hold it; the unsorted one with an entry in two parts."""
    dense = A.toarray()
    i, j = np.nonzero(dense)
    order = np.lexsort((-j, i))  # columns fall
    i, j, v = i[order], j[order], dense[i[order], j[order]]
    split = np.flatnonzero(i == i[0])[0]
    i, j = np.insert(i, split, i[split]), np.insert(j, split, j[split])
    v = np.insert(v, split, 0.25)
    v[split + 1] -= 0.25
    indptr = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=A.shape[0]))])
    unsorted = sp.csr_matrix(A.shape)
    unsorted.data, unsorted.indices, unsorted.indptr = v, j.astype(np.int32), indptr.astype(np.int32)
    wide = A.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    swapped = sp.csr_matrix(A.shape)
    swapped.data, swapped.indices, swapped.indptr = (
        A.data.astype(">f8"),
        A.indices.astype(">i8"),
        A.indptr.astype(">i4"),
    )
    roomy = A.copy()
    roomy.data, roomy.indices = np.append(A.data, np.nan), np.append(A.indices, 77).astype(A.indices.dtype)
    return {"unsorted": unsorted, "int64": wide, "other byte order": swapped, "with room": roomy, "csc": A.tocsc()}


@pytest.mark.parametrize("est, engine", [(FAMILIES[0], "python"), *((est, "auto") for est in FAMILIES)])
def test_states_do_not_depend_on_the_form(est, engine):
    target = y.astype(float) if isinstance(est, ks.OnlineRidge) else y
    A = sp.csr_matrix(X)
    plain = copy.deepcopy(est).set_params(engine=engine)
    scores = plain.learn(A[:50], target[:50])
    for name, other in forms(A[:50]).items():
        mine = copy.deepcopy(est).set_params(engine=engine)
        kept = {part: getattr(other, part).copy() for part in ("data", "indices", "indptr")}
        got = mine.learn(other, target[:50])
        tolerance = 1e-12 if name == "unsorted" else 0.0  # a sum of two parts is rounded
        np.testing.assert_allclose(got, scores, rtol=tolerance, atol=tolerance, err_msg=name)
        assert list(mine.state_) == list(plain.state_), name
        for entry, value in plain.state_.items():
            left, right = np.asarray(mine.state_[entry]), np.asarray(value)
            assert left.dtype == right.dtype and left.dtype.isnative, (name, entry)
            if right.dtype.kind == "f":
                np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=f"{name} {entry}")
            else:
                np.testing.assert_array_equal(left, right, err_msg=f"{name} {entry}")
        mine.predict(other)
        for part, before in kept.items():  # the caller's matrix is his own
            assert getattr(other, part).dtype == before.dtype, (name, part)
            np.testing.assert_array_equal(getattr(other, part), before)


@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_byte_order_of_dense_rows_and_targets(kind):
    rows = X.astype(kind)
    labels = np.array(["no", "yes"])[y]
    for est, target in (
        (ks.FeatureClassifier(small, random_state=0), y),
        (ks.FeatureClassifier(small, random_state=0), labels),
        (ks.FeatureRegressor(small, random_state=0), X[:, 2].astype("f8")),
    ):
        here, there = copy.deepcopy(est), copy.deepcopy(est)
        here.learn(rows, target, sample_weight=np.ones(len(y)))
        swapped = target.astype(target.dtype.newbyteorder(">"))
        there.learn(rows.astype(">" + kind), swapped, sample_weight=np.ones(len(y), ">f8"))
        assert here.state_.keys() == there.state_.keys()
        for name, value in here.state_.items():
            assert np.asarray(value).dtype == np.asarray(there.state_[name]).dtype, name
            np.testing.assert_array_equal(value, there.state_[name], err_msg=name)
        np.testing.assert_array_equal(here.predict(rows), there.predict(rows.astype(">" + kind)))


def test_the_check_in_python_is_the_compiled_one(rng):
    core = pytest.importorskip("kernelstream._core")
    specification = doors.csr_form_by_numpy
    for _ in range(2000):
        n, d = rng.integers(0, 5), rng.integers(1, 5)
        indptr = np.sort(rng.integers(0, 7, n + 1))
        indptr[0] = 0
        if rng.random() < 0.3:
            indptr[rng.integers(0, n + 1)] = rng.integers(-1, 8)
        stored = int(rng.integers(0, 8))
        indices = rng.integers(-1 if rng.random() < 0.2 else 0, d + (rng.random() < 0.2), stored)
        if rng.random() < 0.5:
            for i in range(n):
                if 0 <= indptr[i] <= indptr[i + 1]:
                    part = np.sort(rng.permutation(d)[: indptr[i + 1] - indptr[i]])
                    indices[indptr[i] : indptr[i] + len(part)] = part[: len(indices[indptr[i] : indptr[i] + len(part)])]
        for kind in (np.int32, np.int64):
            args = indices.astype(kind), indptr.astype(kind), int(d), stored
            assert specification(*args) == core.csr_form(*args), args


def test_archives_with_a_column_beyond_32_bits(tmp_path):
    A = sp.csr_matrix(X)
    indices = A.indices.astype(np.int64)
    indices[2] += 2**32
    path = tmp_path / "wrapped.npz"
    np.savez(path, X_data=A.data, X_indices=indices, X_indptr=A.indptr, X_shape=A.shape, y=y)
    with pytest.raises(ValueError, match="column outside"):
        list(streams.Arrays(path))
