r"""NOGD: kernel learning until the budget is full, then on Nyström features of the support set.

Algorithm 2 of Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning, JMLR 2016.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import losses, updates
from ..checks import whole
from ..core import threads
from ..features import Nystroem
from ..features.landmarks import choose
from ..features.nystroem import gram, projection
from ..kernels import Kernel
from ..passes.spec import Told
from ..random import SeedStream, generator
from ..rows import Rows, dense, host, padded
from ..state import undo as _undo
from ..state.change import Change
from ..state.schema import Array, Count, Schema, length
from ..updates import NormAdaGrad, Update
from ._contract.base import State
from ._contract.classifier import StreamClassifier
from ._contract.kernel import WithKernel
from ._contract.regressor import StreamRegressor
from ._contract.scaling import AUTO
from ._contract.state import blank, centres
from ._described import described
from .feature import MAP, LinearOnFeatures, linear_form, mix_outputs

LANDMARKS, PROJECTION = MAP + "landmarks", MAP + "projection"


class TwoPhases(WithKernel, LinearOnFeatures):
    r"""Both phases of NOGD.

    Phase 1, kernel expansion: ``f = sum_i alpha_i k(s_i, .)``, a row joins the support set whenever its update is not
    zero, until there are B members. Then, with the top eigenpairs ``K_SS = V D V'``, cut to rank k,
    ``z(x) = D^-1/2 V' k_S(x)`` and ``w = D^1/2 V' alpha`` (the same function, cut to rank k), and phase 2 is linear.
    """

    relative_weights = True
    _by_row = frozenset({"support", "pool"})

    budget: int
    refresh: int | None

    # ---------------------------------------------------------------- parts
    @cached_property
    def map(self) -> Nystroem:
        """The features of phase 2."""
        return Nystroem(self.given.kernel, self.budget, self.given.gamma, rank=self.rank)

    @property
    def early_update(self) -> Update:
        """The update of phase 1, where there are no features yet."""
        return NormAdaGrad() if self.parameters["update"] == "auto" else self.update

    @property
    def rank(self) -> int:
        """Eigenvectors kept."""
        given = self.parameters["rank"]
        return max(1, round(0.2 * self.budget)) if given is None else given

    def one_width(self) -> bool:
        # a user who leaves the width to the model leaves the units to it as well
        return isinstance(self.given.kernel, str) and self.given.gamma is None and super().one_width()

    def check_parameters(self) -> None:
        for name, value in (("budget", self.budget), ("rank", self.parameters["rank"]), ("refresh", self.refresh)):
            whole(name, value, optional=name != "budget")
        if self.rank > self.budget:
            raise ValueError(f"rank={self.rank} exceeds budget={self.budget}")
        if self.early_update.diagonal or isinstance(self.update, updates.Averaged):
            raise ValueError(
                f"{self.context.name} starts in the kernel expansion and needs an update of the form "
                f"(decay, tau), such as NormAdaGrad or OGD; {type(self.update).__name__} works on explicit features "
                f"only"
            )
        super().check_parameters()

    # ---------------------------------------------------------------- rows
    def reset(self, state: State) -> None:
        for name in ("w", "scale", "G", LANDMARKS, PROJECTION, "pool", "pool_seen"):
            state.pop(name, None)
        state |= {
            "support": np.zeros((self.budget, state["n_features"]), state["dtype"]),
            "alpha": np.zeros((self.budget, state["n_outputs"])),
            "n_support": 0,
            "memory": self.early_update.memory(state["n_outputs"]),
        }
        state |= blank(centres(self))

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        n, start = X.shape[0], 0
        scores = np.empty((n, state["n_outputs"]))
        while start < n:
            learn = self._learn_features if LANDMARKS in state else self._learn_expansion
            stop = start + learn(state, X, y, weight, slice(start, n), scores)
            start = stop
        return scores

    def _learn_expansion(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, rows: slice, scores: np.ndarray
    ) -> int:
        """Phase 1 on one block of ``rows``; returns how many were learned."""
        ops, kernel = self.ops, self.kernel(state)
        rows = slice(rows.start, min(rows.stop, rows.start + ops.BLOCK))
        block, part = dense(host(X[rows])), None if weight is None else weight[rows]
        q = state["n_support"]
        F = self._expansion(state, kernel, block)
        G = np.ascontiguousarray(kernel.pairwise(block, block))
        spec = self.derived.cached(("rule", state["n_outputs"]), lambda: ops.spec(self.loss(state), self.early_update))
        targets, free = Told(y[rows], part), self.budget - q
        consumed, joined, coefficients, decay = ops.expansion_pass(F, G, targets, spec, state, free)
        state["t"] += consumed if part is None else int(np.count_nonzero(part[:consumed]))
        state["alpha"][:q] *= decay
        filled = slice(q, q + len(joined))
        _undo.rows(state["support"], filled)
        state["support"][filled], state["alpha"][filled] = block[joined], coefficients
        state["n_support"] = filled.stop
        scores[rows.start : rows.start + consumed] = F[:consumed]
        if state["n_support"] == self.budget:
            self._switch(state)
        return consumed

    def _expansion(self, state: State, kernel: Kernel, X: Rows) -> np.ndarray:
        q = state["n_support"]
        if q == 0:
            return np.zeros((X.shape[0], state["n_outputs"]))
        return kernel.pairwise(X, state["support"][:q]) @ state["alpha"][:q]

    def _switch(self, state: State) -> None:
        """From the expansion to features: ``w = D^1/2 V' alpha = (V D^-1/2)' K alpha``."""
        S, alpha = state.pop("support"), state.pop("alpha")
        K = gram(self.kernel(state), S)
        self._set_landmarks(state, S, K, K @ alpha)
        if self.refresh is not None:
            state |= {"pool": np.zeros_like(S), "pool_seen": 0}

    def _set_landmarks(self, state: State, S: np.ndarray, K: np.ndarray, values: np.ndarray) -> None:
        """Landmarks S (m, d) with kernel values K, and on their span the weights of the function with values (m, C)."""
        self.derived.leave_device()
        update = self.update  # read before there are weights, which would decide it
        P = projection(K, min(self.rank, len(S)), np.finfo(S.dtype).eps)
        state |= {LANDMARKS: S, PROJECTION: P}
        state |= {"w": (P.T @ values).T.astype(state["dtype"], order="C"), "scale": np.ones(state["n_outputs"])}
        self.forget()  # the mapping follows the landmarks
        if update.diagonal:
            self._spread_squares(state, K @ P, update)

    def _spread_squares(self, state: State, Z: np.ndarray, update: Update) -> None:
        """Distribute the squared gradients so far over new features by their squares at the landmarks, Z (m, k)."""
        memory = state["memory"]
        total = state["G"].sum(axis=1, dtype=np.float64) if "G" in state else memory[NormAdaGrad.n_shared]
        share = np.square(Z).sum(axis=0)
        state["G"] = np.outer(total, share / max(share.sum(), np.finfo(float).tiny)).astype(state["dtype"])
        state["memory"] = update.memory(state["n_outputs"], Z.shape[1])
        state["memory"][: NormAdaGrad.n_shared] = memory[: NormAdaGrad.n_shared]

    def _learn_features(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, rows: slice, scores: np.ndarray
    ) -> int:
        """Phase 2, up to the next change of the landmarks; returns how many rows were learned."""
        if self.refresh is not None:
            rows = slice(rows.start, min(rows.stop, rows.start + self.refresh - state["t"] % self.refresh))
        part, before = None if weight is None else weight[rows], state["t"]
        scores[rows] = super().learn(state, X[rows], y[rows], part)
        if self.refresh is not None:
            self._fill_pool(state, host(X[rows]), y[rows], scores[rows], part)
            if state["t"] > before and state["t"] % self.refresh == 0 and state["pool_seen"]:
                self._move_landmarks(state)
        return rows.stop - rows.start

    # ---------------------------------------------------------------- moving landmarks
    def _fill_pool(self, state: State, X: Rows, y: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> None:
        """Remember the latest rows that had a loss, at most ``budget`` of them."""
        loss = self.loss(state)
        gradient = loss.gradient(y, F if loss.kind == "multiclass" else F[:, 0]).reshape(len(y), -1)
        hit = gradient.any(axis=1) if weight is None else gradient.any(axis=1) & (weight > 0)
        found = np.flatnonzero(hit)
        latest = dense(X[found[-self.budget :]])
        state["pool_seen"] += len(found)
        places = (state["pool_seen"] - len(latest) + np.arange(len(latest))) % self.budget
        _undo.rows(state["pool"], places)
        state["pool"][places] = latest

    def _move_landmarks(self, state: State) -> None:
        """Choose new landmarks among the old ones and the pool, and carry the function over."""
        kernel = self.kernel(state)
        pool = state["pool"][: min(self.budget, state["pool_seen"])]
        candidates = np.concatenate([state[LANDMARKS], pool])
        picked = choose(
            "rpcholesky", kernel, candidates, self.budget, generator(state["seed"], SeedStream.MAP, state["t"])
        )
        S = candidates[np.sort(picked)]
        values = self.score(state, S)
        if "center" in state:
            values = values - state["center"][1]
        self._set_landmarks(state, S, gram(kernel, S), values)

    def score(self, state: State, X: Rows) -> np.ndarray:
        if LANDMARKS in state:
            return super().score(state, X)
        kernel = self.kernel(state)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in threads.cuts(X.shape[0], 512):
            scores[rows] = self._expansion(state, kernel, dense(host(X[rows])))
        return scores + state["center"][1] if "center" in state else scores

    def mix_outputs(self, state: State, change: Change) -> None:
        self.derived.leave_device()
        if "alpha" in state:
            state["alpha"] = np.ascontiguousarray(change.rows(state["alpha"].T).T)
        mix_outputs(state, change, self.early_update if "alpha" in state else self.update)

    def widen(self, state: State, d: int) -> None:
        for name in ("support", "pool", LANDMARKS):
            if name in state:
                state[name] = padded(state[name], d)

    def schema(self, state: State, trained: bool) -> Schema:
        d, dtype = state["n_features"], state["dtype"]
        rows = Array((self.budget, d), dtype)
        if LANDMARKS in state:
            m = min(self.budget, length(state, LANDMARKS))  # fewer where more would have added nothing
            moving: Schema = {} if self.refresh is None else {"pool": rows, "pool_seen": Count()}
            own: Schema = {LANDMARKS: Array((m, d), dtype), "n_support": Count(self.budget, self.budget)}
            return super().schema(state, True) | own | moving
        kernel = self.kernel_schema(state, trained)
        if not trained:
            return kernel
        outputs = state["n_outputs"]
        return (
            kernel
            | {"support": rows, "alpha": Array((self.budget, outputs)), "n_support": Count(0, self.budget - 1)}
            | {"memory": Array(self.early_update.memory(outputs).shape)}
            | centres(self)
        )


@described()
@dataclass(eq=False, repr=False)
class NystroemClassifier(StreamClassifier):
    r"""NOGD for labels: kernel OGD until ``budget`` support vectors, then OGD on their Nyström features.

    .. math:: f(x) = \sum_i \alpha_i k(s_i, x) \;\longrightarrow\; f(x) = w'z(x), \quad z(x) = D^{-1/2} V' k_S(x)

    with :math:`K_{SS} \approx V D V'`, of the given rank [1]_.

    Parameters
    ----------
    gamma : float, "scale", "median" or None, default=None
        Bandwidth of a kernel given by name. None means "median" after columns are scaled by mean and standard deviation
        if the first 100 rows show different units; with "median", rows are taken as they are.
    budget : int, default=100
        Support vectors to collect; they become the landmarks.
    rank : int or None, default=None
        Eigenvectors kept; None means a fifth of the budget.
    update : Update or str, default="auto"
        Any update of the form (decay, tau). "auto" needs no step size: it is :class:`~kernelstream.updates.NormAdaGrad`
        in the kernel expansion, then :class:`~kernelstream.updates.AdaGrad` on the features.
    refresh : int or None, default=None
        Number of rows after which the landmarks move to where the latest losses were; None keeps them. If the rows
        wander, a few thousand help much: of 20,000 rows around a centre that moves by six deviations, 27 % are mistakes
        without, 8 % with ``refresh=2000``. If the rows stay, so should the landmarks (1.8 % against 2.9 %).
    random_state : int, Generator, RandomState or None, default=None
        Used when landmarks move.

    See Also
    --------
    NystroemRegressor : The same for numbers.
    BudgetClassifier : Stays in the kernel expansion.

    Notes
    -----
    Until the support set is full, a row costs a row of the Gram matrix; afterwards it costs time proportional to budget
    times (columns + rank).

    References
    ----------
    .. [1] Lu, Hoi, Wang, Zhao, Liu: Large scale online kernel learning, JMLR 17 (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import NystroemClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> NystroemClassifier(gamma=2.0).fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.97
    True
    """

    on_device = True  # the expansion runs on the processor, the features on the device
    standardize = AUTO  # no parameter: see `TwoPhases.one_width`
    linear_form = linear_form

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    budget: int = 100
    rank: int | None = None
    loss: losses.Loss | str = "hinge"
    update: Update | str = "auto"
    _: KW_ONLY
    refresh: int | None = None

    _learns = TwoPhases


@described(like=NystroemClassifier)
@dataclass(eq=False, repr=False)
class NystroemRegressor(StreamRegressor):
    r"""NOGD for real targets: kernel OGD until ``budget`` support vectors, then OGD on their Nyström features.

    .. math:: f(x) = \bar y + \sum_i \alpha_i k(s_i, x) \;\longrightarrow\;
        f(x) = \bar y + w'z(x), \quad z(x) = D^{-1/2} V' k_S(x)

    with :math:`K_{SS} \approx V D V'`, of the given rank [1]_.

    Parameters
    ----------
    center : bool, default=True
        Learn the difference from the running mean of the targets.

    See Also
    --------
    NystroemClassifier : The same for labels.
    BudgetRegressor : Stays in the kernel expansion.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import NystroemRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> y = np.sin(X[:, 0])
    >>> NystroemRegressor().fit(X[:2500], y[:2500]).score(X[2500:], y[2500:]) > 0.9
    True
    """

    on_device = True  # the expansion runs on the processor, the features on the device
    standardize = AUTO  # no parameter: see `TwoPhases.one_width`
    linear_form = linear_form

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    budget: int = 100
    rank: int | None = None
    loss: losses.Loss | str = "squared"
    update: Update | str = "auto"
    _: KW_ONLY
    refresh: int | None = None
    center: bool = True

    _learns = TwoPhases

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one pass over a few hundred rows leaves a rank-20 model half trained
        return tags
