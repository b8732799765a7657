r"""SPA for rows without labels: uniclass prediction, a ball around the rows of a stream."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from kernelstream import BudgetOneClass, estimators, losses
from kernelstream.develop import KernelExpansion, State, StreamOutlier, described, positive
from kernelstream.estimators.budget.base import dual_coef, n_support, support_vectors
from kernelstream.random import SeedStream, uniforms
from kernelstream.rows import Rows
from kernelstream.state.schema import Number, Schema
from kernelstream.state.turns import in_turn


class Ball(KernelExpansion):
    """The centre, a kernel expansion; ``norm`` is its squared norm, ``slack`` the coordinate beside it."""

    relative_weights = False  # they multiply eta
    alpha: float
    beta: float
    eta: float
    radius: float

    def check_parameters(self) -> None:
        super().check_parameters()
        positive("radius", self.radius)
        positive("eta", self.eta)
        if positive("alpha", self.alpha) > positive("beta", self.beta):
            raise ValueError(f"SPA needs alpha <= beta, got alpha={self.alpha} and beta={self.beta}")

    def reset(self, state: State) -> None:
        super().reset(state)
        state |= {"norm": 0.0, "slack": float(self.radius)}

    def schema(self, state: State, trained: bool) -> Schema:
        schema = super().schema(state, trained)
        return schema | ({"norm": Number(0.0), "slack": Number(0.0)} if trained else {})

    def distance(self, state: State, X: Rows, f: np.ndarray) -> np.ndarray:
        """Squared distance of rows from the centre, (n,), by its values f there."""
        return self.kernel(state).diag(X).astype(np.float64) - 2.0 * f + state["norm"]

    def score(self, state: State, X: Rows) -> np.ndarray:
        return self.radius**2 - state["slack"] ** 2 - self.distance(state, X, super().score(state, X)[:, 0])[:, None]

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X, expansion, n = X.astype(state["support"].dtype, copy=False), self.expansion(state), X.shape[0]
        scores, chances = np.empty((n, 1)), iter(uniforms(state["seed"], state["t"], n, SeedStream.BUDGET))
        for i in range(n):
            row, alpha = expansion.cut(X, slice(i, i + 1)), state["alpha"][:, : state["n_support"]]
            f = expansion.scores(row, state, alpha)[:, 0] * state["scale"]
            away = float(self.distance(state, X[i : i + 1], f)[0]) + state["slack"] ** 2
            scores[i] = self.radius**2 - away
            importance = 1.0 if weight is None else float(weight[i])
            if importance == 0.0:
                continue
            state["t"] += 1
            loss = math.sqrt(max(away, 0.0)) - self.radius
            chance = min(self.alpha, loss) / self.beta
            if next(chances) < chance:
                self._pull(state, row, f, min(importance * self.eta / chance, loss) / math.sqrt(away))
        return scores

    def _pull(self, state: State, row: Any, f: np.ndarray, part: float) -> None:
        """Move the centre by a part of its way to a row, with value f there."""
        keep, t = 1.0 - part, np.array([state["t"]])
        self.join(
            state, lambda n: self.expansion(state).put(row, np.array([0]), state, n), np.array([[part]]),
            np.array([keep]), t,
        )  # fmt: skip
        k = float(state["diag"][state["n_support"] - 1])
        state["norm"] = max(0.0, keep**2 * state["norm"] + 2.0 * keep * part * float(f[0]) + part**2 * k)
        state["slack"] *= keep


@estimators.register
@described(like=BudgetOneClass)
@dataclass(eq=False, repr=False)
class SparseOneClass(StreamOutlier):
    r"""SPA for uniclass prediction: a row is novel outside of a ball, in the space of the kernel, made of few rows.

    Passive aggressive learning keeps a centre w and an additional coordinate v, and moves both towards a row by its
    loss :math:`\ell = \sqrt{\|k(x, \cdot) - w\|^2 + v^2} - R`, where that is positive; then
    :math:`\sqrt{R^2 - v^2}` is the radius of the ball, which grows from 0 to at most R [2]_. SPA [1]_ does so with the
    probability :math:`\rho = \min(\alpha, \ell)/\beta` only,

    .. math:: (w, v) \leftarrow \arg\min \tfrac12 \|(w', v') - (w, v)\|^2 + \frac\eta\rho \ell(w', v'),

    a step of :math:`\min(\eta/\rho, \ell)` towards the row: at most a part :math:`\alpha/\beta` of the rows joins.

    Parameters
    ----------
    radius : float, default=1.0
        The largest radius R; every row of a Gaussian kernel is at a distance of 1 from 0.
    alpha : float, default=0.1
        Loss from which on the probability is the same, at most beta.
    beta : float, default=2.0
        Divisor of the probability: the larger, the fewer rows join.
    eta : float, default=0.01
        Size of the steps.

    See Also
    --------
    kernelstream.BudgetOneClass : NORMA for novelties, which calls a given share of the rows novel.

    Notes
    -----
    The sentence of the thesis names the task and no loss; this is that of the passive aggressive learner that it
    extends. ``sample_weight`` multiplies eta.

    References
    ----------
    .. [1] Lu: Scalable online kernel learning, PhD thesis, Singapore Management University (2017), section 3.3.3.
    .. [2] Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online passive-aggressive algorithms, JMLR 7 (2006),
       section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.rivals import SparseOneClass
    >>> rng = np.random.default_rng(0)
    >>> model = SparseOneClass(random_state=0).fit(rng.normal(size=(5000, 2)))
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    >>> model.n_support_ < 0.05 * 5000
    True
    """

    n_support_, support_vectors_, dual_coef_ = n_support, support_vectors, dual_coef

    kernel: Any = "gaussian"
    gamma: float | str | None = None
    radius: float = 1.0
    alpha: float = 0.1
    beta: float = 2.0
    eta: float = 0.01
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = Ball

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """Squared radius less the squared distance of rows, (n,): negative for novelties."""
        return self._scores(X)[:, 0]

    @property
    def offset_(self) -> float:
        """Minus the squared radius of the ball."""
        slack = self.state_.get("slack")
        return 0.0 if slack is None else slack**2 - self.radius**2

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> losses.Loss:
        return losses.Absolute()  # has no effect: the ball has a loss of its own
