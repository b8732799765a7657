"""A window that grows as long as nothing changes."""

from __future__ import annotations

import math

import numpy as np

from ..checks import fraction
from ._blocks import BLOCK, Detector

FIRST_ROWS = 4 * BLOCK  # losses that give their usual size before anything is compared
PER_SIZE = 5  # buckets of one size before two are joined
BUCKETS = 256  # more than 2^50 rows need


class Adwin(Detector):
    r"""Has the mean loss risen? A window of losses, cut wherever its two parts have means that differ too much.

    For a cut into n0 old and n1 new rows with :math:`1/m = 1/n_0 + 1/n_1` the difference is too much beyond

    .. math:: \sqrt{\tfrac{2}{m} s^2 \log\tfrac{2}{\delta'}} + \tfrac{2}{3m} \log\tfrac{2}{\delta'}, \qquad
              \delta' = \delta / \log n

    with the variance :math:`s^2` of the window [1]_. The older part is dropped. A rise is a change; a fall means that
    the learner improves, and only shortens the window. A loss l counts as l / (l + c), where c is the mean of the
    first 128 rows after a change: losses of any size are between 0 and 1. Buckets of 32, 64, 128, … rows, at most five
    of a size, hold the window.

    Parameters
    ----------
    delta : float, default=1e-6

    References
    ----------
    .. [1] Bifet, Gavaldà: Learning from time-changing data with adaptive windowing, SDM 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.monitor import Adwin
    >>> loss = np.random.default_rng(0).random(6000) < np.where(np.arange(6000) < 4000, 0.1, 0.4)
    >>> [(row, since)] = Adwin().learn(loss)
    >>> row < 4200, abs(since - 4000) < 100
    (True, True)
    """

    def __init__(self, delta: float = 1e-6):
        self.delta = fraction("delta", delta)
        self.state = {"rows": np.zeros(1, np.int64), "kept": np.zeros(0)}
        self.reset()

    def reset(self) -> None:
        """Forget the window, as after a change."""
        # rows, sum and sum of squares of each bucket, oldest first; how many there are; sum and number of first losses
        self.state |= {"buckets": np.zeros((BUCKETS, 3)), "used": np.zeros(1, np.int64), "first": np.zeros(2)}

    def _test(self, block: np.ndarray) -> int | None:
        buckets, used, first = (self.state[name] for name in ("buckets", "used", "first"))
        if first[1] < FIRST_ROWS:
            first += [block.sum(), BLOCK]
            return None
        x = block / (block + max(first[0] / first[1], 1e-300))
        n = int(used[0])
        buckets[n] = BLOCK, x.sum(), x @ x
        n = _joined(buckets, n + 1)
        dropped, rows = _cut(buckets, n, self.delta)
        if dropped > 0:
            self.reset()
            return rows
        buckets[: n + dropped] = buckets[-dropped:n].copy()
        buckets[n + dropped :] = 0.0
        used[0] = n + dropped
        return None


def _joined(buckets: np.ndarray, used: int) -> int:
    """Join the two oldest of a size wherever there are too many; returns how many buckets are left."""
    size, sizes = BLOCK, buckets[:used, 0].tolist()
    while sizes.count(size) > PER_SIZE:
        at = sizes.index(size)
        buckets[at] += buckets[at + 1]
        buckets[at + 1 : used - 1] = buckets[at + 2 : used].copy()
        sizes[at : at + 2] = [2 * size]
        used, size = used - 1, 2 * size
    return used


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
