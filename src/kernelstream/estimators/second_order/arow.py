r"""Confidence-weighted classifiers: AROW and the online Newton step, with full or diagonal matrices."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ... import losses
from ...checks import positive
from ...features import FeatureMap
from ...losses import Loss
from ...rows import Rows
from ...second_order import Margin, Newton, Rule
from ...state.change import Change
from ...state.schema import POSITIVE, Array, Schema
from .._contract.base import State
from .._contract.classifier import StreamClassifier
from .._contract.context import binary_loss
from .._contract.shown import shown
from .._described import described
from ..feature import linear_form
from .base import SecondOrder, mix_matrices, targets


class Confidence(SecondOrder):
    """One matrix A per class, full or diagonal; the scores decide which rows count, and how much.

    The estimator's ``_rule(parameters)`` says so.
    """

    diagonal: bool

    @cached_property
    def rule(self) -> Rule:
        """What a row does to A and b."""
        kind: Any = self.context.kind
        return kind._rule(self.parameters)

    def check_parameters(self) -> None:
        super().check_parameters()
        _ = self.rule  # which may refuse its own parameters

    def reset(self, state: State) -> None:
        if not self.diagonal:
            return super().reset(state)
        shape = (state["n_outputs"], self.width(state))
        state |= {"A": np.full(shape, float(self.lam)), "w": np.zeros(shape)}

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if not self.diagonal:
            return super().learn(state, X, y, weight)
        y = np.ascontiguousarray(targets(state, y))
        scores = np.empty(y.shape)
        for rows, Z in self.feature_rows(state, X):
            part = None if weight is None else weight[rows]
            scores[rows] = self.ops.diagonal_pass(Z, y[rows], part, state, self.rule)
        state["t"] += X.shape[0] if weight is None else int(np.count_nonzero(weight))
        return scores

    def score(self, state: State, X: Rows) -> np.ndarray:
        if not self.diagonal:
            return super().score(state, X)
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows, Z in self.feature_rows(state, X):
            scores[rows] = Z @ state["w"].T
        return scores

    def weights(self, state: State) -> np.ndarray:
        return state["w"][None] if self.diagonal else super().weights(state)

    def mix_outputs(self, state: State, change: Change) -> None:
        """A new class starts untrained; others keep what they have learned, with their sign."""
        if self.diagonal:
            fresh, source, sign = change.fresh, change.source, change.sign
            state["A"] = np.where(fresh[:, None], float(self.lam), state["A"][source])
            state["w"] = sign[:, None] * state["w"][source]
        else:
            mix_matrices(state, change)
            self.derived.drop("held")

    def _statistics(self, state: State, r: int) -> Schema:
        if not self.diagonal:
            return super()._statistics(state, r)
        shape = (state["n_outputs"], r)
        return {"A": Array(shape, low=POSITIVE), "w": Array(shape)}


@described()
@dataclass(eq=False, repr=False)
class AROWClassifier(StreamClassifier):
    r"""Adaptive regularisation of weights: a Gaussian over the weights that narrows in the directions of past rows.

    On a row with :math:`y f < 1`, with :math:`v = z'\Sigma z` and :math:`\beta = 1/(v + r)`,

    .. math:: w \leftarrow w + \max(0, 1 - y f)\, \beta\, y\, \Sigma z, \qquad
              \Sigma \leftarrow \Sigma - \beta\, \Sigma z z' \Sigma

    [1]_. This is ridge regression on the labels ±1 that leaves out every row with margin 1 or more: :math:`\Sigma =
    r A^{-1}` with :math:`\lambda = r`. Several classes are learned one against the rest, each with its own matrix.

    Parameters
    ----------
    lam : float, default=0.1
        r, next to the *sum* of the losses: the larger, the smaller the steps. (With features of norm 1, 0.1 was better
        than 1 on ijcnn1 and cod-rna.)
    diagonal : bool, default=False
        Keep only the diagonal of :math:`\Sigma^{-1}`: time per row proportional to the number of features, not to its
        square.

    Attributes
    ----------
    coef_ : array
        Weights of the features, one row for each output.

    See Also
    --------
    NewtonClassifier : Newton steps for any binary loss with curvature.
    OnlineRidgeClassifier : Least squares on every row.

    Notes
    -----
    A row costs time proportional to r² for r features, to r with ``diagonal=True``. ``sample_weight`` multiplies the
    hinge loss of a row.

    References
    ----------
    .. [1] Crammer, Kulesza, Dredze: Adaptive regularization of weight vectors, NeurIPS 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import AROWClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> AROWClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.97
    True
    """

    loss = "hinge"  # how labels are coded
    coef_, linear_form = shown(Confidence.coef), linear_form

    features: FeatureMap | str = "fourier"
    lam: float = 0.1
    diagonal: bool = False
    _: KW_ONLY
    intercept: bool = False
    standardize: bool | str = "auto"

    _loss_rule, _learns = staticmethod(binary_loss), Confidence
    _rule = staticmethod(lambda parameters: Margin())


@described(like=AROWClassifier)
@dataclass(eq=False, repr=False)
class NewtonClassifier(StreamClassifier):
    r"""Online Newton step: gradients multiplied by the inverse of the matrix of all gradients so far.

    .. math:: A_t = A_{t-1} + \gamma\, g_t g_t', \qquad w_{t+1} = w_t - A_t^{-1} g_t, \qquad g_t = l'(y_t, f_t)\, z_t

    with :math:`A_0 = \lambda I`: logarithmic regret for losses with curvature, such as the logistic loss [1]_. Several
    classes are learned one against the rest, each with its own matrix.

    Parameters
    ----------
    loss : Loss or str, default="logistic"
        A binary loss. "logistic" provides probabilities itself.
    lam : float, default=0.1
        :math:`\lambda`, next to the *sum* of the losses: the larger, the smaller the first steps.
    curvature : float, default=0.5
        gamma: how much curvature of the loss a squared gradient stands for; the larger, the smaller the steps.
    diagonal : bool, default=False
        Keep only the diagonal of A: time per row proportional to the number of features, not to its square.

    See Also
    --------
    AROWClassifier : The same kind of matrix, for the hinge loss.
    OnlineRidgeClassifier : Least squares on the labels.

    Notes
    -----
    A row costs time proportional to r² for r features, to r with ``diagonal=True``: the inverse is kept up to date by
    rank-one changes.

    References
    ----------
    .. [1] Hazan, Agarwal, Kale: Logarithmic regret algorithms for online convex optimization, Machine Learning 69
       (2007).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import NewtonClassifier
    >>> X, y = make_moons(1000, noise=0.1, random_state=0)
    >>> NewtonClassifier(random_state=0).fit(X[:800], y[:800]).score(X[800:], y[800:]) > 0.97
    True
    """

    coef_, linear_form = shown(Confidence.coef), linear_form

    features: FeatureMap | str = "fourier"
    loss: Loss | str = "logistic"
    lam: float = 0.1
    curvature: float = 0.5
    diagonal: bool = False
    _: KW_ONLY
    class_weight: Any = field(default=None, init=False)
    standardize: bool | str = "auto"

    _loss_rule, _learns = staticmethod(binary_loss), Confidence

    @staticmethod
    def _rule(parameters: dict[str, Any]) -> Rule:
        loss = losses.get(parameters["loss"], task="binary")
        return Newton(loss, float(positive("curvature", parameters["curvature"])))
