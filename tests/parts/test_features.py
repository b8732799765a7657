"""Feature maps: the conformance kit over all of them, exact facts, scikit-learn's checks, bad input."""

import pickle

import numpy as np
import pytest
from coverings import in_turn
from scipy import sparse
from threadpoolctl import threadpool_limits

from kernelstream import features
from kernelstream import kernels as ks
from kernelstream.engine import python as ops
from kernelstream.features import Nystroem, RandomFeatures, RandomFourier, TensorSketch, landmarks, sampling
from kernelstream.features.nystroem import largest_eigenpairs
from kernelstream.testing import check_feature_map

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(24, 4)) * (RNG.random((24, 4)) > 0.2)
POSITIVE = np.abs(REAL)
MIXTURE = ks.SpectralMixture([0.3, 0.7], [0.0, 1.0], [1.0, 0.5])
MIXTURE_WIDE = ks.SpectralMixture([0.4, 0.6], RNG.normal(size=(2, 4)), RNG.uniform(0.2, 1, (2, 4)))
SAMPLINGS = sampling.SAMPLINGS


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices on a busy machine: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def rows_for(kernel):
    return REAL if kernel.domain == "real" else POSITIVE


# ---------------------------------------------------------------- the conformance kit


@in_turn("kernel, how", [ks.Gaussian(0.3), ks.Matern(0.5, 1.5), ks.Matern(2.5, 1.0)], SAMPLINGS)
def test_fourier_isotropic(kernel, how):
    check_feature_map(RandomFourier(kernel, 32, sampling=how), kernel, REAL)


OTHERS = [ks.Laplacian(0.3), ks.Cauchy(0.5), MIXTURE, MIXTURE_WIDE, ks.Gaussian(0.2) * ks.Laplacian(0.1)]


@in_turn("kernel, how", OTHERS, ["iid", "qmc"])
def test_fourier_others(kernel, how):
    check_feature_map(RandomFourier(kernel, 32, sampling=how), kernel, REAL)


@pytest.mark.parametrize("name", [name for name in ks.names() if ks.get(name).has_features])
def test_random_features(name):
    kernel = ks.get(name)
    X = rows_for(kernel)
    kernel = kernel.resolve(X)
    check_feature_map(RandomFeatures(kernel, 32), kernel, X)


@pytest.mark.parametrize(
    "kernel",
    [
        ks.Gaussian(0.2) + ks.Linear(),
        2.0 * ks.Gaussian(0.2),
        ks.Gaussian(0.2) * ks.ArcCosine(1),
        ks.ArcCosine(0),
        ks.ArcCosine(2),
        ks.Chi2() + 0.5 * ks.Gaussian(1.0),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_random_features_of_compositions(kernel):
    check_feature_map(RandomFeatures(kernel, 64), kernel, POSITIVE)


@in_turn("kernel, how", [ks.Gaussian(0.1), ks.Laplacian(0.1), ks.Polynomial(2, 1.0, 0.5)], list(landmarks.CHOICES))
def test_nystroem(kernel, how):
    check_feature_map(Nystroem(kernel, 5, landmarks=how), kernel, REAL, unbiased=False)


@pytest.mark.parametrize(("degree", "c", "gamma"), [(1, 1.0, 1.0), (2, 1.0, 0.5), (3, 0.0, 1.0), (3, 2.0, 0.3)])
def test_tensor_sketch(degree, c, gamma):
    check_feature_map(TensorSketch(degree, c, gamma, 32), ks.Polynomial(degree, c, gamma), REAL)


def test_the_kit_finds_a_biased_map():
    with pytest.raises(AssertionError, match="biased"):
        check_feature_map(RandomFourier(ks.Gaussian(0.3), 64), ks.Gaussian(0.5), REAL)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("name", features.names())
def test_pandas_output(name):
    pandas = pytest.importorskip("pandas")
    feature_map = features.get(name, **({"n_components": 8} if name not in ("taylor", "raw") else {})).set_output(
        transform="pandas"
    )
    frame = feature_map.fit_transform(pandas.DataFrame(REAL, columns=list("abcd"))[:20])
    assert list(frame.columns) == list(feature_map.get_feature_names_out())


# ---------------------------------------------------------------- Fourier


@pytest.mark.parametrize("kernel", [ks.Gaussian(0.3), ks.Laplacian(0.3), ks.Cauchy(0.3), ks.Matern(1.5, 1.0)], ids=repr)
@pytest.mark.parametrize("how", ["iid", "qmc"])
def test_wider_input_extends_the_frequencies(kernel, how):
    narrow, wide = (sampling.frequencies(kernel, 3, d, 40, how) for d in (5, 9))
    assert np.array_equal(wide[:5], narrow)


def test_bandwidth_scales_one_base_matrix():
    one, four = (sampling.frequencies(ks.Gaussian(gamma), 3, 5, 40) for gamma in (0.5, 2.0))
    np.testing.assert_allclose(four, 2 * one, rtol=1e-14)


@pytest.mark.parametrize("how", SAMPLINGS)
def test_both_precisions_are_one_map(how):
    single, double = (sampling.frequencies(ks.Gaussian(0.3), 3, 5, 40, how, t) for t in (np.float32, np.float64))
    assert np.array_equal(single, double.astype(np.float32))
    assert single.flags.c_contiguous and double.flags.c_contiguous


@pytest.mark.parametrize(("how", "d"), [("orthogonal", 7), ("structured", 64)])
def test_orthogonal_directions_are_orthogonal(how, d):
    W = sampling.frequencies(ks.Gaussian(0.5), 1, d, 2 * d + 3, how)
    for block in (W[:, :d], W[:, d : 2 * d], W[:, 2 * d :]):
        G = block.T @ block
        np.testing.assert_allclose(G - np.diag(np.diag(G)), 0, atol=1e-12 * d)


@pytest.mark.parametrize("how", ["orthogonal", "structured"])
@pytest.mark.parametrize("kernel", [ks.Gaussian(0.5), ks.Matern(1.5, 1.0)], ids=repr)
def test_orthogonal_norms_are_those_of_independent_frequencies(kernel, how):
    plain, other = (sampling.frequencies(kernel, 1, 8, 20000, h) for h in ("iid", how))
    quantiles = np.linspace(0.1, 0.9, 9)
    for power in (np.linalg.norm(plain, axis=0), np.linalg.norm(other, axis=0)):
        assert power.min() > 0
    np.testing.assert_allclose(
        np.quantile(np.linalg.norm(other, axis=0), quantiles),
        np.quantile(np.linalg.norm(plain, axis=0), quantiles),
        rtol=0.05,
    )


@pytest.mark.parametrize("d", [1, 2, 3, 100])
def test_structured_frequencies_look_gaussian(d):
    # Few signs make few directions: without padding, two coordinates would only ever give diagonals.
    W = np.hstack([sampling.frequencies(ks.Gaussian(0.5), seed, d, 64, "structured") for seed in range(200)])
    assert abs(np.mean(W**2) - 1) < 0.05
    assert abs(np.mean(W**4) - 3) < 0.3
    if d > 1:
        assert abs(np.mean(W[0] ** 2 * W[1] ** 2) - 1) < 0.1


@pytest.mark.parametrize(("how", "d", "factor"), [("orthogonal", 16, 0.9), ("structured", 64, 0.9), ("qmc", 4, 0.6)])
def test_better_than_independent(how, d, factor):
    X = np.random.default_rng(1).normal(size=(30, d)) * np.sqrt(2 / d)
    kernel = ks.Gaussian(0.3)
    K = kernel.pairwise(X, X)

    def error(how):
        Z = [RandomFourier(kernel, 128, sampling=how, random_state=seed).fit_transform(X) for seed in range(12)]
        return np.sqrt(np.mean([(z @ z.T - K) ** 2 for z in Z]))

    assert error(how) < factor * error("iid")


def test_sobol_points_are_balanced():
    U = sampling.scrambled_sobol(5, 6, 256)
    assert U.min() > 0 and U.max() < 1
    for u in U:  # one point in each of 256 equal intervals
        assert np.array_equal(np.sort(np.floor(u * 256)), np.arange(256))


@pytest.mark.parametrize("kernel", [ks.Laplacian(0.3), MIXTURE, ks.Gaussian(0.1) * ks.Gaussian(0.2)], ids=repr)
@pytest.mark.parametrize("how", ["orthogonal", "structured"])
def test_orthogonal_needs_an_isotropic_kernel(kernel, how):
    with pytest.raises(ValueError, match=rf"{how}.*isotropic.*{type(kernel).__name__}"):
        RandomFourier(kernel, sampling=how).fit(REAL)


def test_qmc_needs_quantiles():
    class Custom(ks.FourierKernel):
        def _frequencies(self, rng, d, D):
            return rng.standard_normal((d, D))

    assert RandomFourier(Custom(), 8, random_state=0).fit(REAL).mapping_.n_out == 16
    with pytest.raises(ValueError, match=r"quantiles.*Custom"):
        RandomFourier(Custom(), 8, sampling="qmc").fit(REAL)


def test_default_bandwidth_is_the_median():
    fitted = RandomFourier(random_state=0).fit(REAL)
    assert fitted.entries_["gamma"] == ks.Gaussian("median").resolve(REAL).gamma
    assert RandomFourier().needs_data
    assert RandomFourier("matern").fit(REAL).entries_["length"] > 0
    assert not RandomFourier(gamma=0.5).needs_data
    assert RandomFourier(gamma=0.5).prepare(None, 9) == {"seed": 9}


def test_nested_bandwidths_are_entries():
    kernel = ks.Gaussian("median") + 2.0 * ks.Laplacian("scale")
    fitted = RandomFeatures(kernel, 16, random_state=0).fit(REAL)
    assert set(fitted.entries_) == {"seed", "left__gamma", "right__kernel__gamma"}
    assert kernel.left.gamma == "median"


# ---------------------------------------------------------------- Nyström


@pytest.mark.parametrize("kernel", [ks.Gaussian(0.3), ks.Matern(1.5, 1.0), ks.Polynomial(3, 1.0, 1.0)], ids=repr)
def test_all_rows_as_landmarks_are_exact(kernel):
    K = kernel.pairwise(REAL, REAL)
    for how in (*landmarks.CHOICES, REAL):
        Z = Nystroem(kernel, len(REAL), landmarks=how, random_state=0).fit_transform(REAL)
        np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * np.abs(K).max())


@pytest.mark.parametrize("rank", [1, 3, 10])
def test_rank_k_is_the_best_of_its_rank(rank):
    K = ks.Gaussian(0.3).pairwise(REAL, REAL)
    Z = Nystroem(ks.Gaussian(0.3), len(REAL), rank=rank, random_state=0).fit_transform(REAL)
    U, s, Vt = np.linalg.svd(K)
    assert Z.shape[1] == rank
    np.testing.assert_allclose(Z @ Z.T, (U[:, :rank] * s[:rank]) @ Vt[:rank], atol=1e-10)


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("rank", [1, 7, 30, 60, 120])
def test_eigenpairs_of_multiple_and_of_close_eigenvalues(rank, unit):
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(120, 120)))[0]
    w = np.concatenate([[4.0], np.full(29, 1.0), 0.25 + 1e-13 * np.arange(30), np.geomspace(1e-3, 1e-20, 60)])
    D, V = largest_eigenpairs((Q * w) @ Q.T * unit, rank)
    np.testing.assert_allclose(D / unit, np.sort(w)[-rank:], atol=1e-13)
    np.testing.assert_allclose(V.T @ V, np.eye(rank), atol=1e-13)
    np.testing.assert_allclose((Q * w) @ Q.T @ V, V * (D / unit), atol=1e-13)
    if rank in (1, 30, 60):  # no eigenvalue beyond these is close: they span one space
        np.testing.assert_allclose(V @ V.T, Q[:, :rank] @ Q[:, :rank].T, atol=1e-12)


def test_features_of_landmarks_are_orthogonal_and_sorted():
    fitted = Nystroem(ks.Gaussian(0.3), 10, random_state=0).fit(REAL)
    S = fitted.entries_["landmarks"]
    G = fitted.transform(S).T @ fitted.transform(S)
    eigenvalues = np.linalg.eigvalsh(ks.Gaussian(0.3).pairwise(S, S))[::-1]
    np.testing.assert_allclose(G, np.diag(eigenvalues), atol=1e-10)


def test_repeated_rows_are_dropped_from_the_spectrum():
    X = np.repeat(REAL[:3], 5, axis=0)
    for how in landmarks.CHOICES:
        Z = Nystroem(ks.Gaussian(0.3), 10, landmarks=how, random_state=0).fit_transform(X)
        assert Z.shape[1] <= 3
        if how != "uniform":
            np.testing.assert_allclose(Z @ Z.T, ks.Gaussian(0.3).pairwise(X, X), atol=1e-9)


def test_a_zero_gram_matrix_gives_zero_features():
    Z = Nystroem(ks.Linear(), 4, random_state=0).fit(np.zeros((6, 3))).transform(REAL[:, :3])
    assert Z.shape == (24, 1) and not Z.any()


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_shortcut_equals_the_kernel(scale, dtype):
    X = (REAL + (scale if scale > 1 else 0)).astype(dtype)  # far from the origin, distances cancel
    fitted = Nystroem(ks.Gaussian(0.3), 8, random_state=0).fit(X)
    mapping = fitted.mapping_
    expected = mapping.kernel.pairwise(X, mapping.S) @ mapping.P
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(mapping(rows, ops), expected, atol=2e-3 if dtype == np.float32 else 1e-6)


@pytest.mark.parametrize("how", list(landmarks.CHOICES))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_landmarks_are_distinct_rows(how, container):
    X = container(np.random.default_rng(0).normal(size=(300, 3)))
    rows = landmarks.choose(how, ks.Gaussian(0.5), X, 20, np.random.default_rng(1))
    assert len(rows) == len(set(rows.tolist())) == 20
    again = landmarks.choose(how, ks.Gaussian(0.5), X, 20, np.random.default_rng(1))
    assert np.array_equal(rows, again)


def test_careful_landmarks_find_the_small_cluster():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(990, 5)), 8 + 0.3 * rng.normal(size=(10, 5))])
    kernel = ks.Gaussian(0.01)
    K = kernel.pairwise(X, X)

    def lost(how):
        error = []
        for seed in range(5):
            Z = Nystroem(kernel, 40, landmarks=how, random_state=seed).fit_transform(X)
            error.append(np.trace(K) - np.sum(Z**2))
        return np.mean(error)

    uniform = lost("uniform")
    for how in ("kmeans++", "leverage", "rpcholesky"):
        assert lost(how) < 0.5 * uniform


def test_leverage_scores_follow_the_exact_ones():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(390, 3)), 6 + rng.normal(size=(10, 3))])
    kernel, m = ks.Gaussian(0.1), 30
    K = kernel.pairwise(X, X)
    lam = landmarks._ridge(np.linalg.eigvalsh(K), m / 2)
    exact = np.diag(K @ np.linalg.inv(K + lam * np.eye(len(K))))
    score = landmarks.leverage_scores(kernel, X, np.ones(len(X)), m, X)
    np.testing.assert_allclose(score, exact, rtol=1e-6)
    np.testing.assert_allclose(exact.sum(), m / 2)
    counts = np.zeros(len(X))
    for seed in range(40):
        counts[landmarks.leverage(kernel, X, m, np.random.default_rng(seed))] += 1
    assert np.corrcoef(counts, exact)[0, 1] > 0.7


def test_fewer_rows_than_landmarks():
    with pytest.warns(UserWarning, match="only 24 rows"):
        fitted = Nystroem(gamma=0.3, n_components=50).fit(REAL)
    assert len(fitted.entries_["landmarks"]) == 24
    assert len(Nystroem(gamma=0.3, n_components=50).prepare(REAL[:2], 0)["landmarks"]) == 2


# ---------------------------------------------------------------- tensor sketch


def test_tensor_sketch_is_the_sketch_of_the_tensor_product():
    D, degree = 16, 2
    fitted = TensorSketch(degree, 0.5, 2.0, D, random_state=4).fit(REAL)
    C = fitted.mapping_.C.toarray()
    sketches = (REAL @ C).reshape(-1, degree, D) + fitted.mapping_.b
    expected = np.zeros((len(REAL), D))
    for i in range(D):
        for j in range(D):
            expected[:, (i + j) % D] += sketches[:, 0, i] * sketches[:, 1, j]
    np.testing.assert_allclose(fitted.transform(REAL), expected, atol=1e-10)
    assert ((C != 0).sum(axis=1) == degree).all()


def test_tensor_sketch_estimates_gamma():
    fitted = TensorSketch(gamma="scale", random_state=0).fit(REAL)
    assert fitted.entries_["gamma"] == ks.Polynomial(2, 1.0, "scale").resolve(REAL).gamma


# ---------------------------------------------------------------- registry


def test_natural_maps():
    found = {name: type(features.for_kernel(name)).__name__ for name in ks.names()}
    assert found["gaussian"] == found["spectral_mixture"] == "RandomFourier"
    assert found["polynomial"] == "TensorSketch"
    assert found["chi2"] == found["arc_cosine"] == "RandomFeatures"
    for name in ks.names():
        kernel = ks.get(name)
        X = rows_for(kernel)
        feature_map = features.for_kernel(name, n_components=16, random_state=0)
        assert pickle.loads(pickle.dumps(feature_map.fit(X))).transform(X).shape[0] == len(X)


def test_registry():
    for name in features.names():
        feature_map = features.get(name)
        assert features.get(feature_map) is feature_map and feature_map.name == name
    with pytest.raises(ValueError, match="unknown feature map 'fuorier'"):
        features.get("fuorier")
    with pytest.raises(ValueError, match="belong in the feature map"):
        features.get(RandomFourier(), n_components=3)
    with pytest.raises(ValueError, match="prepare and build"):
        features.get(3)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("feature_map", "match"),
    [
        (RandomFourier("chi2"), "Chi2 has no Fourier frequencies"),
        (RandomFourier(n_components=True), "n_components"),
        (RandomFourier(random_state=-1), "random_state"),
        (RandomFeatures("arc_cosine", gamma=1.0), "no bandwidth"),
        (Nystroem(landmarks=np.ones((3, 4)), rank=4), "rank=4 exceeds the number of landmarks, 3"),
        (Nystroem(landmarks=np.ones((3, 5))), "landmarks have 5 columns, but the rows have 4"),
        (Nystroem(landmarks=np.full((3, 4), np.nan)), "landmarks contains NaN"),
        (Nystroem("chi2", landmarks=-np.ones((3, 4))), "Chi2 needs x >= 0"),
        (TensorSketch(gamma="median"), "gamma of Polynomial must be a number or 'scale'"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_parameters(feature_map, match):
    with pytest.raises(ValueError, match=match):
        feature_map.fit(POSITIVE)


@pytest.mark.parametrize("name", ["chi2", "skewed_chi2", "reciprocal_semigroup"])
@pytest.mark.parametrize("cls", [RandomFeatures, Nystroem])
def test_rows_outside_the_domain(name, cls):
    feature_map = cls(name, n_components=4, random_state=0)
    with pytest.raises(ValueError, match="needs x"):
        feature_map.fit(REAL - 2)
    fitted = feature_map.fit(POSITIVE)
    for rows in (REAL - 2, sparse.csr_array(REAL - 2)):
        with pytest.raises(ValueError, match="needs x"):
            fitted.transform(rows)


@pytest.mark.parametrize("name", features.names())
def test_bad_rows(name):
    feature_map = features.get(name)
    for rows, match in (
        (np.array([["a", "b"], ["c", "d"]]), "could not convert|dtype"),
        ([[1.0, 2.0], [3.0]], "inhomogeneous|sequence"),
        (np.full((3, 2), np.inf), "infinity"),
        (np.empty((0, 3)), "0 sample"),
    ):
        with pytest.raises(ValueError, match=match):
            feature_map.fit(rows)
    fitted = feature_map.fit(np.tile(REAL, (5, 1)))
    before = fitted.transform(REAL)
    with pytest.raises(ValueError, match="3 features"):
        fitted.transform(REAL[:, :3])
    assert np.array_equal(fitted.transform(REAL), before)
