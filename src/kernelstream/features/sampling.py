"""Frequency matrices (d, D) of a shift-invariant kernel: independent, orthogonal, structured, quasi-Monte-Carlo.

Every matrix is drawn in float64 from a seed and rounded to the wanted type at the end, so that float32 and float64
maps of one seed are the same map. A kernel's part is one of two laws:

* *radial* (isotropic kernels): ``w = s g`` with ``g ~ N(0, I)`` and an independent scale ``s > 0``;
* *quantile* (for points of the unit cube): coordinates are inverse CDFs of uniform numbers, with one extra uniform
  number where the coordinates share something (the scale of a Matérn kernel, the component of a mixture).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import hadamard
from scipy.special import chdtri, ndtri

from kernelstream.random import generator

SAMPLINGS = ("iid", "orthogonal", "structured", "qmc")
# What all coordinates of a frequency share is drawn from a stream that no coordinate can have.
SHARED = 2**64 - 1
# Below this size the signs of a Hadamard block give too few directions to pass for Gaussian ones (with 2 coordinates,
# only the diagonals), so shorter rows are padded up to it.
MIN_HADAMARD = 64
SOBOL_BITS = 30
SOBOL_DIMENSIONS = 21201

# Kernels whose frequencies have independent, identically distributed coordinates.
INDEPENDENT = ("gaussian", "laplacian", "cauchy")


def frequencies(kernel: Any, seed: int, d: int, D: int, sampling: str = "iid", dtype: Any = np.float64) -> np.ndarray:
    """Frequencies of ``kernel`` by one of the four samplings, as a C-contiguous (d, D) array of type ``dtype``."""
    if sampling not in SAMPLINGS:
        raise ValueError(f"sampling must be one of {', '.join(SAMPLINGS)}, got {sampling!r}")
    if not kernel.is_fourier:
        raise ValueError(f"the {kernel.name} kernel has no Fourier frequencies (it is not shift invariant)")
    draw = {"iid": independent, "orthogonal": orthogonal, "structured": structured, "qmc": quasi}[sampling]
    return np.ascontiguousarray(draw(kernel, seed, d, D), dtype=dtype)


def extends(kernel: Any, sampling: str) -> bool:
    """Whether frequencies for a wider input contain those for a narrower one, so that a stream's width may grow."""
    return sampling in ("iid", "qmc") and kernel.name in (*INDEPENDENT, "matern")


def independent(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """D independent frequencies. Row i (input coordinate i) depends on (seed, i) alone wherever the law allows it."""
    if kernel.name in INDEPENDENT:
        W = np.empty((d, D))
        for i in range(d):
            W[i] = kernel.frequencies(generator(seed, i), 1, D)[0]
        return W
    if kernel.name == "matern":
        W = np.empty((d, D))
        for i in range(d):
            generator(seed, i).standard_normal(out=W[i])
        W *= _radial(kernel)(generator(seed, SHARED).random(D))
        return W
    return np.asarray(kernel.frequencies(generator(seed), d, D))


def orthogonal(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """Blocks of d orthogonal directions, each with the norm of an independent frequency [1]_.

    References
    ----------
    .. [1] Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal random features, NeurIPS 2016.
    """
    scale = _radial(kernel, "orthogonal")
    rng = generator(seed)
    W = np.empty((d, D))
    for start in range(0, D, d):
        width = min(d, D - start)
        Q, R = np.linalg.qr(rng.standard_normal((d, width)))
        # QR fixes the signs of Q by convention; those of R's diagonal make it uniform on the orthogonal group.
        W[:, start : start + width] = Q * np.sign(np.diag(R))
    W *= np.sqrt(rng.chisquare(d, D)) * scale(rng.random(D))
    return W


def structured(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """Blocks ``H D1 H D2 H D3`` of Hadamard matrices H and random signs D1, D2, D3, with norms as in `orthogonal` [1]_.

    The blocks live in the next power of two n >= d; the first d coordinates of a Gaussian vector of R^n are Gaussian,
    so padding does not bias the kernel, but directions are exactly orthogonal only where d = n.

    References
    ----------
    .. [1] Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal random features, NeurIPS 2016, section 4.
    """
    scale = _radial(kernel, "structured")
    rng = generator(seed)
    n = max(MIN_HADAMARD, 1 << (d - 1).bit_length())
    W = np.empty((d, D))
    for start in range(0, D, n):
        width = min(n, D - start)
        signs = rng.integers(0, 2, (3, n)) * 2.0 - 1.0
        # Columns of the block (H D1 H D2 H D3)' cut to d coordinates: D3 H D2 H D1 H applied to unit vectors.
        block = np.eye(n, width)
        for s in signs:
            block = _hadamard(block) * s[:, None]
        W[:, start : start + width] = block[:d]
    W *= np.sqrt(rng.chisquare(n, D)) * scale(rng.random(D))
    return W


def _hadamard(A: np.ndarray) -> np.ndarray:
    """Orthonormal Hadamard transform of the columns of A (n, m), n a power of two, as two small products."""
    n, m = A.shape
    a = 1 << (n.bit_length() - 1) // 2
    b = n // a
    # H_n = H_a (x) H_b: reshape the row index to (a, b) and transform each part.
    out = np.tensordot(hadamard(a, dtype=float), A.reshape(a, b, m), axes=(1, 0))
    out = np.matmul(hadamard(b, dtype=float), out)
    return out.reshape(n, m) / np.sqrt(n)


def quasi(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """Inverse CDFs of the first D points of a scrambled Sobol sequence [1]_.

    References
    ----------
    .. [1] Avron, Sindhwani, Yang, Mahoney: Quasi-Monte Carlo feature maps for shift-invariant kernels, JMLR 2016.
    """
    law, extra = _quantile(kernel)
    if d + extra > SOBOL_DIMENSIONS:
        raise ValueError(f"sampling='qmc' allows at most {SOBOL_DIMENSIONS - extra} input columns, got {d}")
    return law(scrambled_sobol(seed, d + extra, D))


def scrambled_sobol(seed: int, d: int, D: int) -> np.ndarray:
    """The first D points of a Sobol sequence, scrambled by a random matrix and shift per dimension [1]_, as (d, D).

    The scrambling of dimension i depends on (seed, i) alone, so that points of more dimensions extend those of fewer.

    References
    ----------
    .. [1] Matoušek: On the L2-discrepancy for anchored boxes, Journal of Complexity 1998.
    """
    from scipy.stats import qmc  # slow to import, and wanted only here

    sobol = qmc.Sobol(d, scramble=False, bits=SOBOL_BITS)
    plain = (sobol.random_base2((D - 1).bit_length())[:D].T * 2.0**SOBOL_BITS).astype(np.int64)
    columns = np.empty((SOBOL_BITS, d, 1), dtype=np.int64)
    points = np.empty((d, D), dtype=np.int64)
    for i in range(d):
        words = generator(seed, i).integers(0, 2**SOBOL_BITS, SOBOL_BITS + 1)
        # Bit b of a point changes bit b and random lower ones: a lower triangular matrix with ones on its diagonal.
        bits = 1 << np.arange(SOBOL_BITS)
        columns[:, i, 0] = bits | (words[:-1] & (bits - 1))
        points[i] = words[-1]
    for b in range(SOBOL_BITS):
        points ^= ((plain >> b) & 1) * columns[b]
    # The middle of a cell of the grid keeps clear of 0, where an inverse CDF is infinite.
    return (points + 0.5) * 0.5**SOBOL_BITS


def _radial(kernel: Any, sampling: str = "iid") -> Callable[[np.ndarray], np.ndarray]:
    """Inverse CDF of the scale s in ``w = s g``, g standard normal."""
    if kernel.name == "gaussian":
        return lambda u: np.sqrt(2.0 * kernel.gamma)
    if kernel.name == "matern":  # multivariate Student t with 2 nu degrees of freedom
        return lambda u: np.sqrt(2.0 * kernel.nu / chdtri(2.0 * kernel.nu, u)) / kernel.length
    raise ValueError(
        f"sampling={sampling!r} needs an isotropic kernel with a known radial law (gaussian, matern); "
        f"the {kernel.name} kernel has none"
    )


def _quantile(kernel: Any) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """The map from uniform numbers (d + extra, D) to frequencies (d, D), and the number of extra dimensions."""
    match kernel.name:
        case "gaussian":
            return lambda U: np.sqrt(2.0 * kernel.gamma) * ndtri(U), 0
        case "laplacian":
            return lambda U: kernel.gamma * np.tan(np.pi * (U - 0.5)), 0
        case "cauchy":
            return lambda U: -kernel.gamma * np.sign(U - 0.5) * np.log1p(-2.0 * np.abs(U - 0.5)), 0
        case "matern":
            scale = _radial(kernel)
            return lambda U: scale(U[0]) * ndtri(U[1:]), 1
        case "spectral_mixture":
            return lambda U: _mixture(kernel, U), 1
    raise ValueError(
        f"sampling='qmc' needs a kernel whose spectrum has a known inverse CDF (gaussian, laplacian, cauchy, matern, "
        f"spectral_mixture); the {kernel.name} kernel has none"
    )


def _mixture(kernel: Any, U: np.ndarray) -> np.ndarray:
    """Component by the first uniform number, then a normal frequency around its mean."""
    weights = np.asarray(kernel.weights, dtype=float)
    q = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], U[0], side="right")
    means, scales = (np.asarray(a, dtype=float).reshape(len(weights), -1) for a in (kernel.means, kernel.scales))
    return means[q].T + scales[q].T * ndtri(U[1:])
