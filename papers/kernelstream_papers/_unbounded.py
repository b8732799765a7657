"""Kernel expansions without a budget on sets with many rows, ``f = sum_i alpha_i exp(-gamma |x_i - x|^2)``.

The perceptron, OGD and PA-I exactly row by row, as the recipes of these names; kernel values are made for many rows at
once, by torch on a GPU where there is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 2048  # rows whose kernel values among themselves are made at once
COLUMNS = 65_536  # support vectors in one product


def _arrays() -> Any:
    """Torch and its device, or numpy."""
    try:
        import torch
    except ImportError:
        return np, {}
    return (torch, {"device": "cuda"}) if torch.cuda.is_available() else (np, {})


class Unbounded:
    """Labels -1 and 1; ``step`` is eta of OGD, C of PA-I, and 1 for the perceptron."""

    def __init__(self, rule: str, gamma: float, step: float = 1.0) -> None:
        self.rule, self.gamma, self.step = rule, gamma, step
        self.classes_ = np.array([-1, 1])
        self.xp, self.where = _arrays()
        self.vectors: list[Any] = []  # blocks of support vectors and of their coefficients
        self.alphas: list[Any] = []
        self.size_ = 0

    def _kernel(self, A: Any, B: Any) -> Any:
        squares = (A * A).sum(1)[:, None] + (B * B).sum(1) - 2.0 * (A @ B.T)
        return self.xp.exp(squares.clip(0.0) * -self.gamma)

    def _coefficient(self, y: float, f: float) -> float:
        if self.rule == "perceptron":
            return 0.0 if (f >= 0) == (y > 0) else y
        loss = max(0.0, 1.0 - y * f)
        return y * (min(self.step, loss) if self.rule == "pa1" else self.step * (loss > 0))

    def learn(self, X: Any, y: np.ndarray, classes: Any = None) -> np.ndarray:
        """Scores before each row was learned."""
        return np.concatenate([self._block(X[at : at + BLOCK], y[at : at + BLOCK]) for at in range(0, len(y), BLOCK)])

    def _block(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        rows = self.xp.asarray(X, **self.where)
        f = sum((self._kernel(rows, S) @ a for S, a in zip(self.vectors, self.alphas, strict=True)), rows[:, 0] * 0.0)
        near = self._kernel(rows, rows)
        scores, K = (np.asarray(v.cpu() if self.where else v, np.float64) for v in (f, near))
        alpha = np.zeros(len(y))
        for i, label in enumerate(y.tolist()):
            scores[i] += K[i, :i] @ alpha[:i]
            alpha[i] = self._coefficient(1.0 if label > 0 else -1.0, scores[i])
        kept = np.flatnonzero(alpha)
        self._keep(self.xp.asarray(X[kept], **self.where), self.xp.asarray(alpha[kept].astype(X.dtype), **self.where))
        return scores

    def _keep(self, S: Any, a: Any) -> None:
        join = self.xp.cat if self.where else np.concatenate
        if self.vectors and len(self.alphas[-1]) < COLUMNS:
            S, a = join([self.vectors.pop(), S]), join([self.alphas.pop(), a])
        self.vectors.append(S)
        self.alphas.append(a)
        self.size_ = sum(map(len, self.alphas))
