"""Kernels: the conformance kit over the whole catalogue, independent truths, bandwidths, bad input, memory."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import integrate, sparse, special, stats
from sklearn.base import clone
from sklearn.metrics import pairwise as skl

from kernelstream import kernels as ks
from kernelstream.testing import check_kernel

# ---------------------------------------------------------------- truths: one pair of rows, one coordinate at a time


def gaussian(gamma):
    return lambda x, z: math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z)))


def laplacian(gamma):
    return lambda x, z: math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z)))


def cauchy(gamma):
    return lambda x, z: math.prod(1 / (1 + gamma**2 * (a - b) ** 2) for a, b in zip(x, z))


def matern(nu, length):
    def k(x, z):
        r = math.sqrt(2 * nu) * math.dist(x, z) / length
        return 1.0 if r == 0 else 2 ** (1 - nu) / math.gamma(nu) * r**nu * special.kv(nu, r)

    return k


def spectral_mixture(weights, means, scales):
    def k(x, z):
        total = 0.0
        for v, mean, scale in zip(weights, means, scales):
            q = sum((s * (a - b)) ** 2 for s, a, b in zip(scale, x, z))
            total += v * math.exp(-q / 2) * math.cos(sum(m * (a - b) for m, a, b in zip(mean, x, z)))
        return total

    return k


def dot(x, z):
    return sum(a * b for a, b in zip(x, z))


def dot_product(coefficients):
    return lambda x, z: sum(a * dot(x, z) ** n for n, a in enumerate(coefficients))


def polynomial(degree, c, gamma):
    return lambda x, z: (gamma * dot(x, z) + c) ** degree


def hellinger(x, z):
    return sum(math.sqrt(a * b) for a, b in zip(x, z))


def chi2(x, z):
    return sum(2 * a * b / (a + b) for a, b in zip(x, z) if a + b > 0)


def intersection(x, z):
    return sum(min(a, b) for a, b in zip(x, z))


def jensen_shannon(x, z):
    pairs = [(a, b) for a, b in zip(x, z) if a > 0 and b > 0]
    return sum(a / 2 * math.log2((a + b) / a) + b / 2 * math.log2((a + b) / b) for a, b in pairs)


def skewed_chi2(c):
    return lambda x, z: math.prod(2 * math.sqrt(a + c) * math.sqrt(b + c) / (a + b + 2 * c) for a, b in zip(x, z))


def skewed_intersection(c):
    def ratio(a, b):
        return math.sqrt((a + c) / (b + c))

    return lambda x, z: math.prod(min(ratio(a, b), ratio(b, a)) for a, b in zip(x, z))


def exponential_semigroup(beta):
    return lambda x, z: math.exp(-beta * sum(math.sqrt(a + b) for a, b in zip(x, z)))


def reciprocal_semigroup(lam):
    return lambda x, z: math.prod(lam / (a + b + lam) for a, b in zip(x, z))


def arc_cosine(order):
    def k(x, z):
        size_x, size_z = math.hypot(*x), math.hypot(*z)
        if size_x * size_z == 0:
            return 0.0
        a = math.acos(max(-1.0, min(1.0, dot(x, z) / (size_x * size_z))))
        j = [
            math.pi - a,
            math.sin(a) + (math.pi - a) * math.cos(a),
            3 * math.sin(a) * math.cos(a) + (math.pi - a) * (1 + 2 * math.cos(a) ** 2),
        ][order]
        return size_x**order * size_z**order * j / math.pi

    return k


MIXTURE = ([0.3, 0.7], [[1.0, 0.0, -2.0, 0.5], [0.1, 0.4, 0.0, 0.0]], [[0.5, 1.0, 0.2, 0.0], [1.0, 2.0, 0.3, 0.4]])

CASES = [
    *[(ks.Gaussian(g), gaussian(g)) for g in (0.05, 0.7, 20.0)],
    *[(ks.Laplacian(g), laplacian(g)) for g in (0.1, 1.3)],
    *[(ks.Cauchy(g), cauchy(g)) for g in (0.2, 1.5)],
    *[(ks.Matern(nu, length), matern(nu, length)) for nu in (0.5, 1.5, 2.5, 0.3, 4.0) for length in (0.6, 3.0)],
    (ks.Matern(math.inf, 2.0), gaussian(1 / 8)),
    (ks.SpectralMixture(*MIXTURE), spectral_mixture(*MIXTURE)),
    (ks.SpectralMixture([1.0], [0.0], [2.0]), gaussian(2.0)),
    *[(ks.DotProduct(a), dot_product(a)) for a in ((2.0,), (0.0, 1.0), (1.0, 0.5, 0.0, 0.2), np.array([0.3, 1.0]))],
    *[(ks.Polynomial(n, c, g), polynomial(n, c, g)) for n, c, g in ((1, 0.0, 1.0), (2, 1.0, 0.5), (4, 2.5, 0.1))],
    (ks.Hellinger(), hellinger),
    (ks.Chi2(), chi2),
    (ks.Intersection(), intersection),
    (ks.JensenShannon(), jensen_shannon),
    *[(ks.SkewedChi2(c), skewed_chi2(c)) for c in (0.05, 3.5)],
    *[(ks.SkewedIntersection(c), skewed_intersection(c)) for c in (0.05, 3.5)],
    *[(ks.ExponentialSemigroup(b), exponential_semigroup(b)) for b in (0.1, 0.8)],
    *[(ks.ReciprocalSemigroup(lam), reciprocal_semigroup(lam)) for lam in (0.5, 4.0)],
    *[(ks.ArcCosine(n), arc_cosine(n)) for n in (0, 1, 2)],
    (ks.Linear(), dot),
    # compositions
    (ks.Gaussian(0.3) + ks.Linear(), lambda x, z: gaussian(0.3)(x, z) + dot(x, z)),
    (ks.Gaussian(0.3) * ks.Laplacian(0.2), lambda x, z: gaussian(0.3)(x, z) * laplacian(0.2)(x, z)),
    (ks.Gaussian(0.3) * ks.ArcCosine(1), lambda x, z: gaussian(0.3)(x, z) * arc_cosine(1)(x, z)),
    (ks.Cauchy(0.5) * ks.Chi2(), lambda x, z: cauchy(0.5)(x, z) * chi2(x, z)),
    (2.5 * ks.Matern(1.5, 2.0), lambda x, z: 2.5 * matern(1.5, 2.0)(x, z)),
    (
        0.5 * (ks.Gaussian(0.2) * ks.Cauchy(0.3) * ks.Hellinger() + 3 * ks.Intersection()) + ks.Polynomial(2, 1.0, 0.3),
        lambda x, z: (
            0.5 * (gaussian(0.2)(x, z) * cauchy(0.3)(x, z) * hellinger(x, z) + 3 * intersection(x, z))
            + polynomial(2, 1.0, 0.3)(x, z)
        ),
    ),
]


def label(value):
    return repr(value).replace("\n", " ")[:60] if isinstance(value, ks.Kernel) else ""


@pytest.mark.parametrize("kernel, truth", CASES, ids=label)
def test_conformance(kernel, truth):
    check_kernel(kernel, truth=truth)


@pytest.mark.parametrize("name", ks.names())
def test_registered_defaults_conform(name):
    check_kernel(name)


def test_every_registered_kernel_has_a_truth():
    assert {type(kernel).name for kernel, _ in CASES} >= set(ks.names())
    assert all(hasattr(ks, name) for name in ks.__all__)


@pytest.mark.parametrize("kernel", [ks.SkewedChi2(0.5), ks.SkewedIntersection(0.5)], ids=label)
def test_skewed_kernels_accept_negative_values_above_minus_c(kernel):
    X = np.random.default_rng(1).uniform(-0.45, 1, (10, 3))
    X[2, 1] = 0
    truth = (skewed_chi2 if isinstance(kernel, ks.SkewedChi2) else skewed_intersection)(0.5)
    check_kernel(kernel, X, truth)


def test_wide_sparse_rows():
    """More coordinates and pairs than one block holds, in all container pairs, for one kernel of each code path."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(70, 40)) * (rng.random((70, 40)) < 0.05))
    Z = np.abs(rng.normal(size=(1030, 40)) * (rng.random((1030, 40)) < 0.05))
    Z[500:570] = X
    for kernel in (ks.Laplacian(0.2), ks.Cauchy(0.5), ks.Chi2(), ks.JensenShannon(), ks.Gaussian(0.1), ks.ArcCosine(0)):
        K = kernel.pairwise(X, Z)
        for i, j in zip(rng.integers(0, 70, 40), rng.integers(0, 1030, 40)):
            assert K[i, j] == pytest.approx(kernel.pairwise(X[i : i + 1], Z[j : j + 1])[0, 0], abs=1e-7)
        for A, B in ((sparse.csr_array(X), Z), (X, sparse.csr_array(Z)), (sparse.csr_matrix(X), sparse.csr_array(Z))):
            np.testing.assert_allclose(kernel.pairwise(A, B), K, atol=1e-7)


def test_entries_stored_twice_are_summed():
    A = sparse.csr_array((np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    X = A.toarray()
    for kernel in (ks.Hellinger(), ks.Chi2(), ks.Gaussian(0.1), ks.Laplacian(0.1), ks.SkewedChi2(1.0)):
        np.testing.assert_allclose(kernel.pairwise(A, A), kernel.pairwise(X, X), atol=1e-7)
        draw = kernel.draw(np.random.default_rng(0), 2, 5)
        np.testing.assert_allclose(kernel.features(A, draw), kernel.features(X, draw))
    assert A.nnz == 3


def test_no_rows():
    X = np.ones((3, 2))
    for name in ks.names():
        kernel = ks.get(name).resolve(np.eye(2))
        for empty in (X[:0], sparse.csr_array(X[:0])):
            assert kernel.pairwise(empty, X).shape == (0, 3)
            assert kernel.pairwise(X, empty).shape == (3, 0)
            assert kernel.diag(empty).shape == (0,)
            assert kernel.features(empty, kernel.draw(np.random.default_rng(0), 2, 4)).shape[0] == 0


# ---------------------------------------------------------------- numbers


def test_matern_is_smooth_in_nu_and_survives_overflow():
    X, Z = np.zeros((1, 1)), np.array([[0.0], [1e-12], [1e-6], [0.1], [1.0], [3.0], [40.0], [1e4]])
    for nu in (1.5, 2.5):
        close = ks.Matern(nu + 1e-9, 1.3).pairwise(X, Z)
        np.testing.assert_allclose(close, ks.Matern(nu, 1.3).pairwise(X, Z), atol=1e-7)
    for nu in (0.01, 30.0, 150.0, 500.0):
        k = ks.Matern(nu, 1.0).pairwise(X, Z)[0]
        assert np.isfinite(k).all() and k[0] == 1 and (np.diff(k) <= 1e-12).all() and (k >= 0).all()
        if nu >= 150:  # close to the Gaussian limit
            np.testing.assert_allclose(k, ks.Matern(math.inf, 1.0).pairwise(X, Z)[0], atol=2 / nu)


@pytest.mark.parametrize("offset, tolerance", [(0, 3e-6), (100, 1e-5), (1e4, 3e-4)])
def test_identical_float32_rows_have_kernel_one(offset, tolerance):
    X = (np.random.default_rng(0).normal(size=(50, 30)) + offset).astype(np.float32)
    for kernel in (ks.Gaussian(1 / 30), ks.Gaussian(50.0), ks.SpectralMixture([1.0], [0.0], [0.3])):
        K = kernel.pairwise(X, X.copy())
        np.testing.assert_allclose(np.diag(K), 1, atol=tolerance)
        np.testing.assert_allclose(K, kernel.pairwise(X.astype(float), X.astype(float)), atol=10 * tolerance)


def test_extreme_values_do_not_warn_or_become_nan():
    X = np.array([[0.0, 1e-300], [1e300, 5.0], [1.0, 1e-8]])
    for kernel in (ks.Chi2(), ks.JensenShannon(), ks.Intersection(), ks.ReciprocalSemigroup(1.0)):
        assert np.isfinite(kernel.pairwise(X, X)).all()
    small = np.array([[1e-30, 1.0]], np.float32)
    assert ks.Chi2().pairwise(small, small)[0, 0] == 1


def test_temporaries_stay_small():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(1000, 60)))
    result = X.shape[0] ** 2 * 8
    for kernel in (ks.Laplacian(0.1), ks.Cauchy(0.1), ks.Chi2(), ks.SkewedChi2(1.0), ks.Gaussian(1.0)):
        tracemalloc.start()
        kernel.pairwise(X, X[:, :])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < result + 2 * X.nbytes + 6e6, kernel


# ---------------------------------------------------------------- frequencies


@pytest.mark.parametrize(
    "kernel, density",
    [
        (ks.Chi2(), lambda w: 1 / np.cosh(np.pi * w)),
        (ks.Intersection(), lambda w: 2 / np.pi / (1 + 4 * w**2)),
        (ks.JensenShannon(), lambda w: 2 / np.cosh(np.pi * w) / (np.log(4) * (1 + 4 * w**2))),
    ],
    ids=label,
)
def test_additive_frequencies_have_their_density(kernel, density):
    grid = np.sinh(np.linspace(-6, 6, 20001)) / 2  # to -100 and 100
    cdf = integrate.cumulative_trapezoid(density(grid), grid, initial=0)
    assert cdf[-1] == pytest.approx(1, abs=4e-3)
    w = kernel.draw(np.random.default_rng(3), 1, 20000)["w"]
    assert stats.kstest(w, lambda values: np.interp(values, grid, cdf / cdf[-1])).pvalue > 0.01


@pytest.mark.parametrize(
    "kernel",
    [
        ks.Gaussian(0.4),
        ks.Laplacian(0.4),
        ks.Cauchy(0.4),
        ks.Matern(0.7, 1.5),
        ks.Matern(math.inf, 1.5),
        ks.SpectralMixture(*MIXTURE),
        ks.Gaussian(0.4) * ks.Matern(2.5, 1.5),
    ],
    ids=label,
)
def test_quantiles_have_the_distribution_of_the_frequencies(kernel):
    rng = np.random.default_rng(0)
    W = kernel.frequencies(rng, 4, 4000)
    Q = kernel.quantiles(rng.random((kernel.n_uniforms(4), 4000)), 4)
    assert kernel.is_fourier and W.shape == Q.shape == (4, 4000)
    direction = np.array([0.5, -1.0, 0.3, 2.0])  # a joint law is known from its projections
    assert stats.ks_2samp(direction @ W, direction @ Q).pvalue > 0.01
    assert stats.ks_2samp(np.linalg.norm(W, axis=0), np.linalg.norm(Q, axis=0)).pvalue > 0.01


# ---------------------------------------------------------------- bandwidths


def test_scale_and_median_rules():
    rng = np.random.default_rng(5)
    X = rng.normal(2.0, 3.0, size=(300, 7))
    first = X[np.arange(200) * 300 // 200]  # of 300 rows, from all over
    upper = np.triu_indices(200, 1)
    m2 = np.median(skl.euclidean_distances(first)[upper])
    m1 = np.median(skl.manhattan_distances(first)[upper])
    var = X.var()
    expected = [
        (ks.Gaussian("scale"), 1 / (7 * var)),
        (ks.Gaussian("median"), 1 / (2 * m2**2)),
        (ks.Laplacian("scale"), 1 / (7 * math.sqrt(var))),
        (ks.Laplacian("median"), 1 / m1),
        (ks.Cauchy("scale"), 1 / math.sqrt(7 * var)),
        (ks.Cauchy("median"), 1 / (math.sqrt(2) * m2)),
        (ks.Matern(1.5, "scale"), math.sqrt(7 * var / 2)),
        (ks.Matern(1.5, "median"), m2),
        (ks.Polynomial(2, 1.0, "scale"), 1 / (7 * var)),
    ]
    for kernel, value in expected:
        for rows in (X, X.astype(np.float32), sparse.csr_array(X), sparse.csr_matrix(X)):
            assert getattr(kernel.resolve(rows), kernel.bandwidth) == pytest.approx(value, rel=1e-5)


def test_scale_counts_the_zeros_of_sparse_rows():
    X = np.diag([1.0, 2.0, 3.0, 0.0])
    assert ks.Gaussian("scale").resolve(sparse.csr_array(X)).gamma == pytest.approx(1 / (4 * X.var()))


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("X", [np.array([[1.0, 5.0]]), np.tile([1.0, 5.0], (6, 1)), np.zeros((3, 2))])
def test_rows_that_say_nothing_fall_back_to_one_over_d(rule, X):
    for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        assert ks.Gaussian(rule).resolve(rows).gamma == 0.5
        assert ks.Laplacian(rule).resolve(rows).gamma == 0.5
        assert ks.Cauchy(rule).resolve(rows).gamma == pytest.approx(math.sqrt(0.5))
        assert ks.Matern(1.5, rule).resolve(rows).length == pytest.approx(1.0)


def test_median_of_mostly_equal_rows_is_not_zero():
    X = np.zeros((10, 1))
    X[0] = 2.0
    assert ks.Gaussian("median").resolve(X).gamma == pytest.approx(1 / 8)


def test_compositions_resolve_their_parts():
    X = np.random.default_rng(0).normal(size=(20, 3))
    kernel = 2.0 * (ks.Gaussian("median") + ks.Linear() * ks.Matern(1.5, "scale"))
    resolved = kernel.resolve(X)
    assert resolved.kernel.left.gamma == ks.Gaussian("median").resolve(X).gamma
    assert isinstance(resolved.kernel.right.right.length, float)
    assert kernel.kernel.left.gamma == "median"
    assert clone(resolved).set_params(kernel__left__gamma=3.0).kernel.left.gamma == 3.0


# ---------------------------------------------------------------- registry and bad input


def test_get():
    kernel = ks.Gaussian(0.3)
    assert ks.get(kernel) is kernel
    assert ks.get("laplacian", gamma="median").gamma == "median"
    assert ks.get("matern", gamma=0.5).length == 1.0  # the length of the Gaussian with gamma = 1/2
    assert ks.get("matern", gamma="median").length == "median"
    assert ks.names() == sorted(ks.names())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ks.get("gausian"), "did you mean 'gaussian'"),
        (lambda: ks.get("Gaussian"), "did you mean 'gaussian'"),
        (lambda: ks.get("zzz"), "known are arc_cosine"),
        (lambda: ks.get(3), "kernel must be a name"),
        (lambda: ks.get(ks.Gaussian), "kernel must be a name"),
        (lambda: ks.get("gaussian", gamma=-1), "gamma must be a number > 0"),
        (lambda: ks.get("gaussian", gamma=math.nan), "gamma must be a number > 0"),
        (lambda: ks.get("gaussian", gamma=[1]), "gamma must be a number > 0"),
        (lambda: ks.get("gaussian", gamma=True), "gamma must be a number > 0"),
        (lambda: ks.get("gaussian", gamma="medain"), "gamma of Gaussian must be a number or 'scale' or 'median'"),
        (lambda: ks.get("polynomial", gamma="median"), "gamma of Polynomial must be a number or 'scale'"),
        (lambda: ks.get("chi2", gamma=1.0), "it has no bandwidth"),
        (lambda: ks.get(ks.Gaussian(1.0), gamma=1.0), "gamma must be None when kernel is an object"),
        (lambda: ks.get(ks.Gaussian(-1.0)), "gamma must be a number > 0"),
    ],
)
def test_get_names_the_problem(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "kernel, message",
    [
        (ks.Gaussian("scale"), "call resolve"),
        (ks.Gaussian(None), "gamma"),
        (ks.Laplacian(math.inf), "gamma"),
        (ks.Cauchy("median"), "call resolve"),
        (ks.Matern(1.5, "scale"), "call resolve"),
        (ks.SpectralMixture([0.5, 0.4], [0, 0], [1, 1]), "weights must be non-negative and sum to 1"),
        (ks.SpectralMixture([1.5, -0.5], [0, 0], [1, 1]), "weights"),
        (ks.SpectralMixture([1.0], [0, 0], [1]), "means"),
        (ks.SpectralMixture([1.0], [0], [-1]), "scales"),
        (ks.SpectralMixture([1.0], [[0, 1, 2]], [1]), "means has 3 columns, the rows have 2"),
        (ks.SpectralMixture([math.nan], [0], [1]), "weights"),
        (ks.DotProduct([1.0, -1.0]), "coefficients"),
        (ks.DotProduct([]), "coefficients"),
        (ks.Polynomial(1.5, 1.0, 1.0), "degree"),
        (ks.Polynomial(2, 1.0, "scale"), "call resolve"),
        (ks.SkewedChi2(0), "c must be"),
        (ks.ArcCosine(3), "order"),
        (ks.ArcCosine(None), "order"),
        (ks.Sum(ks.Linear(), "linear"), "right must be a Kernel"),
        (ks.Product(None, ks.Linear()), "left must be a Kernel"),
        (ks.Scale(ks.Linear(), -2.0), "factor"),
        (ks.Scale(3.0, 2.0), "kernel must be a Kernel"),
        (-1.0 * ks.Linear(), "factor"),
        (ks.Linear() + ks.Gaussian("scale"), "call resolve"),
    ],
    ids=str,
)
def test_invalid_parameters_are_named_at_use(kernel, message):
    X = np.ones((2, 2))
    uses = [lambda: kernel.pairwise(X, X), lambda: kernel.diag(X), lambda: kernel.draw(np.random.default_rng(0), 2, 3)]
    for use in uses:
        if "columns" in message and use is uses[1]:
            continue  # the diagonal does not look at the means
        with pytest.raises(ValueError, match=message):
            use()


def test_compositions_need_kernels():
    assert repr(np.float64(2) * ks.Linear()) == repr(2.0 * ks.Linear()) == repr(ks.Linear() * 2)
    with pytest.raises(TypeError):
        ks.Linear() + 1
    with pytest.raises(TypeError):
        ks.Linear() * "a"
    with pytest.raises(ValueError, match="two Fourier kernels"):
        (ks.Linear() * ks.Gaussian(1.0)).frequencies(np.random.default_rng(0), 2, 3)


@pytest.mark.parametrize("name", [name for name in ks.names() if ks.get(name).domain != "real"])
def test_domain_errors_name_the_kernel(name):
    kernel = ks.get(name)
    draw = kernel.draw(np.random.default_rng(0), 2, 3)
    for bad in ([[1.0, -1.5]], [[1.0, math.nan]]):
        for rows in (np.array(bad), sparse.csr_array(bad), sparse.csr_matrix(bad)):
            for use in (kernel.check, kernel.diag, lambda X: kernel.features(X, draw)):
                with pytest.raises(ValueError, match=type(kernel).__name__):
                    use(rows)
    with pytest.raises(ValueError, match=type(kernel).__name__):
        (ks.Gaussian(1.0) * (2.0 * kernel)).pairwise(np.array([[-5.0]]), np.array([[1.0]]))


def test_rows_that_are_not_numbers():
    for bad in ([["a", "b"]], [1.0, 2.0], np.array([[object()]])):
        with pytest.raises(ValueError, match="rows"):
            ks.Gaussian(1.0).pairwise(bad, bad)
    with pytest.raises(ValueError, match="NaN or infinity"):
        ks.Gaussian("scale").resolve([[1.0], [math.nan]])
