"""Normal numbers from counters: known words, the distribution, and the same bits from both engines."""

import numpy as np
import pytest
from scipy import stats

from kernelstream.core import philox
from kernelstream.engine import has_native

# Counter, key and words of the published test vectors of Philox4x32-10.
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822,
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_words(counter, key, expected):
    group, row, block, stream = counter
    found = philox.words(key, np.uint32(group), np.uint32(row), block, stream)
    assert tuple(int(word) for word in found) == expected


def test_box_muller_is_the_formula():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**32, (2, 100_000), dtype=np.uint32)
    u = (a.astype(np.float32).astype(float) + 0.5) / 2**32  # a word is rounded to 24 bits first
    angle = np.pi * (2.0 * (b & 0x7FFFFFFF)) / 2**32
    angle += np.where(angle >= np.pi / 2, -np.pi, 0.0)  # the low 31 bits are a signed number
    sign = np.where(b >> 31, -1.0, 1.0)
    radius = np.sqrt(-2 * np.log(np.minimum(u, 1.0)))
    for found, truth in zip(philox._box_muller(a, b), (sign * radius * np.cos(angle), sign * radius * np.sin(angle))):
        assert np.abs(found - truth).max() < 2e-6


def test_extreme_words_are_finite():
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 129, 2**32 - 1], np.uint32)
    first, second = philox._box_muller(*(part.ravel() for part in np.meshgrid(ends, ends)))
    assert np.isfinite(first).all() and np.isfinite(second).all()
    assert np.abs(first).max() == pytest.approx(np.sqrt(-2 * np.log(0.5 / 2**32)), rel=1e-6)


def test_distribution():
    z = philox.normals(3, 5, np.arange(500), 1001).astype(float)
    n = z.size
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    assert abs(z.mean()) < 4 / np.sqrt(n)
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs(stats.kurtosis(z.ravel())) < 4 * np.sqrt(24 / n)
    for shifted in (z[:, 1:] * z[:, :-1], z[1:] * z[:-1], z[:, 251:] * z[:, :-251]):  # neighbours, group members
        assert abs(shifted.mean()) < 4 / np.sqrt(shifted.size)


def test_blocks_streams_and_seeds_are_independent():
    base = philox.normals(0, 0, np.arange(40), 512).ravel()
    others = [
        philox.normals(0, 1, np.arange(40), 512),
        philox.normals(1, 0, np.arange(40), 512),
        philox.normals(0, 0, np.arange(40), 512, stream=1),
        philox.normals(2**32, 0, np.arange(40), 512),
    ]
    for other in others:
        assert abs(np.corrcoef(base, other.ravel())[0, 1]) < 4 / np.sqrt(base.size)


@pytest.mark.skipif(not has_native(), reason="needs the compiled core")
@pytest.mark.parametrize("D", [1, 2, 3, 4, 5, 63, 64, 65, 256, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_engines_agree_to_the_bit(D, dtype):
    from kernelstream.core import arrays_native

    rows = np.array([0, 3, 77, 2**31, 2**32 - 1])
    for seed, block, stream in ((0, 0, 0), (7, 2**32 - 1, 2), (2**63 - 1, 5, 1), (2**70 + 3, 5, 1)):
        spec = philox.normals(seed, block, rows, D, stream, 0.37, dtype)
        native = arrays_native.normals(seed, block, rows, D, stream, 0.37, dtype)
        assert spec.dtype == native.dtype == dtype
        assert spec.tobytes() == native.tobytes()


def test_bits_are_the_same_for_ever():
    # Not a check of correctness but a lock: a model is its seed, so if this number changes, saved models are broken.
    z = philox.normals(2024, 11, np.arange(3), 6)
    assert z.view(np.uint32).astype(np.uint64).sum() == 42625374813
