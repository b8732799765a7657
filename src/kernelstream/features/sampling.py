"""Frequency matrices (d, D) of a shift-invariant kernel: independent, orthogonal, structured, quasi-Monte-Carlo.

Every matrix is drawn in float64 from a seed and rounded to the wanted type at the end, so that float32 and float64
maps of one seed are the same map.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from kernelstream.checks import one_of
from kernelstream.core.threads import get_num_threads
from kernelstream.kernels import Matern, SpectralMixture
from kernelstream.kernels._base import StretchedKernel
from kernelstream.random import SeedStream, Streams, generator

SAMPLINGS = ("iid", "orthogonal", "structured", "qmc")
# Kernels whose coordinates are independent but for one shared number: a scale, or the component of a mixture.
SHARING = (Matern, SpectralMixture)
# Below this size the signs of a Hadamard block give too few directions to pass for Gaussian ones (with 2 coordinates,
# only the diagonals), so shorter rows are padded up to it.
MIN_HADAMARD = 64
SOBOL_BITS = 30
PARALLEL_NUMBERS = 1 << 22  # random numbers that are worth several threads
SOBOL_DIMENSIONS = 21201


class Draws:
    """The random numbers of the last frequencies, for a kernel of the same kind with another bandwidth.

    It holds up to twice (d, D) numbers in float64.
    """

    def __init__(self) -> None:
        self.made: tuple[Any, np.ndarray, int] | None = (
            None  # the key, a buffer with the numbers, and how many columns it has
        )

    def get(self, kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
        """Frequencies (d, D) with a spread of 1; only those of columns that have none yet are drawn."""
        key = (type(kernel), seed, D)
        if self.made is None or self.made[0] != key:
            self.made = None  # frees the memory for the new ones
            self.made = key, _standard(kernel, seed, d, D), d
        _, N, known = self.made
        if d > known:
            if d > len(N):
                N = np.concatenate([N[:known], np.empty((max(d, 2 * known) - known, D))])
            N[known:d] = _standard(kernel, seed, d, D, known)
            self.made = key, N, d
        return N[:d]


def frequencies(
    kernel: Any,
    seed: int,
    d: int,
    D: int,
    sampling: str = "iid",
    dtype: Any = np.float64,
    draws: Draws | None = None,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Frequencies of ``kernel`` by one of the four samplings, as a C-contiguous (d, D) array of type ``dtype``.

    ``draws`` keeps independent numbers from one call to the next, where only the bandwidth has changed. ``known``
    (d', D), d' < d, are the frequencies for a narrower input, all else being equal: where they stay, only the others
    are drawn.
    """
    one_of("sampling", sampling, SAMPLINGS)
    if not kernel.is_fourier:
        raise ValueError(f"{type(kernel).__name__} has no Fourier frequencies: it is not shift invariant")
    if sampling == "iid" and isinstance(kernel, StretchedKernel):
        kernel.validate()
        W, first = np.empty((d, D), dtype), 0
        if known is not None:
            first = len(known)
            W[:first] = known
        N = _standard(kernel, seed, d, D, first) if draws is None else draws.get(kernel, seed, d, D)[first:]
        np.multiply(N, kernel.spread, out=W[first:], casting="same_kind")
        return W
    draw = {"iid": independent, "orthogonal": orthogonal, "structured": structured, "qmc": quasi}[sampling]
    return np.ascontiguousarray(draw(kernel, seed, d, D), dtype=dtype)


def extends(kernel: Any, sampling: str) -> bool:
    """Whether frequencies for a wider input contain those for a narrower one, so that a stream's width may grow."""
    return sampling in ("iid", "qmc") and (_independent(kernel) or type(kernel) is Matern)


def _independent(kernel: Any) -> bool:
    """Whether a kernel's frequencies have independent, identically distributed coordinates."""
    return getattr(kernel, "independent", False)


def independent(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """D independent frequencies. Row i (coordinate i) depends on (seed, i) alone where the distribution allows it."""
    if _independent(kernel):
        return np.stack([kernel.frequencies(generator(seed, SeedStream.MAP, i), 1, D)[0] for i in range(d)])
    if type(kernel) in SHARING:
        U = np.empty((d + 1, D))
        for i in range(d):
            generator(seed, SeedStream.MAP, i).random(out=U[i])
        generator(seed, SeedStream.MAP_SHARED).random(out=U[d])
        return kernel.quantiles(np.clip(U, 0.5**54, None), d)
    return kernel.frequencies(generator(seed, SeedStream.MAP), d, D)


def _standard(kernel: Any, seed: int, d: int, D: int, first: int = 0) -> np.ndarray:
    """Independent frequencies with a spread of 1, rows ``first`` to ``d - 1``.

    Row i comes from stream i, so that threads may share the rows.
    """
    N = np.empty((d - first, D))

    def draw(rows: range) -> None:
        stream = Streams(seed, SeedStream.MAP)
        for i in rows:
            N[i - first] = kernel.standard(stream(i), 1, D)[0]

    threads = min(get_num_threads(), len(N)) if N.size >= PARALLEL_NUMBERS else 1
    if threads < 2:
        draw(range(first, d))
        return N
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(draw, [range(first + k, d, threads) for k in range(threads)]))
    return N


def orthogonal(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """Blocks of d orthogonal directions, each with the norm of an independent frequency [1]_.

    References
    ----------
    .. [1] Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal random features, NeurIPS 2016.
    """
    _require_isotropic(kernel, "orthogonal")
    rng = generator(seed, SeedStream.MAP)
    blocks = []
    for many, width in ((D // d, d), (1, D % d)):
        Q, R = np.linalg.qr(rng.standard_normal((many, d, width)))
        # QR fixes the signs of Q by convention; those of R's diagonal make it uniform on the orthogonal group.
        Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None]
        blocks.append(Q.swapaxes(0, 1).reshape(d, many * width))
    W = np.concatenate(blocks, axis=1)
    W *= _norms(kernel, rng, d, D)
    return W


def structured(kernel: Any, seed: int, d: int, D: int) -> np.ndarray:
    """Blocks ``H D1 H D2 H D3`` of Hadamard matrices H and random signs D1, D2, D3, with norms as in `orthogonal` [1]_.

    The blocks live in the next power of two n >= d; the first d coordinates of an isotropic vector of R^n with the
    kernel's law are one of R^d, so padding does not bias the kernel, but directions are orthogonal only where d = n.

    References
    ----------
    .. [1] Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal random features, NeurIPS 2016, section 4.
    """
    _require_isotropic(kernel, "structured")
    rng = generator(seed, SeedStream.MAP)
    n = max(MIN_HADAMARD, 1 << (d - 1).bit_length())
    W = np.empty((d, D))
    for start in range(0, D, n):
        width = min(n, D - start)
        # Columns of the block (H D1 H D2 H D3)' = D3 H D2 H D1 H, cut to d coordinates.
        block = np.eye(n, width)
        for signs in rng.integers(0, 2, (3, n)) * 2.0 - 1.0:
            block = _hadamard(block) * signs[:, None]
        W[:, start : start + width] = block[:d]
    W *= _norms(kernel, rng, n, D)
    return W


def _require_isotropic(kernel: Any, sampling: str) -> None:
    if not getattr(kernel, "isotropic", False):
        raise ValueError(
            f"sampling={sampling!r} needs an isotropic kernel (gaussian, matern); {type(kernel).__name__} is not"
        )


def _norms(kernel: Any, rng: np.random.Generator, n: int, D: int) -> np.ndarray:
    """Norms of D independent frequencies in R^n: all that an isotropic distribution leaves open."""
    return np.linalg.norm(kernel.frequencies(rng, n, D), axis=0)


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
    """Inverse distribution functions of the first D points of a scrambled Sobol sequence [1]_.

    References
    ----------
    .. [1] Avron, Sindhwani, Yang, Mahoney: Quasi-Monte Carlo feature maps for shift-invariant kernels, JMLR 2016.
    """
    size = kernel.n_uniforms(d)
    if size > SOBOL_DIMENSIONS:
        raise ValueError(f"sampling='qmc' supports at most {SOBOL_DIMENSIONS} dimensions, but {d} columns need {size}")
    # What the coordinates share comes last in U; it takes the first dimension, the best one, whatever the width.
    U = np.roll(scrambled_sobol(seed, size, D), d - size, axis=0)
    try:
        return kernel.quantiles(U, d)
    except NotImplementedError:
        raise ValueError(
            f"sampling='qmc' needs a kernel with quantiles (inverse distribution functions of its frequencies); "
            f"{type(kernel).__name__} has none"
        ) from None


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
    bits = 1 << np.arange(SOBOL_BITS)
    columns = np.empty((SOBOL_BITS, d, 1), dtype=np.int64)
    points = np.empty((d, D), dtype=np.int64)
    for i in range(d):
        words = generator(seed, SeedStream.MAP, i).integers(0, 2**SOBOL_BITS, SOBOL_BITS + 1)
        # Bit b of a point changes bit b and random lower ones: a lower triangular matrix with ones on its diagonal.
        columns[:, i, 0] = bits | (words[:-1] & (bits - 1))
        points[i] = words[-1]
    for b in range(SOBOL_BITS):
        points ^= ((plain >> b) & 1) * columns[b]
    # The middle of a cell of the grid keeps clear of 0, where an inverse distribution function is infinite.
    return (points + 0.5) * 0.5**SOBOL_BITS
