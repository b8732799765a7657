"""Strategies that remove one support vector to make room for the new one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..checks import flag, positive
from ..state.schema import Array
from ._base import Budget, Row, SupportSet, register

EQUAL = 1e-5  # relative difference up to which two terms are of the same size


@register
class RemoveRandom(Budget):
    """Drop a support vector chosen uniformly at random.

    Cavallanti, Cesa-Bianchi, Gentile: Tracking the best hyperplane with a simple budget Perceptron, Machine Learning 69
    (2007); with the perceptron update it is RBP.
    """

    name = "remove_random"
    random = True

    def absorb(self, S: SupportSet, row: Row) -> None:
        S.place(int(row.u * S.capacity) if S.full else S.n, row, row.tau)


@register
class BOGD(Budget):
    """Drop a support vector at random and scale the others by B/(B - 1), which keeps f right on average.

    Afterwards all coefficients are scaled together so that none exceeds ``limit`` (eta × gamma_max in the paper: Zhao,
    Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms, ICML 2012).

    Parameters
    ----------
    limit : float
        Largest absolute coefficient; ``inf`` for none.
    oldest : bool
        The oldest leaves and no other changes: what the programs of Lu's thesis do by this name.
    """

    name = "bogd"
    random = True
    least = 2
    n_memory = 1  # the oldest slot

    def __init__(self, limit: float = math.inf, oldest: bool = False):
        self.limit = limit
        self.oldest = oldest

    @property
    def turns(self) -> bool:  # type: ignore[override]
        """Where the oldest leaves."""
        return self.oldest

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        super().check(budget, kernel, loss, update)
        positive("limit", self.limit, infinite=True)
        flag("oldest", self.oldest)

    def absorb(self, S: SupportSet, row: Row) -> None:
        if not S.full:
            return S.place(S.n, row, row.tau)
        if self.oldest:
            turn = S.state["budget_memory"]
            r = int(turn[0])
            turn[0] = (r + 1) % S.capacity
            return S.place(r, row, row.tau)
        S.shrink(S.capacity / (S.capacity - 1))
        S.place(int(row.u * S.capacity), row, row.tau)
        largest = np.abs(S.coefficients).max()
        if largest > self.limit:
            S.shrink(self.limit / largest)

    def native(self) -> Any:
        return self.name, [self.limit, float(self.oldest)]


@register
class Forgetron(Budget):
    r"""Drop the oldest support vector, after shrinking f as little as its mistake bound allows (the self-tuned
    Forgetron).

    With f' the function that already holds the new row, r the oldest vector, ``mu = y_r f'(x_r)``, ``delta =
    |alpha_r|``, M the number of updates and Q the sum of the damages so far, phi is the largest number in (0, 1] with
    ``(delta phi)^2 + 2 delta phi (1 - phi mu) + Q <= (15/32) M``; f' is scaled by phi and r dropped.

    Dekel, Shalev-Shwartz, Singer: The Forgetron, SIAM Journal on Computing 37 (2008).
    """

    name = "forgetron"
    gram = True
    n_memory = 3  # Q, M, the oldest slot
    turns = True

    def absorb(self, S: SupportSet, row: Row) -> None:
        memory = S.state["budget_memory"]
        memory[1] += 1
        if not S.full:
            return S.place(S.n, row, row.tau)
        Q, M, r = memory[0], memory[1], int(memory[2])
        alpha = S.coefficients
        f_r = alpha @ S.state["budget_gram"][r, : S.n] + row.tau * row.k[r]  # f'(x_r)
        c = int(np.argmax(alpha[:, r]))  # the class of x_r: the only one that was moved up
        delta = abs(alpha[c, r])
        mu = {"binary": np.sign(alpha[c, r]) * f_r[c], "multiclass": f_r[c], "regression": abs(f_r[c])}[row.kind]
        phi = _largest_factor(delta, mu, Q - 15 / 32 * M)
        memory[0] = Q + (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)
        memory[2] = (r + 1) % S.capacity
        S.place(r, row, row.tau)
        S.shrink(phi)


def _largest_factor(delta: float, mu: float, c: float) -> float:
    """Largest phi in (0, 1] with a phi^2 + b phi + c <= 0, a = delta^2 - 2 delta mu, b = 2 delta, c < 0."""
    a, b = delta * delta - 2 * delta * mu, 2 * delta
    return 1.0 if a + b + c <= 0 else -2 * c / (b + math.sqrt(b * b - 4 * a * c))


@register
class RemoveSmallest(Budget):
    """Drop the support vector with the smallest ``||alpha_j||^2 k(s_j, s_j)``, the new one included.

    Equal ones leave in turn, slot after slot: the oldest first, with steps that make all equal, as those of Pegasos on
    the hinge loss do. (Always the first slot would keep all others as they were when the set was full.)

    The removal of Wang, Crammer, Vucetic: Breaking the curse of kernelization (BSGD), JMLR 13 (2012).
    """

    name = "remove_smallest"
    n_memory = 1  # the slot whose turn it is
    turns = True

    def absorb(self, S: SupportSet, row: Row) -> None:
        if not S.full:
            return S.place(S.n, row, row.tau)
        memory = S.state["budget_memory"]
        r = smallest(S, row, int(memory[0]))
        if r < S.capacity:
            memory[0] = (r + 1) % S.capacity
            S.place(r, row, row.tau)


def smallest(S: SupportSet, row: Row, turn: int = 0) -> int:
    """Slot of the smallest term of f; ``S.n`` when that is the new row itself.

    Among equal ones it is the first slot from ``turn`` on, or else from 0 on. Pegasos gives all vectors
    that moved once the same coefficient, up to rounding: sizes this close are equal.
    """
    sizes = (S.coefficients**2).sum(axis=0) * S.diag[: S.n]
    equal = np.flatnonzero(sizes <= sizes.min() * (1.0 + EQUAL))
    r = int(equal[np.searchsorted(equal, turn) % len(equal)])
    return r if sizes[r] <= float(row.tau @ row.tau) * row.k_xx * (1.0 + EQUAL) else S.n


@register
class RemoveRedundant(Budget):
    """Drop the support vector that is classified best without its own help (the budget perceptron).

    The margin ``y_j (f'(x_j) - alpha_j k(x_j, x_j))``, f' holding the new row already, is largest for the vector whose
    removal does least harm; multi-class margins are taken against the best wrong class.

    Crammer, Kandola, Singer: Online classification on a budget, NIPS 2003.
    """

    name = "remove_redundant"
    kinds = ("binary", "multiclass")
    gram = True

    def schema(self, state: Any, capacity: Any, kernel: Any) -> Any:
        # scores of the support vectors, without the factor `scale`; in float64, because they are sums kept for long
        scores = Array((state["n_outputs"], capacity))
        return super().schema(state, capacity, kernel) | {"budget_scores": scores}

    def absorb(self, S: SupportSet, row: Row) -> None:
        scores, n = S.state["budget_scores"], S.n
        scores[:, :n] += np.outer(row.tau / S.scale, row.k)
        own = row.f + row.tau * row.k_xx
        slot = n
        if S.full:
            slot = int(np.argmax(margins(scores * S.scale[:, None], S.coefficients, S.diag)))
            removed = S.coefficients[:, slot]
            own -= removed * row.k[slot]
            scores -= np.outer(removed / S.scale, S.state["budget_gram"][slot])
        S.place(slot, row, row.tau)
        scores[:, slot] = own / S.scale


def margins(f: np.ndarray, alpha: np.ndarray, diag: np.ndarray) -> np.ndarray:
    """Margin of every support vector without its own term, (n,); its class is the one its coefficient moves up."""
    rest = f - alpha * diag
    if len(alpha) == 1:
        return np.sign(alpha[0]) * rest[0]
    y, j = alpha.argmax(axis=0), np.arange(alpha.shape[1])
    right = rest[y, j]
    rest[y, j] = -np.inf
    return right - rest.max(axis=0)
