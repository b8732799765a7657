"""Random binning features: cells against a dictionary of tuples, Z Z' against the kernel, both engines, bad input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate
from sklearn.base import clone

from kernelstream import engine, kernels
from kernelstream.core import cells
from kernelstream.core import cells_python as _cells_python
from kernelstream.core import grids as _grids
from kernelstream.features import RandomBinning
from kernelstream.testing import check_kernel

rng = np.random.default_rng(0)
X = rng.uniform(-1, 2, (300, 5))
native = pytest.importorskip("kernelstream.core.cells_native") if engine.has_native() else None
both = pytest.mark.parametrize(
    "ops", [_cells_python, native] if native else [_cells_python], ids=lambda m: m.__name__[-6:]
)


def draw(d, R, dtype, gamma=1.0, seed=0):
    return _grids.draw(kernels.Laplacian(gamma), seed, d, R, dtype)


def truth(X, grids):
    """Tuples of cell indices by the definition, floor((x - u) / delta), in exact rational arithmetic of the floats."""
    delta = 1 / grids.inverse.astype(np.longdouble)
    u = grids.offset - delta / 2
    return [
        [tuple(np.floor((x - u[r]) / delta[r]).astype(int)) for x in X.astype(np.longdouble)]
        for r in range(grids.count)
    ]


@both
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cells_are_those_of_the_definition(ops, dtype):
    A = X.astype(dtype)
    grids = draw(5, 7, dtype)
    cells, keys, starts = ops.number_cells(A, grids)
    assert cells.shape == (7, 300) and cells.dtype == np.int32
    for r, row in enumerate(truth(A, grids)):
        numbers = {}
        assert [numbers.setdefault(cell, len(numbers)) for cell in row] == cells[r].tolist()
        assert starts[r + 1] - starts[r] == len(numbers)
    assert len(keys) == starts[-1]
    found = ops.find_cells(A[::-1].copy(), grids, ops.cell_table(keys, starts))
    assert np.array_equal(found[:, ::-1], cells)


@pytest.mark.skipif(native is None, reason="no compiled core")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape, gamma",
    [((1, 3, 1), 1.0), ((37, 1, 9), 0.02), ((37, 1, 9), 300.0), ((5000, 20, 33), 1.0), ((300, 150, 12), 0.02),
     ((300, 150, 12), 300.0)],
)  # fmt: skip
def test_engines_agree(shape, gamma, dtype, rng):
    n, d, R = shape
    A = rng.normal(size=(n, d)).astype(dtype)
    A[rng.random((n, d)) < 0.2] = 0
    A[:, : d // 2] *= rng.random((n, d // 2)) < 0.1  # columns of zeros, which the compiled loops treat apart
    A[0, 0] = 1e20
    grids = draw(d, R, dtype, gamma)
    expected = _cells_python.cell_hashes(A, grids)
    for threads in (1, 3):
        for rows in (A, sp.csr_array(A), sp.csr_matrix(A)):
            assert np.array_equal(native.cell_hashes(rows, grids, threads), expected)
    big = sp.csr_array(A)
    big.indices, big.indptr = big.indices.astype(np.int64), big.indptr.astype(np.int64)
    assert np.array_equal(native.cell_hashes(big, grids), expected)
    assert np.array_equal(native.bucket_cells(A, grids, 100, 2), _cells_python.bucket_cells(A, grids, 100))
    for ours, theirs in zip(native.number_cells(A, grids, 2), _cells_python.number_cells(A, grids)):
        assert np.array_equal(ours, theirs)
    half = A[: (n + 1) // 2]
    _, keys, starts = native.number_cells(half, grids)
    found = native.find_cells(A, grids, native.cell_table(keys, starts), 2)
    assert np.array_equal(found, _cells_python.find_cells(A, grids, _cells_python.cell_table(keys, starts)))


def test_different_cells_have_different_names():
    # all 2^16 corners of a cube, and a line of cells: the names of a linear hash must not coincide
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 16)).reshape(16, -1).T
    grids = _grids.Grids(np.full((1, 16), 1.0), np.zeros((1, 16)), np.full(16, 1e6), draw(16, 1, float).multipliers)
    line = np.zeros((100_000, 16))
    line[:, 3] = np.arange(100_000) * 7
    rows = np.unique(np.concatenate([corners, line]), axis=0)
    numbers, keys, starts = cells.ops.number_cells(rows, grids)
    assert len(keys) == len(rows) == starts[-1] == len(np.unique(numbers[0]))


@both
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(ops, outputs, dtype, rng):
    grids = draw(5, 11, dtype, gamma=0.5)
    A = X.astype(dtype)
    cells, keys, starts = ops.number_cells(A, grids)
    Z = np.zeros((300, len(keys)))
    for r in range(11):
        Z[np.arange(300), starts[r] + cells[r]] = 1 / np.sqrt(11)
    V, U = rng.normal(size=(len(keys), outputs)).astype(dtype), rng.normal(size=(300, outputs)).astype(dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for threads in (1, 2):
        np.testing.assert_allclose(ops.cells_times(cells, starts, V, False, threads), Z @ V, atol=tolerance)
        back = ops.cells_transposed_times(cells, starts, U, threads)
        assert back.dtype == dtype
        np.testing.assert_allclose(back, Z.T @ U, atol=tolerance)
    holes = cells.copy()
    holes[:, ::3] = -1
    expected = Z @ V
    expected[::3] = 0
    np.testing.assert_allclose(ops.cells_times(holes, starts, V, True), expected, atol=tolerance)
    nowhere = np.full_like(cells, -1)  # where no row of a solution lies in a cell, there are none
    np.testing.assert_array_equal(ops.cells_times(nowhere, np.zeros_like(starts), V[:0], True), 0.0)


def kernel_errors(make, K, R, seeds):
    """Z Z' - K over seeds, (seeds, n, n)."""
    out = []
    for seed in range(seeds):
        Z = make(R, seed)
        out.append((Z @ Z.T).toarray() - K)
    return np.array(out)


PROFILES = {
    "laplacian": kernels.Laplacian(0.7),
    "hyperbolic": kernels.Convex(lambda t: 1 / (1 + t), gamma=0.7),
    "hat": kernels.Convex(lambda t: np.maximum(0, 1 - t), gamma=0.3),
    "stretched": kernels.Convex(lambda t: np.exp(-np.sqrt(t)), gamma=0.7),
}


@pytest.mark.parametrize("name", PROFILES)
def test_gram_at_the_monte_carlo_rate(name, rng):
    rows = rng.uniform(-1, 1, (12, 3))
    kernel = PROFILES[name]
    K = kernel.pairwise(rows, rows)

    def make(R, seed):
        return RandomBinning(kernel, n_components=R, random_state=seed).fit_transform(rows)

    # An entry is the mean of R Bernoulli(k) numbers, so its variance is k (1 - k) / R.
    for R in (100, 1600):
        errors = kernel_errors(make, K, R, 60)
        z = errors.mean(axis=0) / np.maximum(np.sqrt(K * (1 - K) / (60 * R)), 1e-9)
        off = ~np.eye(12, dtype=bool)
        assert np.abs(z[off]).max() < 4.5  # 66 pairs of normal numbers
        assert np.allclose(errors[:, ~off], 0)
        ratio = (errors**2)[:, off].mean() / (K * (1 - K) / R)[off].mean()
        assert 0.75 < ratio < 1.3


@pytest.mark.parametrize("name", ["hyperbolic", "stretched", "laplacian"])
def test_pitches_have_the_density(name):
    kernel = PROFILES[name]
    pitches = kernel.pitches(np.random.default_rng(1), 2, 200_000)
    assert pitches.shape == (2, 200_000)
    profile = getattr(kernel, "profile", lambda t: np.exp(-t))

    def density(delta, h=1e-4):  # delta k''(delta), by differences
        t = delta
        return t * (profile(t + h) - 2 * profile(t) + profile(t - h)) / h**2

    for low, high in ((0.3, 1.0), (1.0, 4.0)):
        share = integrate.quad(density, low, high)[0]
        found = ((pitches * 0.7 > low) & (pitches * 0.7 < high)).mean()
        assert abs(found - share) < 5 * np.sqrt(share / pitches.size) + 1e-4


def test_convex_kernel_conforms():
    check_kernel(
        kernels.Convex(lambda t: 1 / (1 + t), gamma=0.5), truth=lambda x, z: np.prod(1 / (1 + 0.5 * np.abs(x - z)))
    )
    for profile in (lambda t: np.exp(-(t**2)), lambda t: 2 * np.exp(-t), lambda t: 0.5 + 0.5 * np.exp(-t)):
        with pytest.raises(ValueError, match="profile"):
            kernels.Convex(profile, gamma=1.0).pitches(np.random.default_rng(0), 1, 1)


# ---------------------------------------------------------------- the transformer


def test_exactly_R_entries_and_unseen_cells():
    binning = RandomBinning(gamma=2.0, n_components=40, random_state=0)
    Z = binning.fit_transform(X[:200])
    assert (Z.getnnz(axis=1) == 40).all() and np.allclose(Z.data, 40**-0.5)
    assert Z.shape[1] == len(binning.cells_) == len(binning.get_feature_names_out())
    assert (Z.sum(axis=0) > 0).all()  # every column was met
    assert abs(Z - binning.transform(X[:200])).max() == 0
    other = binning.transform(X[200:])
    whole = clone(binning).fit(X).transform(X)
    assert other.getnnz() < 100 * 40
    # what is left are the common cells: inner products with the training rows do not change
    np.testing.assert_allclose((other @ Z.T).toarray(), (whole[200:] @ whole[:200].T).toarray(), atol=1e-12)
    index = binning.cells(X[200:]).index
    assert index.shape == (100, 40) and (index < 0).any()
    for i in range(3):
        assert sorted(index[i][index[i] >= 0]) == other[i].indices.tolist()


def test_more_grids_keep_the_first():
    few, many = (RandomBinning(gamma=1.0, n_components=R, random_state=3).fit(X) for R in (5, 9))
    assert np.array_equal(few.cells_, many.cells_[: few.starts_[5]])


def test_hashed_columns():
    hashed = RandomBinning(gamma=2.0, n_components=30, n_columns=2**16, random_state=0)
    Z = hashed.fit_transform(X)
    assert Z.shape[1] <= 2**16 and (Z.getnnz(axis=1) == 30).all()
    exact = RandomBinning(gamma=2.0, n_components=30, random_state=0).fit_transform(X)
    gap = (Z @ Z.T - exact @ exact.T).toarray()
    assert gap.min() > -1e-12  # sharing a column only adds
    width = 2**16 // 30
    assert gap.mean() < 2 / width


def test_containers_dtypes_and_pickle(rng):
    A = np.where(rng.random((60, 6)) < 0.5, 0, rng.normal(size=(60, 6)))
    binning = RandomBinning(n_components=20, random_state=0).fit(A)
    Z = binning.transform(A)
    assert Z.dtype == np.float64 and sp.issparse(Z)
    assert (abs(binning.transform(sp.csr_matrix(A)) - Z)).max() == 0
    assert (abs(pickle.loads(pickle.dumps(binning)).transform(A) - Z)).max() == 0
    small = clone(binning).fit_transform(A.astype(np.float32))
    assert small.dtype == np.float32
    gamma = binning.entries_["gamma"]
    assert gamma == pytest.approx(1 / np.median([np.abs(a - b).sum() for i, a in enumerate(A) for b in A[:i]]))


def test_dense_learners_refuse_it():
    from kernelstream import FeatureClassifier

    with pytest.raises(ValueError, match="BinningClassifier"):
        FeatureClassifier(RandomBinning(gamma=1.0)).fit(X, X[:, 0] > 0)
