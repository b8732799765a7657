"""The compiled vector functions against float64 truths, at the edges of their ranges and of their shapes."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream import engine

core = pytest.importorskip("kernelstream._core")

DTYPES = (np.float32, np.float64)
# Largest error of sin and cos relative to 1, and of exp relative to its value.
TRIG_ERROR = {np.float32: 2e-7, np.float64: 1e-15}
EXP_ERROR = {np.float32: 2e-7, np.float64: 5e-16}


def trig(P, scale=1.0):
    Z = np.full((P.shape[0], 2 * P.shape[1]), np.nan, P.dtype)
    core.trig(P, Z, scale)
    return Z


def assert_trig(P):
    exact = P.astype(np.float64)  # the truth is that of the rounded argument
    truth = np.hstack([np.cos(exact), np.sin(exact)])
    np.testing.assert_allclose(trig(P), truth, rtol=0, atol=TRIG_ERROR[P.dtype.type])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1e3, 9.9e3])
def test_trig_accuracy(dtype, size):
    rng = np.random.default_rng(0)
    assert_trig(rng.uniform(-size, size, (40, 1000)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_trig_near_multiples_of_half_pi(dtype):
    n = np.arange(-6000, 6001)
    assert_trig((n * (np.pi / 2)).astype(dtype)[None])
    assert_trig(np.nextafter((n * (np.pi / 2)).astype(dtype), dtype(np.inf))[None])


@pytest.mark.parametrize("dtype", DTYPES)
def test_trig_edges(dtype):
    tiny = np.finfo(dtype).tiny
    values = [0.0, -0.0, tiny, -tiny, tiny / 4, 1e4, 1e5, -1e5, 1.0001e5, 1e6, -1e9, 1e20, np.finfo(dtype).max]
    P = np.array([values], dtype)
    assert_trig(P)
    D = P.shape[1]
    np.testing.assert_array_equal(trig(P)[0, D : D + 2], [0, 0])
    bad = trig(np.array([[np.nan, np.inf, -np.inf, 1.0]], dtype))
    assert np.isnan(bad[0, [0, 1, 2, 4, 5, 6]]).all()
    np.testing.assert_allclose(bad[0, [3, 7]], [np.cos(1), np.sin(1)], atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 15), (3, 16), (2, 17), (5, 33), (0, 4), (4, 0), (0, 0)])
def test_trig_shapes_and_scale(dtype, shape):
    P = np.random.default_rng(1).normal(size=shape).astype(dtype)
    truth = 0.25 * np.hstack([np.cos(P), np.sin(P)])
    np.testing.assert_allclose(trig(P, 0.25), truth, atol=TRIG_ERROR[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_trig_of_an_element_ignores_its_neighbours(dtype):
    P = np.random.default_rng(2).normal(scale=5, size=(1, 64)).astype(dtype)
    alone = trig(P)
    P[0, 10] = 1e8
    together = trig(P)
    keep = np.arange(128) % 64 != 10
    np.testing.assert_array_equal(alone[:, keep], together[:, keep])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 16, 1000])
def test_exp_accuracy(dtype, n):
    largest = 80 if dtype is np.float32 else 700
    X = np.random.default_rng(n).uniform(-largest, largest, n).astype(dtype)
    truth = np.exp(-X.astype(np.float64))
    core.exp_scaled(X, 1.0, clip=False)
    np.testing.assert_allclose(X, truth, rtol=EXP_ERROR[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_is_a_gaussian_kernel(dtype):
    D2 = np.random.default_rng(0).chisquare(5, (20, 30)).astype(dtype)
    truth = np.exp(-0.3 * D2.astype(np.float64))
    core.exp_scaled(D2, 0.3)
    np.testing.assert_allclose(D2, truth, rtol=0, atol=TRIG_ERROR[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_edges(dtype):
    X = np.array([0.0, -0.0, -1e-9, -5.0, 1e30, np.inf, np.nan, -np.inf], dtype)
    clipped = X.copy()
    core.exp_scaled(clipped, 2.0)
    np.testing.assert_array_equal(clipped, [1, 1, 1, 1, 0, 0, np.nan, 1])
    free = X.copy()
    core.exp_scaled(free, 2.0, clip=False)
    np.testing.assert_allclose(free, [1, 1, 1, np.exp(10), 0, 0, np.nan, np.inf], rtol=1e-6)
    flat = X[:5].copy()
    core.exp_scaled(flat, 0.0)
    np.testing.assert_array_equal(flat, np.ones(5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_of_all_numbers(dtype):
    """From where it is 0 to where it overflows, the end in small steps: never NaN, and inf only beyond the range."""
    limits = np.finfo(dtype)
    low, high = np.log(float(limits.tiny)), np.log(float(limits.max))
    X = np.concatenate([np.linspace(low - 1, high + 1, 20001), np.linspace(high - 1, high, 20001)]).astype(dtype)
    with np.errstate(over="ignore"):
        truth = np.exp(X.astype(np.longdouble))
    found = -X
    core.exp_scaled(found, 1.0, clip=False)
    normal, beyond = truth > 3 * limits.tiny, truth > limits.max
    np.testing.assert_allclose(found[normal & ~beyond], truth[normal & ~beyond].astype(float), rtol=EXP_ERROR[dtype])
    assert np.isinf(found[beyond]).all()
    assert ((found[~normal] >= 0) & (found[~normal] <= 3.01 * limits.tiny)).all()


@pytest.mark.parametrize("name", ["python", "native"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_below(name, dtype):
    """Exactly below 2^exponent, wherever the largest is; by the largest exponent, whether all numbers are finite."""
    ops, most = engine.get(name), np.finfo(dtype).maxexp
    for exponent in (-3, 0, 7, 50, most):
        edge = np.asarray(np.inf if exponent == most else 2.0**exponent, dtype)
        below = np.nextafter(edge, np.asarray(0, dtype))
        for n in [0, 1, 2, 3, 5, 17, 33, 1000]:
            X = np.full(n, below, dtype)
            X[::2] = -below
            assert ops.all_below(X, exponent)
            for position in {0, n // 2, n - 1} if n else ():
                for bad in [edge, -edge, 2 * edge, np.nan, -np.nan, np.inf, -np.inf]:
                    Y = X.copy()
                    Y[position] = bad
                    assert not ops.all_below(Y, exponent)
                    assert not ops.all_below(Y[None], exponent)
    subnormal = np.array([np.finfo(dtype).smallest_subnormal, 0.0, -0.0], dtype)
    subnormal.flags.writeable = False
    assert ops.all_below(subnormal, most)


def csr_matmul(A, W, index=np.int32):
    out = np.full((A.shape[0], W.shape[1]), np.nan, W.dtype)
    core.csr_matmul(A.data, A.indices.astype(index), A.indptr.astype(index), W, out)
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("m, d, D", [(1, 5, 1), (1, 123, 1000), (7, 20, 63), (300, 30, 200), (1100, 3, 64), (5, 4, 97)])
def test_csr_matmul(dtype, index, m, d, D):
    rng = np.random.default_rng(m)
    A = sp.random_array((m, d), density=0.3, rng=rng, dtype=dtype, format="csr")
    W = rng.normal(size=(d, D)).astype(dtype)
    truth = A.toarray().astype(np.float64) @ W.astype(np.float64)
    np.testing.assert_allclose(csr_matmul(A, W, index), truth, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_csr_matmul_rows_do_not_depend_on_the_block(dtype):
    rng = np.random.default_rng(0)
    A = sp.random_array((200, 10), density=0.5, rng=rng, dtype=dtype, format="csr")
    W = rng.normal(size=(10, 150)).astype(dtype)
    together = csr_matmul(A, W)
    np.testing.assert_array_equal(together, np.vstack([csr_matmul(A[i : i + 1], W) for i in range(200)]))


def test_csr_matmul_of_nothing():
    W = np.ones((4, 70), np.float32)
    assert (csr_matmul(sp.csr_array((3, 4), dtype=np.float32), W) == 0).all()
    assert csr_matmul(sp.csr_array((0, 4), dtype=np.float32), W).shape == (0, 70)
    assert csr_matmul(sp.csr_array((3, 4), dtype=np.float32), W[:, :0].copy()).shape == (3, 0)


def test_csr_matmul_unsorted_duplicates():
    data, indices, indptr = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2], np.int32), np.array([0, 3], np.int32)
    out = np.empty((1, 2))
    core.csr_matmul(data, indices, indptr, np.arange(6.0).reshape(3, 2), out)
    np.testing.assert_array_equal(out, [[16, 22]])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(
    "indices, indptr",
    [
        ([0, 3], [0, 1, 2]),  # one past the last column
        ([0, -1], [0, 1, 2]),
        ([0, 2**31 - 1], [0, 1, 2]),
        ([0, 1], [0, 1, 3]),  # past the stored entries
        ([0, 1], [0, 2, 1]),  # decreasing
        ([0, 1], [-1, 1, 2]),
        ([0, 1], [0, -5, 2]),
    ],
)
def test_csr_matmul_out_of_range(index, indices, indptr):
    out = np.zeros((2, 5))
    with pytest.raises(ValueError, match="out of range"):
        core.csr_matmul(np.ones(2), np.array(indices, index), np.array(indptr, index), np.ones((3, 5)), out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 37, 5), (4, 16, 3), (9, 64, 40)])
def test_exponentials_of_distances(dtype, norm, shape):
    n, m, d = shape
    rng = np.random.default_rng(0)
    X, S, A = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype), rng.normal(size=(2, m))
    X[0] = S[0]  # the distance 0
    K = np.array([[math.exp(-0.3 * np.linalg.norm(x.astype(float) - s, ord=norm)) for s in S] for x in X])
    for ops in (engine.get("python"), engine.get("native")):
        tiles = ops.tiles(S)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(ops.exponential(X, tiles, m, norm, 0.3), K, rtol=50 * eps)
        found = ops.exponential_sums(X, tiles, A, norm, 0.3)
        np.testing.assert_allclose(found, K @ A.T, rtol=0, atol=50 * eps * np.abs(A).sum())
        each = [ops.exponential_sums(X[i : i + 1], tiles, A, norm, 0.3) for i in range(n)]
        np.testing.assert_array_equal(np.concatenate(each), found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 37, 5), (4, 16, 3), (9, 64, 40)])
def test_a_mixture_of_exponentials_by_both_norms(dtype, shape):
    n, m, d = shape
    rng = np.random.default_rng(0)
    X, U, S, V = (rng.normal(size=(rows, d)).astype(dtype) for rows in (n, n, m, m))
    X[0] = S[0]
    away, apart = (np.float64(a)[:, None] - np.float64(b) for a, b in ((X, S), (U, V)))
    K = 0.3 * np.exp(-np.linalg.norm(away, axis=2)) + 0.7 * np.exp(-np.abs(apart).sum(axis=2))
    for ops in (engine.get("python"), engine.get("native")):
        found = ops.exponential_mixture((X, U), (ops.tiles(S), ops.tiles(V)), m, 0.3)
        np.testing.assert_allclose(found, K, rtol=50 * np.finfo(dtype).eps)
        assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, cut, d", [(1, 0, 2), (7, 0, 3), (16, 0, 1), (37, 16, 3), (100, 48, 5)])
def test_a_square_of_mixtures(dtype, n, cut, d):
    rng = np.random.default_rng(0)
    rows = tuple(rng.normal(size=(n, d)).astype(dtype) for _ in range(2))
    for ops in (engine.get("python"), engine.get("native")):
        K, tiled = np.full((n, n), np.nan, dtype), tuple(map(ops.tiles, rows))
        for part in (slice(0, cut), slice(cut, n)):
            ops.exponential_square(K, rows, tiled, 0.3, part)
        np.testing.assert_array_equal(K, ops.exponential_mixture(rows, tiled, n, 0.3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, C", [(1, 1), (3, 2), (4, 1), (9, 3), (70, 1), (1030, 2), (2055, 1)])
def test_products_with_a_symmetric_matrix(dtype, n, C):
    rng = np.random.default_rng(0)
    K, diagonal, V = rng.normal(size=(n, n)).astype(dtype), rng.normal(size=n), rng.normal(size=(n, C))
    below = np.tril(K, -1).astype(np.float64)
    K[np.triu_indices(n)] = np.nan  # is not looked at
    for ops in (engine.get("python"), engine.get("native")):
        found = ops.symmetric_product(K, diagonal, V)
        np.testing.assert_allclose(found, (below + below.T + np.diag(diagonal)) @ V, rtol=1e-12, atol=1e-11)


# ---------------------------------------------------------------- what does not fit
P, LOCKED, OUT = np.zeros((2, 3), np.float32), np.zeros((2, 6), np.float32), np.zeros((2, 5))
LOCKED.flags.writeable = False
CSR, W = (np.ones(2), np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32)), np.ones((3, 5))
TILES, A, K = np.zeros((1, 48), np.float32), np.zeros((1, 10)), np.zeros((2, 10), np.float32)
S2 = np.zeros((2, 2), np.float32)
REFUSED = [
    (TypeError, "", lambda: core.trig(P, np.zeros((2, 6)), 1.0)),  # float64 output
    (TypeError, "", lambda: core.trig(P, np.zeros((2, 12), np.float32)[:, ::2], 1.0)),  # strided output
    (TypeError, "", lambda: core.trig(P.astype(np.float16), np.zeros((2, 6), np.float16), 1.0)),
    (TypeError, "", lambda: core.trig(P[0], np.zeros(6, np.float32), 1.0)),
    (TypeError, "", lambda: core.trig(P, LOCKED, 1.0)),
    (ValueError, "trig", lambda: core.trig(P, np.zeros((2, 5), np.float32), 1.0)),
    (ValueError, "trig", lambda: core.trig(P, np.zeros((3, 6), np.float32), 1.0)),
    (TypeError, "", lambda: core.exp_scaled(np.zeros(3, np.int64), 1.0)),
    (TypeError, "", lambda: core.exp_scaled(np.zeros((4, 4))[:, :2], 1.0)),
    *((ValueError, "c must be", lambda c=c: core.exp_scaled(np.zeros(3), c)) for c in (-1.0, np.nan, np.inf)),
    *((TypeError, "", lambda bad=bad: core.all_below(bad, 1)) for bad in (
        np.zeros(3, int), np.zeros(3, np.float16), np.zeros((4, 4))[:, :2], [1.0], "nan", None)),
    (TypeError, "", lambda: core.csr_matmul(np.ones(2, np.float32), *CSR[1:], W, OUT)),
    (TypeError, "", lambda: core.csr_matmul(*CSR[:2], CSR[2].astype(np.int64), W, OUT)),
    (TypeError, "", lambda: core.csr_matmul(*CSR, np.asfortranarray(W), OUT)),
    (ValueError, "shapes", lambda: core.csr_matmul(*CSR, W, np.zeros((3, 5)))),
    (ValueError, "shapes", lambda: core.csr_matmul(*CSR, W, np.zeros((2, 4)))),
    (ValueError, "shapes", lambda: core.csr_matmul(np.ones(3), *CSR[1:], W, OUT)),
    (ValueError, "exponential", lambda: core.exponential(P, TILES, np.zeros((2, 17), np.float32), 1, 1.0)),
    (ValueError, "exponential", lambda: core.exponential(P, TILES, K, 3, 1.0)),
    (ValueError, "exponential", lambda: core.exponential(P, TILES, K, 1, -1.0)),
    (ValueError, "exponential", lambda: core.exponential_mixture(P, P, TILES, TILES[:, :16], K, 0.5)),
    (ValueError, "exponential", lambda: core.exponential_mixture(P, P[:1], TILES, TILES, K, 0.5)),
    (ValueError, "exponential", lambda: core.exponential_square(P, P, TILES, TILES, S2, 0.5, 1)),  # no first of a tile
    (ValueError, "exponential", lambda: core.exponential_square(P[:1], P[:1], TILES, TILES, S2, 0.5, 0)),  # nor its end
    (ValueError, "exponential", lambda: core.exponential_square(P, P[:1], TILES, TILES, S2, 0.5, 0)),
    (ValueError, "exponential", lambda: core.exponential_square(P, P, TILES, TILES, S2, 0.5, 16)),
    (ValueError, "exponential", lambda: core.exponential_square(P, P, TILES[:, :16], TILES, S2, 0.5, 0)),
    (ValueError, "symmetric", lambda: core.symmetric_product(S2, np.ones(2), np.ones((1, 3)), np.ones((1, 3)))),
    (ValueError, "symmetric", lambda: core.symmetric_product(S2, np.ones(3), np.ones((1, 2)), np.ones((1, 2)))),
    (ValueError, "symmetric", lambda: core.symmetric_product(P, np.ones(2), np.ones((1, 2)), np.ones((1, 2)))),
    (ValueError, "exponential", lambda: core.exponential_sums(P, TILES[:, :16], A, np.zeros((2, 1)), 1, 1.0)),
    (ValueError, "exponential", lambda: core.exponential_sums(P, TILES, A, np.zeros((1, 1)), 2, 1.0)),
    (ValueError, "exponential", lambda: core.exponential_sums(P, TILES, A, np.zeros((2, 1)), 0, 1.0)),
    (ValueError, "exponential", lambda: core.exponential_sums(P, TILES, A, np.zeros((2, 1)), 2, np.inf)),
]  # fmt: skip


@pytest.mark.parametrize("error, words, call", REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(error, words, call):
    with pytest.raises(error, match=words):
        call()
