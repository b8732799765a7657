"""What an evaluation gives back: numbers, curves, and how they are shown."""

from __future__ import annotations

import html
import pickle
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..progress import size_text


def model_bytes(est: Any) -> int:
    """Size of a learned model: the arrays of ``est.state_``, or of the pickled object if it has no such dict.

    >>> import numpy as np
    >>> from kernelstream.evaluate import model_bytes
    >>> class Model:
    ...     state_ = {"w": np.zeros(100, np.float32), "t": 1}
    >>> model_bytes(Model())
    408
    """
    state = getattr(est, "state_", None)
    if isinstance(state, dict):
        return sum(_entry_bytes(value) for value in state.values())
    try:
        return len(pickle.dumps(est))
    except Exception:  # the size of an object that cannot be pickled is unknown
        return 0


def model_size(est: Any) -> int | None:
    """Support vectors of a model, or else its weights per output; those of all members; None where it has neither.

    >>> import numpy as np
    >>> from kernelstream.evaluate import model_size
    >>> class Model:
    ...     state_ = {"members/0/n_support": 3, "members/1/n_support": 4, "members/1/w": np.zeros((2, 9))}
    >>> model_size(Model())
    7
    """
    state = getattr(est, "state_", None)
    if not isinstance(state, dict):
        return getattr(est, "size_", None)
    entries = [(name.rpartition("/")[2], value) for name, value in state.items()]
    supports = [int(value) for name, value in entries if name == "n_support"]
    weights = [int(value.shape[-1]) for name, value in entries if name == "w"]
    found = supports or weights
    return sum(found) if found else None


def _entry_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return len(value.encode()) if isinstance(value, str) else 8


@dataclass(frozen=True)
class Curve:
    """A metric over the rows of a stream.

    Attributes
    ----------
    rows : ndarray (p,)
        Rows seen at each point, increasing.
    total : ndarray (p,)
        Sum of the metric over those rows.
    """

    rows: np.ndarray
    total: np.ndarray
    finish: Callable[[float], float] = field(default=float, repr=False)

    @property
    def value(self) -> np.ndarray:
        """The running metric: over all rows up to each point."""
        return self._finished(self.total / self.rows)

    def windowed(self, windows: int = 50) -> tuple[np.ndarray, np.ndarray]:
        """The metric over (at most) ``windows`` consecutive stretches of about equal length.

        Returns
        -------
        rows : ndarray
            Where each stretch ends.
        value : ndarray
            The metric over that stretch alone.

        Examples
        --------
        >>> import numpy as np
        >>> from kernelstream.evaluate import Curve
        >>> Curve(np.array([10, 20, 30, 40]), np.array([5, 6, 7, 8])).windowed(2)[1].tolist()
        [0.3, 0.1]
        """
        if not len(self.rows):
            return self.rows, self.total
        ends = np.linspace(0, self.rows[-1], min(windows, len(self.rows)) + 1)[1:]
        at = np.unique(np.minimum(np.searchsorted(self.rows, np.floor(ends)), len(self.rows) - 1))
        rows, total = self.rows[at], self.total[at]
        return rows, self._finished(np.diff(total, prepend=0) / np.diff(rows, prepend=0))

    def _finished(self, means: np.ndarray) -> np.ndarray:
        return np.array([self.finish(mean) for mean in means])


class Recorder:
    """Builds a curve from the contribution of every row, in bounded memory.

    Points lie at the multiples of a stride that doubles whenever there are twice too many, so a curve does not depend
    on how the rows were cut into blocks, nor on knowing their number.
    """

    def __init__(self, points: int) -> None:
        self.most, self.stride = 2 * max(points, 1), 1
        self.n, self.sum = 0, 0.0
        self.rows: list[int] = []
        self.totals: list[float] = []

    def add(self, contributions: Any, n: int) -> None:
        """Contributions (n,) of the next rows, or one number that counts for each of them."""
        running = self.sum + np.cumsum(np.broadcast_to(np.asarray(contributions, dtype=np.float64), (n,)))
        first = -self.n % self.stride or self.stride  # rows until the next point
        at = np.arange(first - 1, n, self.stride)
        self.rows += (self.n + 1 + at).tolist()
        self.totals += running[at].tolist()
        if n:
            self.n, self.sum = self.n + n, float(running[-1])
        while len(self.rows) > self.most:
            self.rows, self.totals, self.stride = self.rows[1::2], self.totals[1::2], 2 * self.stride

    def curve(self, finish: Callable[[float], float]) -> Curve:
        """The curve so far; it always ends at the last row."""
        rows, totals = list(self.rows), list(self.totals)
        if self.n and (not rows or rows[-1] != self.n):
            rows.append(self.n)
            totals.append(self.sum)
        return Curve(np.array(rows, dtype=np.int64), np.array(totals), finish)


def _metric(name: str, summary: str) -> Any:
    return property(lambda result: result.metrics.get(name), doc=summary)


@dataclass(frozen=True)
class Result:
    """Outcome of a prequential run.

    Attributes
    ----------
    name : str
        Label of the learner, used in tables and plots.
    task : {"classification", "regression"}
    n_rows : int
    seconds : float
        Spent inside the learner, predicting and learning; reading rows and computing metrics is not counted.
    model_bytes : int
        Size of the model at the end.
    metrics : dict of str to float
        Over all rows; the first is the one that was asked for first.
    curves : dict of str to Curve
    mistakes : int or None
        Wrong predictions (classification).
    marks : tuple of :class:`~kernelstream.monitor.Mark`
        Changes that a monitor has found.
    time : Curve
        Its ``total`` are the seconds spent inside the learner up to each point.
    """

    name: str
    task: str
    n_rows: int
    seconds: float
    model_bytes: int
    metrics: dict[str, float]
    curves: dict[str, Curve] = field(repr=False)
    mistakes: int | None = None
    marks: tuple[Any, ...] = ()
    time: Curve | None = field(default=None, repr=False)

    mistake_rate = _metric("mistake_rate", "Mistakes / rows; None in regression.")
    log_loss = _metric("log_loss", "Mean of -log P(true class), if it was asked for.")
    mse = _metric("mse", "Mean squared error; None in classification.")
    mae = _metric("mae", "Mean absolute error; None in classification.")

    @property
    def accuracy(self) -> float | None:
        """1 - mistake rate; None in regression."""
        return None if self.mistake_rate is None else 1.0 - self.mistake_rate

    @property
    def rmse(self) -> float | None:
        """Square root of the mean squared error; None in classification."""
        return None if self.mse is None else self.mse**0.5

    @property
    def rows_per_second(self) -> float:
        """Rows / seconds."""
        return self.n_rows / self.seconds if self.seconds > 0 else float("nan")

    @property
    def curve(self) -> Curve:
        """The curve of the first metric."""
        return next(iter(self.curves.values()))

    def to_dict(self, curves: bool = True) -> dict[str, Any]:
        """Plain numbers, strings and lists, ready for JSON."""
        out: dict[str, Any] = {
            "name": self.name,
            "task": self.task,
            "n_rows": self.n_rows,
            "seconds": self.seconds,
            "rows_per_second": self.rows_per_second,
            "model_bytes": self.model_bytes,
            **({} if self.mistakes is None else {"mistakes": self.mistakes}),
            **self.metrics,
        }
        if self.marks:
            out["marks"] = [asdict(mark) for mark in self.marks]
        if curves:
            out["curves"] = {
                name: {"rows": curve.rows.tolist(), "value": curve.value.tolist()}
                for name, curve in self.curves.items()
            }
        return out

    def __repr__(self) -> str:
        return f"Result({', '.join(f'{key}: {value}' for key, value in self._shown())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._shown())
        return f"<table>{rows}</table>"

    def _shown(self) -> list[tuple[str, str]]:
        return [
            ("name", self.name),
            ("rows", f"{self.n_rows:,}"),
            *((name, f"{value:.4g}") for name, value in self.metrics.items()),
            ("rows/s", f"{self.rows_per_second:,.0f}"),
            ("model", size_text(self.model_bytes)),
        ]
