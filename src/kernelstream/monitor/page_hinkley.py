"""A sum that grows when the mean does."""

from __future__ import annotations

import numpy as np

from ._blocks import Detector


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
    engine : {"auto", "native", "python"}, default="auto"

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

    def __init__(self, delta: float = 0.25, threshold: float = 50.0, engine: str = "auto"):
        super().__init__(engine)
        if not (delta > 0 and threshold > 0):
            raise ValueError(f"delta and threshold must be > 0, got {delta!r} and {threshold!r}")
        self.delta, self.threshold = delta, threshold
        self.state = {"rows": np.zeros(1, np.int64), "kept": np.zeros(0)}
        self.reset()

    def reset(self) -> None:
        """Forget the mean and the sum, as after a change."""
        self.state |= {"moments": np.zeros(3), "sum": np.zeros(2)}  # count, mean, variance; g and rows since it was 0

    def _test(self, block: np.ndarray) -> int | None:
        state = self.state
        return self._ops.page_look(state["moments"], state["sum"], block, self.delta, self.threshold) or None
