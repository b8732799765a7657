r"""How good answers are: counted block by block, for labels and for numbers.

With N_ij rows of label i answered by j, n in all::

    kappa = (sum_i N_ii/n - sum_i N_i. N_.i/n^2) / (1 - sum_i N_i. N_.i/n^2)        (Cohen 1960)
    F1 of a label = 2 N_ii / (N_i. + N_.i);  of two labels that of the second, of more the mean over all
    AUC = share of pairs of a row of the second label and one of the first that the probabilities put in order
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._metrics import errors, log_losses


class LabelTally:
    """Answers of a classifier; ``add`` takes labels, answers, and the probabilities of the labels that were true."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Any, Any], int] = {}
        self.n, self.log = 0, 0.0
        self.truth: list[np.ndarray] = []
        self.given: list[np.ndarray] = []

    def add(self, y: np.ndarray, answer: np.ndarray, p: np.ndarray | None = None) -> None:
        pairs, counts = np.unique(np.stack([y.astype(str), answer.astype(str)]), axis=1, return_counts=True)
        for true, said, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            self.counts[true, said] = self.counts.get((true, said), 0) + count
        self.n += len(y)
        if p is not None:
            self.log += float(log_losses(p).sum())
            self.truth.append(np.asarray(y))
            self.given.append(np.asarray(p, np.float64))

    def table(self) -> tuple[list[str], np.ndarray]:
        """Labels, and how many rows of each (row) were answered by each (column)."""
        labels = sorted({label for pair in self.counts for label in pair}, key=_order)
        N = np.zeros((len(labels), len(labels)), np.int64)
        for (true, said), count in self.counts.items():
            N[labels.index(true), labels.index(said)] = count
        return labels, N

    def result(self) -> dict[str, Any]:
        labels, N = self.table()
        right, rows, columns = np.trace(N) / self.n, N.sum(axis=1), N.sum(axis=0)
        chance = float(rows @ columns) / self.n**2
        f1 = 2 * np.diag(N) / np.maximum(rows + columns, 1)
        wrong = int(N.sum() - np.trace(N)) / self.n
        out = {"mistake_rate": wrong, "accuracy": 1 - wrong}
        if self.truth:
            out["log_loss"] = self.log / self.n
            out |= {"auc": self._auc(labels)} if len(labels) == 2 else {}
        out["kappa"] = float((right - chance) / (1 - chance)) if chance < 1 else float("nan")
        out["f1"] = float(f1[1] if len(labels) == 2 else f1.mean())
        return out

    def _auc(self, labels: list[str]) -> float:
        positive = np.concatenate(self.truth).astype(str) == labels[1]
        p = np.concatenate(self.given)
        score = np.where(positive, p, 1 - p)
        _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
        rank = (np.cumsum(counts) - (counts - 1) / 2)[place]  # of equal ones the mean
        n1, n0 = int(positive.sum()), int((~positive).sum())
        return float((rank[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)) if n1 and n0 else float("nan")


def _order(label: str) -> tuple[int, float, str]:
    """Numbers by size, before words by name."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


class NumberTally:
    """Answers of a regressor: squared and absolute errors, the share of variance explained; scores of quantiles."""

    def __init__(self) -> None:
        self.n, self.squares, self.absolute = 0, 0.0, 0.0
        self.crps: float | None = None
        self.mean = self.m2 = 0.0

    def add(self, y: np.ndarray, answer: np.ndarray, scores: np.ndarray | None = None) -> None:
        if scores is not None:
            self.crps = (self.crps or 0.0) + float(scores.sum())
        self.squares += float(errors("regression", y, answer).sum())
        self.absolute += float(np.abs(answer - y).sum())
        # moments of the targets, block by block (Chan, Golub, LeVeque 1983)
        n, mean = len(y), float(y.mean())
        delta = mean - self.mean
        self.m2 += float(((y - mean) ** 2).sum()) + delta**2 * self.n * n / (self.n + n)
        self.mean += delta * n / (self.n + n)
        self.n += n

    def result(self) -> dict[str, Any]:
        mse = self.squares / self.n
        r2 = 1 - self.squares / self.m2 if self.m2 > 0 else float("nan")
        out = {"mse": mse, "rmse": mse**0.5, "mae": self.absolute / self.n, "r2": r2}
        return out if self.crps is None else out | {"crps": self.crps / self.n}
