r"""How good answers are, counted while rows pass: means over rows, their curves, and what is known at the end only.

With N_ij rows of label i answered by j, n in all::

    kappa = (sum_i N_ii/n - sum_i N_i. N_.i/n^2) / (1 - sum_i N_i. N_.i/n^2)        (Cohen 1960)
    F1 of a label = 2 N_ii / (N_i. + N_.i);  of two labels that of the second, of more the mean over all
    AUC = share of pairs of a row of the second label and one of the first that the probabilities put in order
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._result import Recorder
from .metrics import Metric, choose

HELD_ROWS = 256  # small blocks are counted together: arithmetic on single rows would dominate


class Tally:
    """Counts answers, block by block.

    Parameters
    ----------
    task : {"classification", "regression", "novelty"}
    metrics : str, callable, Metric or a sequence of them, optional
        See :func:`prequential`; the basic ones of the task are counted in any case.
    points : int, default=0
        About how many points the curves of the metrics have.
    detailed : bool, default=True
        Whether to count what :meth:`result` needs beyond the metrics. Of answers with probabilities it keeps these, one
        number for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.evaluate import Tally
    >>> tally = Tally("classification")
    >>> _ = tally.add(np.array(["a", "b", "b"]), np.array(["a", "b", "a"]))
    >>> round(tally.result()["mistake_rate"], 3), tally.table()[1].tolist()
    (0.333, [[1, 0], [1, 1]])
    """

    def __init__(self, task: str, metrics: Any = None, points: int = 0, detailed: bool = True) -> None:
        self.task, self.detailed = task, detailed
        self.metrics: list[Metric] = choose(metrics, task)
        self.recorders = {metric.name: Recorder(points) for metric in self.metrics}
        self.counts: dict[tuple[str, str], int] = {}  # rows by label and answer
        self.rated: list[tuple[np.ndarray, np.ndarray]] = []  # labels, and the probabilities they were given
        self.mean = self.m2 = 0.0  # of the targets, where they are numbers
        self._held: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []
        self._n_held = 0

    @property
    def n(self) -> int:
        """Rows counted."""
        return self.recorders[self.metrics[0].name].n

    @property
    def needs_probability(self) -> bool:
        """Whether a metric asks for the probabilities of the labels that were true, or the scores of quantiles."""
        return any(metric.needs_probability for metric in self.metrics)

    def add(self, y: Any, answer: np.ndarray, p: np.ndarray | None = None) -> bool:
        """Count the answers of a block; True when the sums have changed: few rows wait for others.

        Parameters
        ----------
        y : (n,) array
            Labels or numbers; of novelties anything, or None.
        answer : (n,) array
        p : (n,) array, optional
            The probability that was given to each true label, or :func:`crps` of the quantiles of each number.
        """
        self._held.append((np.empty(len(answer)) if y is None else np.asarray(y), np.asarray(answer), p))
        self._n_held += len(answer)
        if self._n_held < HELD_ROWS:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Count the rows that wait."""
        if not self._n_held:
            return
        y, answer = (np.concatenate([part[i] for part in self._held]) for i in (0, 1))
        given = [p for _, _, p in self._held if p is not None]
        p = np.concatenate(given) if given else None
        self._held, self._n_held = [], 0
        if self.task == "regression":
            y, answer = y.astype(np.float64), answer.astype(np.float64)
        for metric in self.metrics:
            self.recorders[metric.name].add(metric.rows(y, answer, p), len(y))
        if self.detailed and self.task == "regression":
            self._numbers(y)
        elif self.detailed and self.task == "classification":
            self._labels(y.astype(str), answer.astype(str), p)

    def _labels(self, y: np.ndarray, answer: np.ndarray, p: np.ndarray | None) -> None:
        pairs, counts = np.unique(np.stack([y, answer]), axis=1, return_counts=True)
        for true, answered, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            self.counts[true, answered] = self.counts.get((true, answered), 0) + count
        if p is not None:
            self.rated.append((y, np.asarray(p, np.float64)))

    def _numbers(self, y: np.ndarray) -> None:
        """Moments of the targets, block by block (Chan, Golub, LeVeque 1983)."""
        before, n, mean = self.n - len(y), len(y), float(y.mean())
        delta = mean - self.mean
        self.m2 += float(((y - mean) ** 2).sum()) + delta**2 * before * n / (before + n)
        self.mean += delta * n / (before + n)

    def value(self, name: str | None = None) -> float:
        """A metric over all rows so far, by default the first; NaN where there are none."""
        metric = self.metrics[0] if name is None else next(metric for metric in self.metrics if metric.name == name)
        recorder = self.recorders[metric.name]
        return metric.finish(recorder.sum / recorder.n) if recorder.n else float("nan")

    def table(self) -> tuple[list[str], np.ndarray]:
        """Labels, and how many rows of each (row) were answered by each (column)."""
        self.flush()
        labels = sorted({label for pair in self.counts for label in pair}, key=_order)
        N = np.zeros((len(labels), len(labels)), np.int64)
        for (true, answered), count in self.counts.items():
            N[labels.index(true), labels.index(answered)] = count
        return labels, N

    def result(self) -> dict[str, float]:
        """Everything that was counted, by name."""
        labels, N = self.table()
        found = {metric.name: self.value(metric.name) for metric in self.metrics}
        if self.task == "regression":
            r2 = 1 - self.recorders["mse"].sum / self.m2 if self.m2 > 0 else float("nan")
            return found | {"r2": r2}
        if self.task == "novelty" or not self.n:
            return found
        right, rows, columns = np.trace(N) / self.n, N.sum(axis=1), N.sum(axis=0)
        chance = float(rows @ columns) / self.n**2
        f1 = 2 * np.diag(N) / np.maximum(rows + columns, 1)
        found |= {"auc": self._auc(labels)} if self.rated and len(labels) == 2 else {}
        found["kappa"] = float((right - chance) / (1 - chance)) if chance < 1 else float("nan")
        return found | {"f1": float(f1[1] if len(labels) == 2 else f1.mean())}

    def _auc(self, labels: list[str]) -> float:
        from sklearn.metrics import roc_auc_score  # slow to import

        positive = np.concatenate([y for y, _ in self.rated]) == labels[1]
        p = np.concatenate([p for _, p in self.rated])
        if positive.all() or not positive.any():
            return float("nan")
        return float(roc_auc_score(positive, np.where(positive, p, 1 - p)))


def _order(label: str) -> tuple[int, float, str]:
    """Numbers by size, before words by name."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label
