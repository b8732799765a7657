r"""Has something changed? What detectors do with a block of 32 rows; cpp/passes/monitor.hpp is the compiled twin.

The formulas stand with the detectors that use them: :class:`~kernelstream.monitor.Adwin` and
:class:`~kernelstream.monitor.KernelTwoSample`. All arrays are changed in place.
"""

from __future__ import annotations

import math

import numpy as np

BLOCK = 32
FIRST = 4 * BLOCK  # losses that give their usual size before anything is compared

PER_SIZE = 5  # buckets of one size before two are joined
BUCKETS = 256  # more than 2^50 rows need

LEAST_BLOCKS = 16  # blocks that a window is compared with, at least
RIDGE = 0.02  # added to variances of at most 1/2: a feature that hardly moves has no normal mean, and must not decide


def adwin_look(buckets: np.ndarray, used: np.ndarray, first: np.ndarray, block: np.ndarray, delta: float) -> int:
    """A window of losses, cut where its two parts have means that differ too much; how long ago the mean rose, or 0.

    Parameters
    ----------
    buckets : (256, 3) array
        Rows, sum and sum of squares of each, oldest first.
    used : (1,) array of int
        How many there are.
    first : (2,) array
        Sum and number of the first losses. All of it is reset after a rise.
    block : (32,) array
        Losses.
    delta : float
    """
    if first[1] < FIRST:
        first += [block.sum(), BLOCK]
        return 0
    x = block / (block + max(first[0] / first[1], 1e-300))
    n = int(used[0])
    buckets[n] = BLOCK, x.sum(), x @ x
    n = _joined(buckets, n + 1)
    dropped, rows = _cut(buckets, n, delta)
    if dropped > 0:
        for array in (buckets, used, first):
            array[:] = 0
        return rows
    buckets[: n + dropped] = buckets[-dropped:n].copy()
    buckets[n + dropped :] = 0.0
    used[0] = n + dropped
    return 0


def _joined(buckets: np.ndarray, used: int) -> int:
    """Join the two oldest of a size wherever there are too many; returns how many buckets are left."""
    size = BLOCK
    while True:
        same = np.flatnonzero(buckets[:used, 0] == size)
        if len(same) <= PER_SIZE:
            return used
        at = same[0]
        buckets[at] += buckets[at + 1]
        buckets[at + 1 : used - 1] = buckets[at + 2 : used].copy()
        used, size = used - 1, 2 * size


def _cut(buckets: np.ndarray, used: int, delta: float) -> tuple[int, int]:
    """Buckets to drop, 0 for none, negative when the mean has fallen; and the rows after the cut."""
    if used < 2:
        return 0, 0
    (n, total, squares), old = buckets[:used].sum(axis=0), buckets[: used - 1].cumsum(axis=0)
    n0, n1 = old[:, 0], n - old[:, 0]
    rise = (total - old[:, 1]) / n1 - old[:, 1] / n0
    variance = max(squares / n - (total / n) ** 2, 0.0)
    log = math.log(2 * math.log(n) / delta)
    inverse = 1 / n0 + 1 / n1
    excess = np.abs(rise) - np.sqrt(2 * inverse * variance * log) - 2 / 3 * inverse * log
    at = int(excess.argmax())
    if excess[at] <= 0:
        return 0, 0
    return (at + 1) * (1 if rise[at] > 0 else -1), int(n1[at])


def kernel_look(W: np.ndarray, reference: np.ndarray, last: np.ndarray, block: np.ndarray) -> tuple[float, float]:
    """Hotelling's statistic of the last rows against those before, as an F, and its second degrees of freedom.

    Parameters
    ----------
    W : (d, k / 2) array
        Frequencies.
    reference : (1 + k + k²,) array
        Number of rows before the window, sums of their features and of products of these.
    last : (blocks, 1 + k + k²) array
        The same of each block in the window, oldest first.
    block : (32, d) array
        Rows, of which the features are cosines, then sines.

    Returns
    -------
    statistic, freedom : float
        0 as long as there are too few rows to compare.
    """
    angles = np.asarray(block, np.float64) @ W
    Z = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    reference += last[0]
    last[:-1] = last[1:].copy()
    last[-1] = np.concatenate([[BLOCK], Z.sum(axis=0), (Z.T @ Z).ravel()])
    if last[0, 0] == 0 or reference[0] < LEAST_BLOCKS * BLOCK:
        return 0.0, 0.0
    k, window = Z.shape[1], last.sum(axis=0)
    n, m = reference[0], window[0]
    difference = reference[1 : k + 1] / n - window[1 : k + 1] / m
    scatter = (reference + window)[k + 1 :].reshape(k, k)
    for part in (reference, window):
        scatter = scatter - np.outer(part[1 : k + 1], part[1 : k + 1]) / part[0]
    S = scatter / (n + m - 2) + RIDGE * np.eye(k)
    T2 = n * m / (n + m) * difference @ np.linalg.solve(S, difference)
    rest = n + m - k - 1
    return float(T2 * rest / (k * (n + m - 2))), float(rest)
