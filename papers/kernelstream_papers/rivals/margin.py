r"""Classifiers that look at the margin ``m = y f``: a matrix of confidence (SOP, CW, SCW), or the norm of the weights.

All of them learn ``f(x) = w'z(x)`` on explicit features, several classes one against the rest. A rule of the first kind
is what :mod:`kernelstream.second_order` takes, ``(c, beta)``; one of the second is ``(decay, tau)`` of
``w <- decay w + tau y z``. A rule is a few lines here, and everything else is the library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from kernelstream import estimators
from kernelstream.core.overflow import quiet, require_finite
from kernelstream.develop import (
    Confidence,
    LinearOnFeatures,
    State,
    StreamClassifier,
    described,
    entry,
    positive,
)
from kernelstream.estimators.second_order.base import targets
from kernelstream.features import FeatureMap
from kernelstream.registry.names import find
from kernelstream.rows import Rows
from kernelstream.second_order import Rule
from kernelstream.state.change import Change
from kernelstream.state.schema import Array, Schema

# ---------------------------------------------------------------- a matrix of confidence


class MistakesOnly(Rule):
    """Least squares on the rows with ``y f <= 0``: the second-order perceptron.

    The paper predicts by ``b'(A + z z')^-1 z``, which has the sign of ``b'A^-1 z``.
    """

    name = "sop"

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        return (weight, weight * y) if y * f <= 0 else (0.0, 0.0)

    def native(self) -> None:
        return None


class GaussianMargin(Rule):
    """The nearest Gaussian N(w, Sigma), Sigma = A^-1, that makes a row's label likely enough.

    ``w <- w + alpha y Sigma z``, ``A <- A + c z z'``: alpha from m = y f and v = z'Sigma z, c from alpha. A weight
    multiplies the price C of what is missing.
    """

    def __init__(self, phi: float, C: float):
        self.phi, self.C = phi, C

    def step(self, y: Any, f: Any, s: float, weight: float) -> tuple[float, Any]:
        alpha = max(0.0, self.alpha(y * f, s, self.C * weight)) if s > 0 else 0.0
        c = self.growth(alpha, s)
        return c, alpha * y * (1.0 + c * s) + c * f

    def alpha(self, m: float, v: float, C: float) -> float:
        """How far w goes; no step where it is negative."""
        raise NotImplementedError

    def growth(self, alpha: float, v: float) -> float:
        r"""``c = beta/(1 - beta v)``, ``beta = alpha phi/(sqrt(u) + v alpha phi)``, of Sigma - beta Sigma z z' Sigma.

        ``sqrt(u) = (sqrt((alpha v phi)^2 + 4 v) - alpha v phi)/2``, so that c = alpha phi / sqrt(u).
        """
        part = alpha * v * self.phi
        return alpha * self.phi * (math.sqrt(part**2 + 4.0 * v) + part) / (2.0 * v) if alpha else 0.0

    def native(self) -> None:
        return None


class CW(GaussianMargin):
    """``y w'z >= phi v`` after the step; the variance v where the later rules have its root."""

    name = "cw"

    def alpha(self, m: float, v: float, C: float) -> float:
        b = 1.0 + 2.0 * self.phi * m
        return (math.sqrt(b * b - 8.0 * self.phi * (m - self.phi * v)) - b) / (4.0 * self.phi * v)

    def growth(self, alpha: float, v: float) -> float:
        return 2.0 * alpha * self.phi


class SCW1(GaussianMargin):
    """``y w'z >= phi sqrt(v) - xi`` at the price C xi."""

    name = "scw1"

    def alpha(self, m: float, v: float, C: float) -> float:
        square = self.phi**2
        root = math.sqrt((m * square) ** 2 / 4.0 + v * square * (1.0 + square))
        return min(C, (root - m * (1.0 + square / 2.0)) / (v * (1.0 + square)))


class SCW2(GaussianMargin):
    """The same at the price C xi^2."""

    name = "scw2"

    def alpha(self, m: float, v: float, C: float) -> float:
        n, square = v + 0.5 / C, self.phi**2
        root = self.phi * math.sqrt((self.phi * m * v) ** 2 + 4.0 * n * v * (n + v * square))
        return (root - 2.0 * m * n - square * m * v) / (2.0 * (n * n + n * v * square))


CONFIDENCE: dict[str, Callable[[float, float], Rule]] = {
    "sop": lambda phi, C: MistakesOnly(), "cw": CW, "scw1": SCW1, "scw2": SCW2,
}  # fmt: skip


@estimators.register
@described(like=estimators.AROWClassifier)
@dataclass(eq=False, repr=False)
class ConfidenceWeightedClassifier(StreamClassifier):
    r"""Confidence-weighted learning, its soft forms and the second-order perceptron, on the features of a kernel.

    A Gaussian N(w, :math:`\Sigma`) over the weights; with :math:`m = y f`, :math:`v = z'\Sigma z` and :math:`\phi` the
    quantile of ``confidence``,

    .. math:: w \leftarrow w + \alpha\, y\, \Sigma z, \qquad \Sigma^{-1} \leftarrow \Sigma^{-1} + c\, z z'

    is the nearest Gaussian, by the Kullback-Leibler divergence, with :math:`y\, w'z \ge \phi\, z'\Sigma z` for "cw"
    [2]_, :math:`\phi \sqrt{z'\Sigma z}` for "scw1" and "scw2" [3]_, which let it miss by :math:`\xi` at a price of
    :math:`C \xi` or :math:`C \xi^2`. "sop" [1]_ is ridge regression on the labels ±1 of the rows with :math:`m \le 0`.

    Parameters
    ----------
    rule : {"scw1", "scw2", "cw", "sop"}, default="scw1"
        Which of them.
    confidence : float, default=0.9
        Probability of the right label that a row asks for, in (0.5, 1); "sop" has none.
    C : float, default=1.0
        Price of what a row misses, of "scw1" and "scw2".
    lam : float, default=1.0
        Every variance starts as 1/lam. In "sop" it is the paper's a, next to the *sum* of the losses.

    See Also
    --------
    kernelstream.AROWClassifier : Its successor, faster, which takes noise better.
    LargeMarginClassifier : Margins without a matrix.

    Notes
    -----
    "cw" makes sure of every row and follows noise: with wrong labels take another. ``sample_weight`` multiplies C, and
    the squared loss of "sop"; "cw" has neither, and takes all rows of a positive weight alike.

    References
    ----------
    .. [1] Cesa-Bianchi, Conconi, Gentile: A second-order perceptron algorithm, SIAM J. Computing 34 (2005).
    .. [2] Dredze, Crammer, Pereira: Confidence-weighted linear classification, ICML 2008.
    .. [3] Wang, Zhao, Hoi: Exact soft confidence-weighted learning, ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream_papers.rivals import ConfidenceWeightedClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> ConfidenceWeightedClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.97
    True
    """

    loss = "hinge"  # how labels are coded
    _learner: ClassVar[Confidence]
    coef_ = estimators.AROWClassifier.coef_

    features: FeatureMap | str = "fourier"
    rule: str = "scw1"
    confidence: float = 0.9
    C: float = 1.0
    lam: float = 1.0
    diagonal: bool = False
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = Confidence
    _loss_rule = staticmethod(estimators.AROWClassifier._loss_rule)

    @staticmethod
    def _rule(parameters: dict[str, Any]) -> Rule:
        confidence = parameters["confidence"]
        if not 0.5 < positive("confidence", confidence) < 1.0:
            raise ValueError(f"confidence must be in (0.5, 1), got {confidence!r}")
        made = find(CONFIDENCE, "rule", parameters["rule"])
        return made(NormalDist().inv_cdf(confidence), positive("C", parameters["C"]))


# ---------------------------------------------------------------- the norm of the weights
Steps = tuple[np.ndarray, np.ndarray]  # decay and tau of every output
LARGEST = 1e16  # of |w|² |z|² in ROMMA: beyond it the 1 of its constraint is rounding
PARALLEL = 1e-12


def _within(radius: float, late: np.ndarray, step: Any, m: np.ndarray, n: float, norm: np.ndarray) -> Steps:
    """``w + step y z`` on the rows that are late, shrunk into the ball of a radius; ``norm`` is the square of |w|."""
    length = np.sqrt(np.maximum(norm + 2 * step * m + step**2 * n, 0.0))
    shrink = np.where(late, radius / np.maximum(radius, length), 1.0)
    return shrink, np.where(late, shrink * step, 0.0)


class RowSteps(LinearOnFeatures):
    """Weights ``w`` of the features that every row moves; a relative says how, and what it keeps beside them."""

    _by_row = frozenset()
    signed: frozenset[str] = frozenset({"w"})  # what turns with the sign of its labels; the rest is not negative

    def fresh(self, width: int) -> dict[str, np.ndarray]:
        """What an output begins with, by name."""
        return {"w": np.zeros(width)}

    def move(self, state: State, z: np.ndarray, y: np.ndarray, f: np.ndarray, t: int, weight: float) -> None:
        """Learn row t = 1, 2, … with features z, labels y ±1 and scores f of the outputs; z'z and weight are not 0."""
        raise NotImplementedError

    def reset(self, state: State) -> None:
        begun = self.fresh(self.mapping(state).n_out)
        state |= {name: np.repeat(value[None], state["n_outputs"], axis=0) for name, value in begun.items()}

    @quiet
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        y, scores, t = targets(state, y), np.empty((X.shape[0], state["n_outputs"])), state["t"]
        for rows, Z in self.ops.feature_rows(self.mapping(state), X, None, False):
            for i, z in enumerate(Z, rows.start):
                scores[i] = state["w"] @ z
                importance = 1.0 if weight is None else float(weight[i])
                t += importance != 0.0
                if importance != 0.0 and z @ z > 0:
                    self.move(state, z, y[i], scores[i], t, importance)
        state["t"] = t
        require_finite(state["w"], scores)
        return scores

    def score(self, state: State, X: Rows) -> np.ndarray:
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, Z in self.ops.feature_rows(self.mapping(state), X, None, False):
            scores[rows] = Z @ state["w"].T
        return scores

    def mix_outputs(self, state: State, change: Change) -> None:
        """A new class starts untrained; others keep what they have learned, with their sign."""
        for name, value in self.fresh(state["w"].shape[1]).items():
            column = (-1,) + (1,) * value.ndim
            sign = change.sign.reshape(column) if name in self.signed else 1.0
            state[name] = np.where(change.fresh.reshape(column), value, sign * state[name][change.source])

    def schema(self, state: State, trained: bool) -> Schema:
        schema, width = self.map_schema(state, trained)
        for name, value in self.fresh(width).items() if trained else ():
            least = -np.inf if name in self.signed else 0.0
            schema = schema | {name: Array((state["n_outputs"], *value.shape), low=least)}
        return schema


class MarginSteps(RowSteps):
    """``w <- decay w + tau y z`` of every output by itself; a rule looks at the margin and at the norm of w."""

    rule: str
    alpha: float
    eta: float
    radius: float

    def fresh(self, width: int) -> dict[str, np.ndarray]:
        return super().fresh(width) | {"updates": np.zeros(())}

    def move(self, state: State, z: np.ndarray, y: np.ndarray, f: np.ndarray, t: int, weight: float) -> None:
        w, updates = state["w"], state["updates"]
        decay, tau = MARGIN[self.rule](self, y * f, float(z @ z), np.einsum("ij,ij->i", w, w), updates, weight)
        if tau.any():
            w *= decay[:, None]
            w += np.outer(tau * y, z)
            updates += tau != 0

    # ---------------------------------------------------------------- rules: margins m, n = z'z, |w|², updates so far
    def alma(self, m: np.ndarray, n: float, norm: np.ndarray, k: np.ndarray, weight: float) -> Steps:
        """A step of ``sqrt(2/k)`` along z/|z| where ``m/|z| <= (1 - alpha)/alpha sqrt(8/k)``, in the unit ball."""
        late = m <= (1 - self.alpha) / self.alpha * np.sqrt(8.0 * n / (k + 1))
        return _within(1.0, late, weight * np.sqrt(2.0 / (n * (k + 1))), m, n, norm)

    def ogd(self, m: np.ndarray, n: float, norm: np.ndarray, k: np.ndarray, weight: float) -> Steps:
        """Gradient of the hinge, and the nearest point of the ball."""
        return _within(self.radius, m < 1, weight * self.eta, m, n, norm)

    def romma(self, m: np.ndarray, n: float, norm: np.ndarray, k: np.ndarray, weight: float) -> Steps:
        """The shortest u with ``y u'z >= 1`` and ``u'w >= w'w``, after a mistake."""
        return self._shortest(m <= 0, m, n, norm, weight)

    def aggressive_romma(self, m: np.ndarray, n: float, norm: np.ndarray, k: np.ndarray, weight: float) -> Steps:
        """The same after every row with a margin below 1."""
        return self._shortest(m < 1, m, n, norm, weight)

    def _shortest(self, late: np.ndarray, m: np.ndarray, n: float, norm: np.ndarray, weight: float) -> Steps:
        free = norm * n - m * m
        # the row alone decides where its shortest u is far enough along w; or where no u serves both
        alone = (m >= norm * n) | (free <= PARALLEL * norm * n)
        decay = np.where(alone, 0.0, (norm * n - m) / free)
        tau = np.where(alone, 1.0 / n, norm * (1.0 - m) / free)
        after = n * (decay**2 * norm + 2 * decay * tau * m + tau**2 * n)
        less = np.where(after > LARGEST, np.sqrt(LARGEST / after), 1.0)
        return np.where(late, less * decay, 1.0), np.where(late, weight * less * tau, 0.0)

    def check_parameters(self) -> None:
        find(MARGIN, "rule", self.rule)
        if not 0 < positive("alpha", self.alpha) < 1:
            raise ValueError(f"alpha must be in (0, 1), got {self.alpha!r}")
        positive("eta", self.eta)
        positive("radius", self.radius)


MARGIN = {
    rule.__name__: rule for rule in (MarginSteps.alma, MarginSteps.romma, MarginSteps.aggressive_romma, MarginSteps.ogd)
}


@estimators.register
@described(like=ConfidenceWeightedClassifier)
@dataclass(eq=False, repr=False)
class LargeMarginClassifier(StreamClassifier):
    r"""First-order classifiers that keep the margin large beside the norm: ALMA, ROMMA, and OGD in a ball.

    .. math:: w \leftarrow \delta\, w + \tau\, y\, z(x)

    "alma" [1]_ keeps :math:`|w| \le 1`: its k-th step, :math:`\sqrt{2/k}` along :math:`z/|z|`, follows a row with
    :math:`y f / |z| \le (1 - \alpha) \sqrt{8} / (\alpha \sqrt{k})`. "romma" [2]_ turns to the shortest u with
    :math:`y\, u'z \ge 1` and :math:`u'w \ge w'w` after a mistake, "aggressive_romma" after every row with
    :math:`y f < 1`. "ogd" is :math:`w \leftarrow \Pi_S(w + \eta\, y\, z)` after those rows, the gradient of the hinge
    and the nearest point of the ball S [3]_.

    Parameters
    ----------
    rule : {"alma", "romma", "aggressive_romma", "ogd"}, default="alma"
        Which of them.
    alpha : float, default=0.9
        Of "alma", in (0, 1): it looks for a margin of 1 - alpha times the largest.
    eta : float, default=1.0
        Step of "ogd".
    radius : float, default=10.0
        Of the ball of "ogd".

    See Also
    --------
    kernelstream.FeatureClassifier : Steps that need no tuning, many times faster.
    ConfidenceWeightedClassifier : Margins in units of what is known.

    Notes
    -----
    A row is a few lines of Python, about 30 microseconds. ROMMA assumes labels that a plane can part, and its w grows
    with every one that it cannot; beyond :math:`|w| |z| = 10^8`, where the 1 of its constraint is rounding, w is made
    shorter. ``sample_weight`` multiplies the steps.

    References
    ----------
    .. [1] Gentile: A new approximate maximal margin classification algorithm, JMLR 2 (2001).
    .. [2] Li, Long: The relaxed online maximum margin algorithm, Machine Learning 46 (2002).
    .. [3] Zinkevich: Online convex programming and generalized infinitesimal gradient ascent, ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream_papers.rivals import LargeMarginClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> LargeMarginClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.9
    True
    """

    loss = "hinge"  # how labels are coded
    _learner: ClassVar[MarginSteps]
    coef_ = entry("w", "Weights of the features, (outputs, P).")

    features: FeatureMap | str = "fourier"
    rule: str = "alma"
    alpha: float = 0.9
    eta: float = 1.0
    radius: float = 10.0
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = MarginSteps
    _loss_rule = staticmethod(estimators.AROWClassifier._loss_rule)
