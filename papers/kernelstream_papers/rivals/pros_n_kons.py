r"""PROS-N-KONS: online Newton steps in a Nyström space that grows with the stream."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from kernelstream import estimators, second_order
from kernelstream.core.triangular import upper_factor
from kernelstream.develop import State, StreamClassifier, StreamRegressor, WithKernel, described, entry, whole
from kernelstream.estimators.second_order.base import mix_matrices, targets
from kernelstream.features.nystroem import gram, projection
from kernelstream.losses import Squared
from kernelstream.random import SeedStream, generator
from kernelstream.rows import Rows, dense
from kernelstream.second_order import Newton, RowRecursion, Rule
from kernelstream.state.change import Change
from kernelstream.state.schema import POSITIVE, Array, Count, Schema, length

COINS = 1024  # rows whose random numbers are made at once


class LeverageSampling(WithKernel):
    """Row sampling by leverage (KORS), and the Newton recursion between its restarts."""

    _replaced, _by_row = second_order.REPLACED, second_order.BY_ROW

    alpha: float
    beta: float
    epsilon: float
    C: float
    budget: int | None

    @cached_property
    def rule(self) -> Rule:
        """What a row does to A and w."""
        # The paper's loss (y - f)² is twice ours, so its A is twice ours too: A_0 = alpha I becomes alpha/2 I, and
        # its sigma/2 = 1/(16 C²), for gradients 2(f - y), becomes 1/(8 C²).
        return Newton(Squared(), 1 / (8 * self.C**2), float(self.C))

    # ---------------------------------------------------------------- state
    def reset(self, state: State) -> None:
        state |= {
            "dictionary": np.zeros((0, state["n_features"]), state["dtype"]),
            "probability": np.zeros(0),
            "n_restarts": 0,
        }
        self._restart(state)

    def _restart(self, state: State) -> None:
        """Start a new embedding, and forget everything learned in the old one."""
        self.derived.drop("projection", "leverage", "held")
        width = self._projection(state).shape[1]
        outputs = state["n_outputs"]
        second_order.start(state, width, outputs, outputs, np.array([self.alpha / 2]), 1.0)

    def _projection(self, state: State) -> np.ndarray:
        """``V D^-1/2`` (j, r) of the dictionary's Gram matrix: ``z(x) = (V D^-1/2)' k_S(x)``."""

        def make() -> np.ndarray:
            S = state["dictionary"]
            if not len(S):
                return np.zeros((0, 0))
            return projection(gram(self.kernel(state), S), len(S), np.finfo(S.dtype).eps ** (2 / 3))

        return self.derived.cached("projection", make)

    def _recursion(self, state: State) -> RowRecursion:
        held: Any = self.derived.get("held")
        if held is None or held.state is not state:
            held = self.derived["held"] = self.ops.least_squares(state, self.rule)
        return held

    def _leverage(self, state: State, K: np.ndarray, k_xx: np.ndarray) -> np.ndarray:
        r"""Estimated ridge leverage scores of rows with kernel values K (m, j) to the dictionary, (m,).

        ``(1 + eps)/alpha (k_xx - k'S(SKS + alpha I)^-1 S k)``, S = diag(1/sqrt(p)), the row itself being in the
        dictionary with weight 1. Without it the bracket is some v, with it alpha v/(alpha + v).
        """

        def make() -> tuple[np.ndarray, np.ndarray]:
            S, scale = state["dictionary"].astype(np.float64), 1 / np.sqrt(state["probability"])
            gram = np.asarray(self.kernel(state).pairwise(S, S)) * np.outer(scale, scale)
            return upper_factor(gram, self.alpha), scale

        v = k_xx
        if K.shape[1]:
            T, scale = self.derived.cached("leverage", make)
            W = solve_triangular(T, (K * scale).T, trans=1, check_finite=False)
            v = np.maximum(k_xx - (W**2).sum(axis=0), 0.0)
        return (1 + self.epsilon) * v / (self.alpha + v)

    def _coins(self, state: State, t: int, m: int) -> np.ndarray:
        """Uniform numbers of rows t, t + 1, … (m,): the same for a row however the stream is cut."""
        runs = self.derived.cached("coins", dict)
        wanted = range(t // COINS, (t + m) // COINS + 1)
        for run in wanted:
            if run not in runs:
                runs[run] = generator(state["seed"], SeedStream.MAP, 1 + run).random(COINS)
        for run in [run for run in runs if run < wanted.start]:
            del runs[run]
        first = t % COINS
        return np.concatenate([runs[run] for run in wanted])[first : first + m]

    # ---------------------------------------------------------------- learning
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        y = np.ascontiguousarray(targets(state, y))
        weight = np.ones(len(y)) if weight is None else weight
        scores = np.empty((len(y), state["n_outputs"]))
        start, n, size = 0, len(y), 4
        while start < n:
            rows = slice(start, min(n, start + min(size, self.ops.BLOCK)))
            learned = self._learn_block(state, dense(X[rows]), y[rows], weight[rows], scores[rows])
            # rows after a new member of the dictionary must be processed again: short blocks while members are frequent
            size = 4 if learned < rows.stop - start else 2 * size
            start += learned
        return scores

    def _learn_block(self, state: State, X: np.ndarray, y: np.ndarray, weight: np.ndarray, scores: np.ndarray) -> int:
        """Learn rows up to the first one that joins the dictionary; returns how many."""
        kernel = self.kernel(state)
        K = (
            np.asarray(kernel.pairwise(X, state["dictionary"]), dtype=np.float64)
            if len(state["dictionary"])
            else np.zeros((len(X), 0))
        )
        joins, p = self._joining(state, K, np.asarray(kernel.diag(X), dtype=np.float64), weight)
        m = len(X) if joins is None else joins + 1
        scores[:m] = 0.0
        second_order.announce(state, m)
        if K.shape[1]:
            F, _ = self._recursion(state).learn(
                np.ascontiguousarray(K[:m] @ self._projection(state)), y[:m], weight[:m]
            )
            scores[:m] = self.rule.show(F[:, 0])
        state["t"] += int(np.count_nonzero(weight[:m]))
        if joins is not None:
            state["dictionary"] = np.concatenate([state["dictionary"], X[joins : joins + 1]])
            state["probability"] = np.append(state["probability"], p)
            state["n_restarts"] += 1
            self._restart(state)
        return m

    def _joining(self, state: State, K: np.ndarray, k_xx: np.ndarray, weight: np.ndarray) -> tuple[int | None, float]:
        """The first row that joins the dictionary, if any, and the probability it had."""
        if self.budget is not None and K.shape[1] >= self.budget:
            return None, 0.0
        p = np.minimum(self.beta * self._leverage(state, K, k_xx), 1.0)
        counted = np.flatnonzero(weight)
        accepted = np.flatnonzero(self._coins(state, state["t"], len(counted)) < p[counted])
        if not len(accepted):
            return None, 0.0
        row = int(counted[accepted[0]])
        return row, float(p[row])

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores = np.zeros((X.shape[0], state["n_outputs"]))
        if not len(state["dictionary"]):
            return scores
        recursion, kernel = self._recursion(state), self.kernel(state)
        for start in range(0, X.shape[0], 256):
            rows = slice(start, start + 256)
            K = np.asarray(kernel.pairwise(dense(X[rows]), state["dictionary"]), dtype=np.float64)
            F, _ = recursion.score(K @ self._projection(state), uncertainty=False)
            scores[rows] = self.rule.show(F[:, 0])
        return scores

    def schema(self, state: State, trained: bool) -> Schema:
        schema = self.kernel_schema(state, trained)
        if not trained:
            return schema
        j, outputs = min(length(state, "dictionary"), state["t"]), state["n_outputs"]
        r = min(length(state, "b", -1), j)  # directions that are rounding noise are left out
        schema |= second_order.schema(state, r, outputs, outputs, 1)
        return schema | {
            "dictionary": Array((j, state["n_features"]), state["dtype"]),
            "probability": Array((j,), low=POSITIVE, high=1.0),
            "n_restarts": Count(j, j),
        }

    def check_parameters(self) -> None:
        for name in ("alpha", "beta", "C"):
            value = getattr(self, name)
            if isinstance(value, str) or not 0 < value < np.inf:
                raise ValueError(f"{name} must be > 0, got {value!r}")
        if isinstance(self.epsilon, str) or not 0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be >= 0, got {self.epsilon!r}")
        whole("budget", self.budget, optional=True)

    def mix_outputs(self, state: State, change: Change) -> None:
        mix_matrices(state, change)
        self.derived.drop("held")


n_restarts = entry("n_restarts", "How often the dictionary has changed, which is also its size.")
dictionary = entry("dictionary", "Rows that span the embedding, (j, d).")


@estimators.register
@described()
@dataclass(eq=False, repr=False)
class ProsNKons(StreamRegressor):
    r"""PROS-N-KONS: second-order learning in a space spanned by a sample of the rows.

    A dictionary S of rows grows by online leverage sampling: row t joins with probability
    :math:`\min(\beta \tilde\tau_t, 1)`. Between its changes, in the Nyström embedding :math:`z(x) = D^{-1/2}V'k_S(x)`,

    .. math:: A_t = A_{t-1} + \frac{1}{16 C^2} g_t g_t', \quad w_{t+1} = w_t - A_t^{-1} g_t, \quad
              g_t = 2(f_t - y_t) z_t, \quad A_0 = \alpha I,

    with w projected so that :math:`|f_t| \le C`; at every change A and w start again [1]_. The loss is
    :math:`(y - f)^2` with :math:`|y| \le C`.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularisation of the Newton steps and of the leverage scores.
    beta : float, default=1.0
        Rows join the more often, the larger beta.
    epsilon : float, default=0.5
        Accuracy of the leverage scores: they are multiplied by 1 + epsilon.
    C : float, default=1.0
        Bound of the predictions and of the targets.
    budget : int or None, default=None
        Largest dictionary; None lets it grow as long as rows join.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the sampling.

    Attributes
    ----------
    n_restarts_ : int
        How often the dictionary has changed.
    dictionary_ : (n_points, d) array
        The rows of the dictionary.

    See Also
    --------
    ProsNKonsClassifier : The same for labels.
    kernelstream.OnlineRidge : Second order on fixed features.

    Notes
    -----
    The space grows with the effective dimension of the rows, not with their number; every restart forgets the weights.

    References
    ----------
    .. [1] Calandriello, Lazaric, Valko: Efficient second-order online kernel learning with adaptive embedding,
       NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.rivals import ProsNKons
    >>> X = np.random.default_rng(0).uniform(-2, 2, (3000, 1))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = ProsNKons(gamma=0.5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> 0 < model.n_restarts_ < 100
    True
    """

    n_restarts_, dictionary_ = n_restarts, dictionary
    _several_targets = True

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    epsilon: float = 0.5
    C: float = 1.0
    _: KW_ONLY
    budget: int | None = None

    _learns = LeverageSampling

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a few hundred rows: each restart forgets them
        return tags


@estimators.register
@described(like=ProsNKons)
@dataclass(eq=False, repr=False)
class ProsNKonsClassifier(StreamClassifier):
    r"""PROS-N-KONS on targets -1 and +1, one output per class (two classes share one); C is 1.

    .. math:: A_t = A_{t-1} + \frac{1}{16} g_t g_t', \quad w_{t+1} = w_t - A_t^{-1} g_t, \quad
              g_t = 2(f_t - y_t) z_t, \quad A_0 = \alpha I,

    in the Nyström embedding z of a dictionary that grows by online leverage sampling; at every change of it A and w
    start again [1]_.

    See Also
    --------
    ProsNKons : The same for numbers.
    kernelstream.OnlineRidgeClassifier : Second order on fixed features.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream_papers.rivals import ProsNKonsClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> ProsNKonsClassifier(gamma=1.0, beta=0.1, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    n_restarts_, dictionary_ = n_restarts, dictionary
    loss = "hinge"  # how labels are coded
    C: float = field(default=1.0, init=False)

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    epsilon: float = 0.5
    _: KW_ONLY
    budget: int | None = None
    class_weight: Any = field(default=None, init=False)

    _learns = LeverageSampling

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a few hundred rows: each restart forgets them
        return tags
