"""The checks a feature map must pass."""

from __future__ import annotations

import pickle
import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from kernelstream import kernels

from ._compare import close, rejects

__all__ = ["check_feature_map"]

_SEEDS = 64
_ROUNDING = 1e-7  # of float64 features, relative to the largest


def check_feature_map(feature_map: Any, kernel: Any, X: Any, unbiased: bool = True) -> None:
    """Check a feature map against its kernel and the interface of feature maps.

    ``Z Z'`` is the kernel within the Monte-Carlo error measured over seeds, and that error about halves when the map is
    four times larger; one seed always gives the same map; CSR rows give what dense rows give; float32 stays float32;
    the input is left alone; ``n_out``, the shape of Z and the feature names agree; ``prepare`` and ``build`` give what
    ``fit`` and ``transform`` give, from entries that survive pickling, in any cut of the rows into blocks.

    Parameters
    ----------
    feature_map : FeatureMap
        Its ``random_state``, where it has one, is set by the check.
    kernel : str or Kernel
        The kernel that the map stands for, with a numeric bandwidth.
    X : (n, d) array-like
        A few rows in the kernel's domain, zeros among them.
    unbiased : bool, default True
        Whether ``Z Z'`` is the kernel on average. If False the map is taken to be a projection, like Nyström's: then
        ``K - Z Z'`` must be positive semi-definite, and fall as the map grows.

    Raises
    ------
    AssertionError
        Naming the property that does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import RandomFourier
    >>> from kernelstream.kernels import Gaussian
    >>> from kernelstream.testing import check_feature_map
    >>> X = np.random.default_rng(0).normal(size=(12, 3))
    >>> check_feature_map(RandomFourier(gamma=0.3, n_components=64), Gaussian(gamma=0.3), X)
    """
    X = np.asarray(X, dtype=np.float64)
    K = kernels.get(kernel).pairwise(X, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small, large = _errors(feature_map, X, K), _errors(_grown(feature_map), X, K)
        if unbiased:
            _check_unbiased(small, large, K)
        else:
            _check_projection(small, large, K)
        _check_transformer(feature_map, X)
        _check_containers(feature_map, X)
        _check_parts(feature_map, X)
        _check_rejects(feature_map, X)


def _with_seed(feature_map: Any, seed: int) -> Any:
    feature_map = clone(feature_map)
    return feature_map.set_params(random_state=seed) if "random_state" in feature_map.get_params() else feature_map


def _grown(feature_map: Any) -> Any:
    return clone(feature_map).set_params(n_components=4 * feature_map.n_components)


def _errors(feature_map: Any, X: np.ndarray, K: np.ndarray) -> np.ndarray:
    """``Z Z' - K`` for each of the seeds, (seeds, n, n)."""
    Z = [feature_map.build(feature_map.prepare(X, seed), X.shape[1], X.dtype)(X) for seed in range(_SEEDS)]
    return np.array([z @ z.T - K for z in Z])


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def _check_unbiased(small: np.ndarray, large: np.ndarray, K: np.ndarray) -> None:
    exact = _ROUNDING * np.abs(K).max()
    for errors in (small, large):
        # The mean of s independent errors is sqrt(s) times smaller than one of them, unless they share a bias. Entries
        # of one Gram matrix move together, so that this may be no more than one normal number: four deviations.
        bias, expected = _rms(errors.mean(axis=0)), _rms(errors) / np.sqrt(len(errors))
        assert bias <= 4 * expected + exact, f"biased: the mean error is {bias:.3g}, where chance gives {expected:.3g}"
    if _rms(small) > exact:
        ratio = _rms(large) / _rms(small)
        assert ratio <= 0.7, f"a map four times larger has {ratio:.2f} of the error, not half of it"


def _check_projection(small: np.ndarray, large: np.ndarray, K: np.ndarray) -> None:
    exact = 1e-6 * np.abs(K).max() * len(K)
    for errors in (small, large):
        highest = max(np.linalg.eigvalsh((error + error.T) / 2).max() for error in errors)
        assert highest <= exact, f"Z Z' exceeds K by {highest:.3g} in some direction: not a projection"
    assert _rms(large) <= 0.8 * _rms(small) + exact, (
        f"a map four times larger has {_rms(large) / _rms(small):.2f} of the error"
    )


def _check_transformer(feature_map: Any, X: np.ndarray) -> None:
    before = X.copy()
    X.flags.writeable = False
    try:
        one, two = _with_seed(feature_map, 7), _with_seed(feature_map, 7)
        parameters = repr(one.get_params())
        Z = one.fit_transform(X)
        assert repr(one.get_params()) == parameters, "fit changed the parameters"
        assert isinstance(Z, np.ndarray) and Z.flags.c_contiguous, "features must be a C-contiguous ndarray"
        assert np.array_equal(Z, two.fit(X).transform(X)), "one seed gives two maps"
        assert np.array_equal(Z, one.transform(X)), "transform changes the map"
    finally:
        X.flags.writeable = True
    assert np.array_equal(X, before), "the input was changed"
    n_out = one.mapping_.n_out
    names = one.get_feature_names_out()
    assert Z.shape == (len(X), n_out) == (len(X), len(set(names))), (
        f"{Z.shape[1]} features, n_out = {n_out}, {len(set(names))} feature names"
    )
    if one.mapping_.unit:
        close((Z**2).sum(axis=1), np.ones(len(X)), _ROUNDING, "unit is set, but norms differ from 1")


def _check_containers(feature_map: Any, X: np.ndarray) -> None:
    expected = _with_seed(feature_map, 7).fit_transform(X)
    gram = expected @ expected.T
    for dtype in (np.float64, np.float32):
        rows = X.astype(dtype)
        for container in (np.asarray, sparse.csr_matrix, sparse.csr_array):
            name = f"{container.__name__} rows in {dtype.__name__}"
            A: Any = container(rows)
            Z = _with_seed(feature_map, 7).fit(A).transform(A)
            assert type(Z) is np.ndarray and Z.dtype == dtype, f"{name}: features are {type(Z).__name__}, {Z.dtype}"
            kept = A.toarray() if sparse.issparse(A) else A
            assert np.array_equal(kept, rows), f"{name} were changed"
            if dtype == np.float64:
                close(Z, expected, 100 * _ROUNDING, f"{name} give other features")
            else:
                # Large phases lose digits in float32, and eigenvectors may turn; what must stay is the inner product.
                error = np.median(np.abs(Z @ Z.T - gram))
                assert error <= 1e-3 * np.abs(gram).max(), f"{name} change Z Z' by {error:.3g}"
    # One fitted map serves both precisions.
    fitted = _with_seed(feature_map, 7).fit(X)
    assert fitted.transform(X.astype(np.float32)).dtype == np.float32, "float32 rows must give float32 features"


def _check_parts(feature_map: Any, X: np.ndarray) -> None:
    d = X.shape[1]
    fitted = _with_seed(feature_map, 7).fit(X)
    Z = fitted.transform(X)
    entries = fitted.prepare(X if fitted.needs_data else None, 7)
    for key, value in entries.items():
        assert isinstance(key, str), f"key {key!r} of the entries is not a string"
        assert isinstance(value, (int, float, str, np.ndarray)), f"entry {key!r} is a {type(value).__name__}"
    mapping = fitted.build(pickle.loads(pickle.dumps(entries)), d, X.dtype)
    assert mapping.n_out == Z.shape[1] and mapping.dtype == X.dtype, "build gives another shape or type than fit"
    assert np.array_equal(mapping(X), Z), "prepare and build differ from fit and transform"
    again = pickle.loads(pickle.dumps(mapping))
    for size in (1, 5):
        blocks = np.concatenate([again(X[i : i + size]) for i in range(0, len(X), size)])
        close(blocks, Z, 100 * _ROUNDING, f"blocks of {size} rows give other features")
    if fitted.extends:
        wide = np.hstack([X, np.zeros((len(X), 3))])
        close(fitted.build(entries, d + 3, X.dtype)(wide), Z, 100 * _ROUNDING, "zero columns change the features")


def _check_rejects(feature_map: Any, X: np.ndarray) -> None:
    fitted = _with_seed(feature_map, 7).fit(X)
    broken = X.copy()
    broken[0, 0] = np.nan
    for bad, word in ((broken, "NaN"), (np.hstack([X, X]), "features"), (X[:0], "0 sample"), (X[0], "2D")):
        rejects(partial(fitted.transform, bad), word)
    for size in (0, -1, 1.5) if "n_components" in fitted.get_params() else ():
        rejects(partial(clone(feature_map).set_params(n_components=size).fit, X), "n_components")
