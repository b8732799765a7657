"""The checks a kernel must pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from kernelstream import kernels

from ._compare import close, rejects

__all__ = ["check_kernel"]

_DRAWS = 12800
_ROUNDING = 1e-7  # of float64 results, relative to the largest entry


def check_kernel(
    kernel: str | kernels.Kernel, X: Any = None, truth: Callable[[np.ndarray, np.ndarray], float] | None = None
) -> None:
    """Check a kernel against its definition and the kernel interface.

    The Gram matrix is symmetric, positive semi-definite, agrees with ``diag`` and with `truth`, and does not depend on
    how the rows are cut into blocks; float32 stays float32 and agrees with float64; CSR matrices and arrays give what
    dense rows give; inputs are left alone; rows outside the domain are rejected. Random features, where the kernel has
    them, average to the kernel within five standard errors, and their error halves with four times as many draws.

    Parameters
    ----------
    kernel : str or Kernel
        A bandwidth given by a rule is estimated on ``X``.
    X : (n, d) array-like, optional
        A few rows to test on, zeros among them.
    truth : callable, optional
        ``truth(x, z)``, the kernel of two rows of numbers as its definition says.

    Raises
    ------
    AssertionError
        Naming the property that does not hold.

    Examples
    --------
    >>> from kernelstream.testing import check_kernel
    >>> check_kernel("gaussian")
    """
    kernel = kernels.get(kernel)
    X = _example_rows(kernel) if X is None else np.asarray(X, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = _check_resolve(kernel, X)
        K = _check_gram(kernel, X)
        if truth is not None:
            expected = np.array([[truth(x, z) for z in X] for x in X])
            close(K, expected, _ROUNDING, "pairwise differs from the definition")
        _check_containers(kernel, X, K)
        _check_rejects(kernel, X)
        if kernel.has_features:
            _check_features(kernel, X, K)


def _example_rows(kernel: kernels.Kernel) -> np.ndarray:
    """Rows with zeros, a row of zeros and a row that occurs twice, made non-negative if the kernel asks for it."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12, 4)) * (rng.random((12, 4)) > 0.3)
    X[3], X[8] = 0, X[2]
    try:
        kernel.check(X)
    except ValueError:
        X = np.abs(X)
    return X


def _check_resolve(kernel: kernels.Kernel, X: np.ndarray) -> kernels.Kernel:
    parameters = repr(kernel.get_params())
    resolved = kernel.resolve(X)
    resolved.validate()
    assert repr(kernel.get_params()) == parameters, "resolve changed the kernel"
    assert resolved.resolve(2 * X) is resolved, "resolving a resolved kernel must return it unchanged"
    if resolved.bandwidth is not None:
        value = getattr(resolved, resolved.bandwidth)
        assert isinstance(value, float) or np.isreal(value), f"resolved bandwidth {value!r} is not a number"
    assert repr(clone(resolved).get_params()) == repr(resolved.get_params()), "clone differs"
    return resolved


def _check_gram(kernel: kernels.Kernel, X: np.ndarray) -> np.ndarray:
    before = X.copy()
    K = kernel.pairwise(X, X)
    n = len(X)
    assert isinstance(K, np.ndarray) and K.dtype == np.float64 and K.flags.c_contiguous, "pairwise must give an ndarray"
    close(K, K.T, _ROUNDING, "the Gram matrix is not symmetric")
    least = np.linalg.eigvalsh((K + K.T) / 2).min()
    assert least >= -10 * _ROUNDING * np.abs(K).max() * n, f"negative eigenvalue {least:.3g}"
    close(kernel.diag(X), np.diag(K).copy(), _ROUNDING, "diag differs from the diagonal of pairwise")
    for cut in (1, 5, n - 1, n):
        blocks = [[kernel.pairwise(x, z) for z in (X[:cut], X[cut:])] for x in (X[:cut], X[cut:])]
        close(np.block(blocks), K, _ROUNDING, f"rows cut at {cut} give another Gram matrix")
    # Rows of another layout and of other numbers.
    close(kernel.pairwise(np.asfortranarray(X), X[::-1]), K[:, ::-1], _ROUNDING, "memory layout matters")
    whole = np.abs(np.round(X)).astype(np.int64)
    close(kernel.pairwise(whole, whole), kernel.pairwise(whole * 1.0, whole * 1.0), _ROUNDING, "integers differ")
    assert np.array_equal(X, before), "pairwise or diag changed its input"
    return K


def _check_containers(kernel: kernels.Kernel, X: np.ndarray, K: np.ndarray) -> None:
    for dtype, tolerance in ((np.float64, _ROUNDING), (np.float32, 2e-5)):
        rows = X.astype(dtype)
        containers = {"dense": rows, "CSR matrix": sparse.csr_matrix(rows), "CSR array": sparse.csr_array(rows)}
        for name, A in containers.items():
            for other, B in containers.items():
                result = kernel.pairwise(A, B)
                assert type(result) is np.ndarray and result.dtype == dtype, f"{name} {dtype.__name__}: not kept"
                close(result, K, tolerance, f"{name} and {other} rows in {dtype.__name__} differ")
            diagonal = kernel.diag(A)
            assert diagonal.dtype == dtype, f"diag of {name} {dtype.__name__}: dtype not kept"
            close(diagonal, np.diag(K), tolerance, f"diag of {name} rows in {dtype.__name__} differs")
            kept = A.toarray() if sparse.issparse(A) else A
            assert (kept == X.astype(dtype)).all(), f"pairwise changed its {name} input"


def _check_rejects(kernel: kernels.Kernel, X: np.ndarray) -> None:
    for bad in (X[0], X[:, :, None]):
        rejects(partial(kernel.pairwise, bad, X), "rows")
    rejects(partial(kernel.pairwise, np.hstack([X, X]), X), "width")
    if kernel.domain != "real":
        outside = X.copy()
        outside[1, 0] = -getattr(kernel, "c", 0) - 1
        for rows in (outside, sparse.csr_array(outside)):
            rejects(partial(kernel.pairwise, rows, X), type(kernel).__name__)
            rejects(partial(kernel.pairwise, X, rows), type(kernel).__name__)


def _check_features(kernel: kernels.Kernel, X: np.ndarray, K: np.ndarray) -> None:
    (n, d), D = X.shape, _DRAWS
    before = X.copy()
    draw = kernel.draw(np.random.default_rng(0), d, D)
    again = kernel.draw(np.random.default_rng(0), d, D)
    assert draw.keys() == again.keys() and all((draw[k] == again[k]).all() for k in draw), "a seed must fix the draw"
    assert all(values.shape[-1] == D for values in draw.values()), "the last axis of a draw must be the draws"
    Z = kernel.features(X, draw)
    assert Z.dtype == np.float64 and Z.ndim == 2 and Z.shape[0] == n and Z.shape[1] % D == 0, "features: wrong shape"
    _check_unbiased(Z.reshape(n, -1, D) * np.sqrt(D), K)
    # Every draw stands for itself: the first draws alone give the same numbers, up to the scale.
    few = {key: values[..., :32] for key, values in draw.items()}
    Z = kernel.features(X, few)
    part = kernel.features(X, draw).reshape(n, -1, D)[:, :, :32] * np.sqrt(D / 32)
    close(Z, part.reshape(n, -1), _ROUNDING, "the features of a draw depend on the others")
    for dtype, tolerance in ((np.float64, _ROUNDING), (np.float32, None)):
        rows = X.astype(dtype)
        expected = kernel.features(rows, few)
        assert expected.dtype == dtype, f"features: {dtype.__name__} is not kept"
        # Phases of heavy-tailed frequencies lose digits in float32, the features of most draws must not.
        error = np.median(np.abs(expected - Z))
        assert error <= (tolerance or 1e-4) * np.abs(Z).max(), f"features in {dtype.__name__} differ by {error:.3g}"
        for container in (sparse.csr_matrix, sparse.csr_array):
            result = kernel.features(container(rows), few)
            assert type(result) is np.ndarray and result.dtype == dtype, "features of CSR rows must be dense"
            error = np.median(np.abs(result - expected))
            assert error <= (tolerance or 1e-4) * np.abs(Z).max(), f"features of CSR rows differ by {error:.3g}"
    assert np.array_equal(X, before), "features changed its input"


def _check_unbiased(Z: np.ndarray, K: np.ndarray) -> None:
    """Single-draw features (n, r, D): their inner products estimate K, and are independent."""
    D = Z.shape[-1]
    estimates = np.einsum("ird,jrd->ijd", Z, Z)
    errors = estimates - K[:, :, None]
    standard_error = errors.std(axis=-1) / np.sqrt(D)
    excess = np.abs(errors.mean(axis=-1)) - 5 * standard_error
    assert excess.max() <= _ROUNDING * np.abs(K).max(), (
        f"features are biased: Z Z' is {(np.abs(errors.mean(axis=-1)) / (standard_error + 1e-300)).max():.1f} standard "
        "errors from K"
    )
    sizes = (1, 4, 16, 64)
    spread = [np.sqrt(np.mean(errors.reshape(*K.shape, -1, size).mean(axis=-1) ** 2)) for size in sizes]
    if spread[0] > _ROUNDING * np.abs(K).max():  # else the map is exact
        for size, small, large in zip(sizes, spread, spread[1:]):
            ratio = large / small
            assert 0.4 <= ratio <= 0.6, f"from {size} to {4 * size} draws the error falls by {ratio:.2f}, not by 1/2"
