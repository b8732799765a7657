"""A sum that grows when the mean does."""

from __future__ import annotations

import numpy as np

from ._blocks import BLOCK, Detector

FIRST = 4 * BLOCK  # rows that give the mean and the deviation before anything is added up
MEMORY = 2000.0  # rows over which they are averaged
CLIP = 5.0  # most deviations above the mean that a loss counts for


class PageHinkley(Detector):
    r"""Has the mean loss risen? A sum of the losses' distances above the mean, which never falls below 0.

    .. math:: g_t = \max\left(0, g_{t-1} + \min\left(\tfrac{l_t - \bar l}{s}, 5\right) - \delta\right) > \lambda

    with the running mean and deviation of the losses [1]_. It is quicker than a window where a change is large; all is
    in units of the deviation, so that one threshold serves all losses.

    Parameters
    ----------
    delta : float, default=0.25
        What is taken off in every row: a rise of less than this many deviations is not counted as one.
    threshold : float, default=50
        The lambda.

    References
    ----------
    .. [1] Page: Continuous inspection schemes, Biometrika 41 (1954).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.monitor import PageHinkley
    >>> loss = np.random.default_rng(0).exponential(np.where(np.arange(6000) < 4000, 1.0, 3.0))
    >>> [(row, since)] = PageHinkley().learn(loss)
    >>> 4000 < row < 4100
    True
    """

    def __init__(self, delta: float = 0.25, threshold: float = 50.0):
        if not (delta > 0 and threshold > 0):
            raise ValueError(f"delta and threshold must be > 0, got {delta!r} and {threshold!r}")
        self.delta, self.threshold = delta, threshold
        self.state = {"rows": np.zeros(1, np.int64), "kept": np.zeros(0)}
        self.reset()

    def reset(self) -> None:
        """Forget the mean and the sum, as after a change."""
        self.state |= {"moments": np.zeros(3), "sum": np.zeros(2)}  # count, mean, variance; g and rows since it was 0

    def _test(self, block: np.ndarray) -> int | None:
        moments, held = self.state["moments"], self.state["sum"]
        count, mean, variance = moments
        if count >= FIRST:
            deviation = max(np.sqrt(variance), 1e-300)
            z = np.minimum((block - mean) / deviation, CLIP) - self.delta
            walk = held[0] + z.cumsum()
            low = np.minimum(np.minimum.accumulate(walk), 0.0)
            g = walk - low
            zero = np.flatnonzero(g == 0.0)
            since = held[1] + BLOCK if not len(zero) else BLOCK - 1 - zero[-1]
            held[:] = g[-1], since
            if g.max() > self.threshold:
                self.reset()
                return int(max(since, 1))
        # after the test, so that a change does not move the mean it is compared with
        count = min(count + BLOCK, MEMORY)
        share = BLOCK / count
        change = block.mean() - mean
        moments[:] = count, mean + share * change, (1 - share) * (variance + share * change**2) + share * block.var()
        return None
