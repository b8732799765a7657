"""The rules of the thesis's own programs, where they differ from the published algorithms: what the print measured.

Programs: github.com/jingcoco/Online-Multiple-Kernel-Learning (tables 5.2 to 5.6) and github.com/LIBOL/KOL (table 3.2),
whose learners are those of one kernel. Their rules, for learners i with weights theta_i, f_i before the row:

- a row's vote is sum_i theta_i s_i, s_i = 1 where f_i >= 0, else -1: silence votes for +1; a vote of 0 is a mistake;
- y f_i <= 0 is a mistake of a learner (y f_i < 0 for the weights of SDPA), and multiplies its weight by the discount;
- RBP sets the seed to the clock's second before every draw, so that for a second the vector at one place of the list
  leaves. The programs ran under Windows, where the first number drawn after ``srand(s)`` is the bits 16 to 30 of
  214013 s + 2531011: the place moves up by three or four in a second, and vectors before it stay;
- the Forgetron counts mistakes of rows for which it was not drawn, and may take a root above 1 as its factor;
- PA and BPA-S take k(x, x) for 1: steps min(C, loss). Where BPA-S finds no price below 10^6, the second vector leaves,
  and the row gets the coefficient 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTHS = 2.0 ** np.arange(-6, 7)
DISCOUNT, SMOOTHING = 0.99, 0.001
DEGREES = 3
MOST = 1e6  # prices that BPA-S looks at


class AuthorRules:
    """Learners of one or many kernels for labels -1 and 1, by the rules of the programs.

    Parameters
    ----------
    rule : {"rbp", "forgetron", "bpas", "pa"}
    budget : int or None
        Support vectors of all learners together; each has an equal part of it unless they are ``drawn``.
    drawn : bool
        A learner learns a row with probability (1 - 0.001) theta_i / max theta + 0.001.
    gamma : float or None
        One Gaussian kernel; None for the pool of the thesis.
    C : float
        Limit of PA's coefficients.
    clock : float
        Rows that the program learned in a second: those of the table by its printed seconds.
    """

    def __init__(
        self, rule: str, budget: int | None = None, drawn: bool = False, gamma: float | None = None, C: float = 0.1,
        clock: float = 10_000.0, random_state: int = 0,
    ) -> None:  # fmt: skip
        self.rule, self.budget, self.drawn = rule, budget, drawn
        self.C, self.clock = C, clock
        self.rng = np.random.default_rng(random_state)
        self.gammas = 0.5 / WIDTHS**2 if gamma is None else np.array([gamma])
        self.m = len(self.gammas) + (DEGREES if gamma is None else 0)
        self.classes_ = np.array([-1, 1])
        self.lists: list[list[int]] = [[] for _ in range(self.m)]  # places of every learner's vectors, the oldest first
        self.free: list[int] = []
        self.used = self.rows = 0
        self.theta = np.full(self.m, 1.0 / self.m)
        self.damage, self.errors = np.zeros(self.m), np.zeros(self.m)  # the Forgetron's Q and M
        self.S = np.zeros((0, 0))  # vectors are columns, so that rows with few entries need few of its rows
        self.norms, self.alpha, self.owner = np.zeros(0), np.zeros(0), np.zeros(0, np.intp)
        self.near = np.zeros((0, 0))  # of the Forgetron: a vector's kernel values with the earlier ones, a row of each
        self.start = self.rng.random() * (1 << 31)  # seconds, and the part of one, at which the run starts

    @property
    def size_(self) -> int:
        """Support vectors."""
        return self.used

    def learn(self, X: Any, y: np.ndarray, classes: Any = None) -> np.ndarray:
        """Votes before each row was learned."""
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
        if not self.S.size:
            self._room(256 if self.budget is None else self.budget + 1, X.shape[1])
        return np.array([self._row(x, 1.0 if label > 0 else -1.0) for x, label in zip(X, y.tolist(), strict=True)])

    def _room(self, capacity: int, columns: int) -> None:
        """Place for so many vectors."""
        before = len(self.norms)
        more = capacity - before
        self.S = np.hstack([self.S.reshape(columns, before), np.zeros((columns, more))])
        self.norms, self.alpha = (np.append(values, np.zeros(more)) for values in (self.norms, self.alpha))
        self.owner = np.append(self.owner, np.zeros(more, np.intp))
        if self.rule == "forgetron":
            self.near = np.zeros((capacity, capacity))
        self.free += range(capacity - 1, before - 1, -1)

    def _kernels(self, x: np.ndarray) -> np.ndarray:
        """k_i(s, x) of every vector s with the kernel of its learner i; those of free places do not matter."""
        there, first = np.flatnonzero(x), len(self.gammas)
        dots = x[there] @ self.S[there] if 3 * len(there) < len(x) else x @ self.S
        width = self.gammas[np.minimum(self.owner, first - 1)]
        values = np.exp(-width * np.maximum(self.norms + x @ x - 2.0 * dots, 0.0))
        polynomials = np.flatnonzero(self.owner >= first)
        values[polynomials] = dots[polynomials] ** (self.owner[polynomials] - first + 1)
        return values

    def _row(self, x: np.ndarray, y: float) -> float:
        k = self._kernels(x)
        f = np.bincount(self.owner, self.alpha * k, self.m)
        vote = float(self.theta @ np.where(f >= 0, 1.0, -1.0))
        wrong, loss = y * f <= 0, 1.0 - y * f
        chosen = np.ones(self.m, bool)
        if self.drawn:
            chosen = self.rng.random(self.m) < (1 - SMOOTHING) * self.theta / self.theta.max() + SMOOTHING
        self.errors += wrong
        updated = chosen & (wrong if self.rule in ("rbp", "forgetron") else loss > 0)
        for i in np.flatnonzero(updated).tolist():
            self._update(i, x, y, k, f[i], loss[i])
        counted = (y * f < 0) & chosen if self.rule == "pa" and self.drawn else wrong & chosen
        self.theta = self.theta * np.where(counted, DISCOUNT, 1.0)
        self.theta /= self.theta.sum()
        self.rows += 1
        return vote if vote != 0.0 else -y

    def _update(self, i: int, x: np.ndarray, y: float, k: np.ndarray, f: float, loss: float) -> None:
        step = {"rbp": 1.0, "forgetron": 1.0}.get(self.rule, min(self.C, loss)) * y
        full = self.budget is not None and (
            self.used >= self.budget if self.drawn else len(self.lists[i]) >= self.budget // self.m
        )
        if full and self.rule == "bpas":
            if not self.lists[i]:
                return
            place, step = self._replaced(i, y, k, f, step)
            self._drop(i, place)
        self._join(i, x, step, k)
        if full and self.rule != "bpas":
            if self.rule == "forgetron":
                self._shrink(i)
            self._drop(i, self._second() % max(1, len(self.lists[i]) - 1) if self.rule == "rbp" else 0)

    def _replaced(self, i: int, y: float, k: np.ndarray, f: float, step: float) -> tuple[int, float]:
        """Place of the vector that the row replaces at the least price, and its coefficient."""
        alpha, near = self.alpha[self.lists[i]], k[self.lists[i]]
        beta = alpha * near + step
        left = np.maximum(0.0, 1.0 - y * (f - alpha * near + beta))
        price = 0.5 * (alpha**2 + beta**2 - 2.0 * beta * alpha * near) + self.C * left
        best = int(np.where(price < MOST, price, MOST).argmin())
        return (best, float(beta[best])) if price[best] < MOST else (min(1, len(price) - 1), 1.0)

    def _shrink(self, i: int) -> None:
        """Multiply the function by the factor of the Forgetron's program."""
        slots = np.array(self.lists[i])
        first = self.lists[i][0]
        k = self.near[slots, first]
        label, delta = np.sign(self.alpha[first]), abs(self.alpha[first])
        mu = label * float(self.alpha[slots] @ k)
        a, b, c = delta * delta - 2 * delta * mu, 2 * delta, self.damage[i] - 15 / 32 * self.errors[i]
        phi = 1.0
        if a == 0:
            phi = max(0.0, min(1.0, -c / b))
        elif a + b + c > 0:
            phi = (-b + np.sign(a) * np.sqrt(b * b - 4 * a * c)) / (2 * a)
        self.damage[i] += (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)
        self.alpha[slots] *= phi

    def _second(self) -> int:
        """What a generator draws first that was seeded with the clock's second."""
        now = int(self.start + self.rows / self.clock)
        return (214013 * now + 2531011) >> 16 & 0x7FFF

    def _join(self, i: int, x: np.ndarray, coefficient: float, k: np.ndarray) -> None:
        if not self.free:
            self._room(2 * len(self.norms), len(x))
        slot = self.free.pop()
        self.S[:, slot], self.norms[slot], self.owner[slot] = x, x @ x, i
        self.alpha[slot] = coefficient
        if self.near.size:
            self.near[slot] = k
            self.near[slot, slot] = 1.0 if i < len(self.gammas) else self.norms[slot] ** (i - len(self.gammas) + 1)
        self.lists[i].append(slot)
        self.used += 1

    def _drop(self, i: int, place: int) -> None:
        slot = self.lists[i].pop(place)
        self.alpha[slot] = 0.0
        self.free.append(slot)
        self.used -= 1
