"""Members that share work: Fourier features of Gaussian kernels made of the same random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...features import RandomFourier, sampling
from ...kernels import Gaussian
from ...rows import Rows
from .._contract.base import State
from ..feature import MAP, Linear, map_entries
from .members import target


class FourierFamily:
    """Members i with features ``[cos(s_i P), sin(s_i P)]``, P the projections on one set of frequencies.

    Attributes
    ----------
    W : (d, D)
        The frequencies of the Gaussian kernel with sigma = 1.
    stretch : (k,)
        s_i = 1/sigma_i, ascending: the angles of one member are often twice those of the one before.
    where : (k,)
        Positions of the members among all.
    """

    def __init__(self, members: list[Any], where: list[int], ops: Any):
        kernels = [_kernel(members[i]) for i in where]
        stretch = np.array([math.sqrt(2.0 * kernel.gamma) for kernel in kernels])
        order = np.argsort(stretch, kind="stable")
        self.where = [where[i] for i in order]
        self.stretch = stretch[order].tolist()
        own = [members[i] for i in self.where]
        self.states: list[State] = [member._state for member in own]
        self.specs = [ops.spec(member._loss_now(member._state), member._learner.update) for member in own]
        self.ops, self.member = ops, own[0]
        state, sampler = own[0]._state, own[0]._learner.map.sampling
        D = max(member._learner.map.n_components for member in own)
        unit = Gaussian(0.5)
        self.W = sampling.frequencies(unit, state[MAP + "seed"], state["n_features"], D, sampler, state["dtype"])

    def project(self, X: Rows, buffer: str) -> np.ndarray:
        """Projections of the rows, (n, D), in a buffer that the next call with the same name uses again."""
        D = self.W.shape[1]
        return self.ops.matmul(X, self.W, self.ops.workspace(buffer, (X.shape[0], D), self.W.dtype))

    def target(self, state: State, y: np.ndarray) -> np.ndarray:
        """Encoded target of the whole as these members take it."""
        return target(self.member, state, y)

    def learn(self, P: np.ndarray, y: np.ndarray, weights: np.ndarray | None, F: np.ndarray) -> None:
        """Learn rows with projections P (n, D) and weights (m, n) of all members; writes these members' part of F."""
        own = None if weights is None else weights[self.where]
        F[self.where] = self.ops.family_pass(P, self.stretch, y, own, self.states, self.specs)


def find(members: list[Any], outputs: int, ops: Any) -> FourierFamily | None:
    """The largest set of members with ``outputs`` outputs whose maps differ only in the width of their Gaussians."""
    groups: dict[Any, list[int]] = {}
    for i, member in enumerate(members):
        key = _key(member)
        if key is not None and member._state["n_outputs"] == outputs:
            groups.setdefault(key, []).append(i)
    largest = max(groups.values(), key=len, default=[])
    return FourierFamily(members, largest, ops) if len(largest) > 1 else None


def _key(member: Any) -> Any:
    if type(member._learner) is not Linear or not isinstance(member._learner.map, RandomFourier):
        return None
    if member._ops.on_device:  # its weights may be on the device
        return None
    if type(_kernel(member)) is not Gaussian:
        return None
    features, loss = member._learner.map, member._loss_now(member._state)
    # independent frequencies do not depend on how many there are; the others do
    D = None if features.sampling == "iid" else features.n_components
    return member._state[MAP + "seed"], features.sampling, D, loss.kind


def _kernel(member: Any) -> Any:
    return member._learner.map.resolved(map_entries(member._state))
