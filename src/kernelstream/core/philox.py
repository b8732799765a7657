r"""Normal numbers from counters: the same bits wherever they are made again.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011) turns a counter of four
32-bit words and a key of two into four random words. Ours is::

    counter = (group, row, block, stream),   key = the low 64 bits of the seed

so row k of block i can be made by itself, in any order. The four words (a, b, c, e) of a group become two pairs of
normals by Box and Muller, in float32::

    u = (a + 1/2) / 2^32,   phi = pi (b's low 31 bits, as a signed number) / 2^31,   sign = b's top bit
    sqrt(-2 log u) (+-cos phi, +-sin phi),   and the same for (c, e).

Logarithm, cosine and sine are the polynomials below. They use additions and multiplications in the order written, a
square root, and conversions from integers, each rounded to nearest: IEEE operations, which give the same bits on every
machine (compilers must not fuse a multiplication with an addition here).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF
SEED_MASK = 0xFFFFFFFFFFFFFFFF

# log(1 + x) = x + x^2 L(x) for sqrt(1/2) <= 1 + x <= sqrt(2); sin r = r + r^3 S(r^2) and
# cos r = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/2. Lowest coefficient first.
LOG = (-0.4999999701976776, 0.3333367109298706, -0.25001147389411926, 0.19972050189971924,
       -0.16588488221168518, 0.148347869515419, -0.1415964663028717, 0.08787265419960022)  # fmt: skip
SIN = (-0.16666656732559204, 0.008333016186952591, -0.00019806547788903117, 2.599903382360935e-06)
COS = (0.041666656732559204, -0.0013888567918911576, 2.4769240553723648e-05, -2.619248391511064e-07)
SQRT_HALF_BITS = 0x3F3504F3  # of sqrt(1/2) in float32
MINUS_2_LN_2 = -1.3862943611198906
PI_OVER_2_32 = 7.314590396335798e-10  # pi / 2^32


def words(seed: int, group: np.ndarray, row: np.ndarray, block: int, stream: int) -> list[np.ndarray]:
    """The four random words of every counter ``(group, row, block, stream)``; groups and rows broadcast, uint32.

    >>> import numpy as np
    >>> [hex(int(w)) for w in words(0, np.uint32(0), np.uint32(0), 0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    key = [seed & MASK, seed >> 32 & MASK]
    x = [np.asarray(part).astype(np.uint32) for part in (group, row, block, stream)]
    shape = np.broadcast_shapes(*(part.shape for part in x))
    x = [np.broadcast_to(part, shape) for part in x]
    for _ in range(ROUNDS):
        product = [np.uint64(m) * part.astype(np.uint64) for m, part in zip(_MULTIPLIERS, (x[0], x[2]))]
        high = [(p >> np.uint64(32)).astype(np.uint32) for p in product]
        low = [(p & np.uint64(MASK)).astype(np.uint32) for p in product]
        x = [high[1] ^ x[1] ^ np.uint32(key[0]), low[1], high[0] ^ x[3] ^ np.uint32(key[1]), low[0]]
        key = [(k + w) & MASK for k, w in zip(key, _WEYL)]
    return x


def normals(
    seed: int, block: int, rows: np.ndarray, D: int, stream: int = 0, scale: float = 1.0, dtype: Any = np.float32
) -> np.ndarray:
    """Rows ``rows`` of block ``block`` of an endless array of independent N(0, scale^2) numbers, (len(rows), D).

    Parameters
    ----------
    seed : int
        At least 0; its low 64 bits count.
    block : int
        0 to 2^32 - 1.
    rows : (r,) array of int
        Which rows, 0 to 2^32 - 1 each.
    D : int
        Numbers per row. Rows of another length hold other numbers.
    stream : int
        Streams of one seed are independent.
    scale : float
        The standard deviation, rounded to ``dtype`` before it multiplies.
    dtype : float32 or float64
        Type of the result. The N(0, 1) numbers themselves are always float32 numbers, so both types hold the same ones.

    Examples
    --------
    >>> import numpy as np
    >>> both = normals(7, 3, np.arange(2), 5)
    >>> bool((normals(7, 3, np.array([1]), 5) == both[1:]).all())
    True
    """
    rows = np.asarray(rows).astype(np.uint32)
    groups = -(-D // 4)
    a, b, c, e = words(seed, np.arange(groups, dtype=np.uint32), rows[:, None], block, stream)
    out = np.concatenate([*_box_muller(a, b), *_box_muller(c, e)], axis=1)
    return out[:, :D].astype(dtype) * np.dtype(dtype).type(scale)


def _box_muller(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two independent normals from two random words."""
    f32 = np.float32
    # log of u = v / 2^32: v = 2^e m with m in [sqrt(1/2), sqrt(2))
    v = a.astype(f32) + f32(0.5)
    shifted = v.view(np.int32) - np.int32(SQRT_HALF_BITS)
    exponent = (shifted >> np.int32(23)).astype(f32)
    m = ((shifted & np.int32(0x7FFFFF)) + np.int32(SQRT_HALF_BITS)).view(f32)
    x = m - f32(1)
    log_m = x + (x * x) * _polynomial(LOG, x)
    radius = np.sqrt((exponent - f32(32)) * f32(MINUS_2_LN_2) + f32(-2) * log_m)
    # b's top bit is a sign, the others an angle in [-pi/2, pi/2)
    r = (b << np.uint32(1)).view(np.int32).astype(f32) * f32(PI_OVER_2_32)
    z = r * r
    sine = r + (r * z) * _polynomial(SIN, z)
    cosine = (f32(1) - f32(0.5) * z) + (z * z) * _polynomial(COS, z)
    radius = (radius.view(np.uint32) | (b & np.uint32(0x80000000))).view(f32)
    return radius * cosine, radius * sine


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Horner's rule, rounded to float32 after every operation."""
    total = np.full_like(x, np.float32(coefficients[-1]))
    for c in coefficients[-2::-1]:
        total = total * x + np.float32(c)
    return total
