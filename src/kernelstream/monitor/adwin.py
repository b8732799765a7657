"""A window that grows as long as nothing changes."""

from __future__ import annotations

import numpy as np

from ..passes.monitor.python import BUCKETS
from ._blocks import Detector


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
    engine : {"auto", "native", "python"}, default="auto"

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

    def __init__(self, delta: float = 1e-6, engine: str = "auto"):
        super().__init__(engine)
        if not 0 < delta < 1:
            raise ValueError(f"delta must be in (0, 1), got {delta!r}")
        self.delta = delta
        self.state = {"rows": np.zeros(1, np.int64), "kept": np.zeros(0)}
        self.reset()

    def reset(self) -> None:
        """Forget the window, as after a change."""
        # rows, sum and sum of squares of each bucket, oldest first; how many there are; sum and number of first losses
        self.state |= {"buckets": np.zeros((BUCKETS, 3)), "used": np.zeros(1, np.int64), "first": np.zeros(2)}

    def _test(self, block: np.ndarray) -> int | None:
        state = self.state
        return self._ops.adwin_look(state["buckets"], state["used"], state["first"], block, self.delta) or None
