r"""Online learning on explicit features by blocks of rows, exactly as row by row.

For a block with features Z (m, P)::

    F = Z w',   S = Z Z'                                     matrix products
    for each row i:  f = F_i;  (decay, tau) = step(loss, y_i, f, S_ii, t);
                     F_j <- decay F_j + tau S_ij for the later rows j;  alpha_i = tau, alpha_j <- decay alpha_j before
    w <- (product of the decays) w + alpha'Z                 a matrix product

The loop sees numbers only, so the scores and weights are those of the row-by-row loop, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ...core.overflow import LEARNING
from ...core.threads import cuts
from ...losses import Loss
from ...passes.linear.python import folded
from ...passes.spec import Told
from ...state.nested import State
from ...updates import Update
from . import from_array
from .maps import on_device


class DeviceFeaturePass:
    """Weights of a model on the device, and the passes over rows.

    Parameters
    ----------
    ops : Ops
    mapping : Mapping
    loss : Loss
    update : Update
        One that returns (decay, tau).
    state : dict
        ``w`` (C, P), ``scale`` (C,), ``memory``, ``t``, and ``center`` where the target is centred. The weights are
        read once; :meth:`sync` writes them back.
    """

    def __init__(self, ops: Any, mapping: Any, loss: Loss, update: Update, state: State):
        self.ops, self.state, self.loss, self.update = ops, state, loss, update
        self.map = on_device(ops, mapping)
        state |= folded(state)
        # what learning changes in place, by the names in the state: w, G and w_mean, as far as there are such
        self.held = {name: ops.tensor(self._of_state(name)) for name in ("w", "G", "w_mean") if name in state}
        self.stale = False  # whether the state is behind the device
        self.behind = False  # whether the device is behind the state, because the CPU has learned rows

    @cached_property
    def spec(self) -> Any:
        """Loss and update, as the CPU's recursion takes them."""
        return self.ops.host.spec(self.loss, self.update)

    @property
    def w(self) -> torch.Tensor:
        """The weights that learn, (C, P)."""
        return self.held["w"]

    @property
    def answering(self) -> torch.Tensor:
        """The weights that answer, (C, P)."""
        return self.held.get("w_mean", self.w)

    def _of_state(self, name: str) -> np.ndarray:
        """An entry of the state that the device holds; of the weights, with their scale."""
        value = self.state[name]
        return value * self.state["scale"][:, None].astype(value.dtype) if name == "w" else value

    def leave(self) -> None:
        """Hand over to the CPU."""
        self.sync()
        self.behind = True

    def join(self) -> None:
        """Take over from the CPU."""
        if self.behind:
            self._load()
            self.behind = False

    def _load(self) -> None:
        """Bring the device up to date with the state."""
        self.state |= folded(self.state)
        for name, held in self.held.items():
            held.copy_(from_array(self._of_state(name)))

    def sync(self) -> None:
        """Bring the state up to date with the device."""
        if self.stale:
            for name, held in self.held.items():
                self.state[name][:] = held.cpu().numpy()
            self.state["scale"][:] = 1.0
            self.stale = False

    def mark(self) -> Callable[[], DeviceFeaturePass]:
        """A function that undoes what is learned from now on and returns the pass."""
        stale, behind = self.stale, self.behind
        kept = [] if behind else [(held, held.clone()) for held in self._tensors()]

        def put_back() -> DeviceFeaturePass:
            for held, before in kept:
                held.copy_(before)
            self.stale, self.behind = stale, behind
            return self

        return put_back

    def _tensors(self) -> list[torch.Tensor]:
        """What learning changes in place."""
        return [*self.held.values()]

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn the rows in order; returns the scores before each update, (n, C) float64."""
        n, C = X.shape[0], len(self.w)
        scores = np.empty((n, C))
        self.stale = True
        self.map.look(X)
        with self.ops.products():
            for rows in cuts(n, self.ops.block):
                part = None if weight is None else weight[rows]
                scores[rows] = self._block(self.ops.rows(X, rows, self.map.dtype), y[rows], part)
        self._check(scores)
        return scores

    def _check(self, scores: np.ndarray) -> None:
        """ValueError where finite rows led beyond the range of floats; the caller undoes the call."""
        if not (np.isfinite(scores).all() and all(bool(held.isfinite().all()) for held in self._tensors())):
            raise ValueError(LEARNING)

    def score(self, X: Any) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        scores, weights = np.empty((X.shape[0], len(self.w))), self.answering.T
        self.map.look(X)
        with self.ops.products():
            for rows in cuts(X.shape[0], self.ops.block):
                scores[rows] = (self._features(self.ops.rows(X, rows, self.map.dtype)) @ weights).double().cpu().numpy()
        return scores + self.state["center"][1] if "center" in self.state else scores

    def _scores(self, Z: torch.Tensor) -> np.ndarray:
        """``Z w'`` in this machine's memory, (m, C) float64; the weights are not rounded."""
        with self.ops.full():
            return (Z @ self.w.T).double().cpu().numpy()

    def _features(self, X: torch.Tensor) -> torch.Tensor:
        return self.map(X)

    def _block(self, X: torch.Tensor, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """One block, with its recursion on the CPU: works for every loss and update."""
        state = self.state
        Z = self._features(X)
        F = self._scores(Z)
        S = (Z @ Z.T).double().cpu().numpy()
        if self.map.unit:
            np.fill_diagonal(S, 1.0)
        targets = Told(y, weight)
        _, joined, coefficients, decay = self.ops.host.expansion_pass(F, S, targets, self.spec, state, len(F))
        state["t"] += len(F) if weight is None else int(np.count_nonzero(weight))
        if (decay != 1.0).any():
            self.w.mul_(self.ops.tensor(decay[:, None]).to(self.w.dtype))
        if len(joined):
            alpha = np.zeros((len(F), len(self.w)))
            alpha[joined] = coefficients
            with self.ops.full():
                self.w.add_(self.ops.tensor(alpha.T).to(Z.dtype) @ Z)
        return F
