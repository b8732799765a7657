"""Kernel ridge regression on all rows, in a metric that follows from the gradients of the learned function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from .. import losses
from ..losses import Loss
from ..passes.metric.python import logarithms
from ..solvers.clock import Clock
from ..state.turns import in_turn
from ._contract import link
from ._contract.base import Shell, StreamEstimator, checked_rows
from ._contract.batch import dual_coef, entry, intercept, lam
from ._contract.calls import bound, learning
from ._contract.classifier import StreamClassifier
from ._contract.order import counted
from ._contract.regressor import StreamRegressor
from ._contract.targets import public
from ._described import described
from ._metric_learner import LearnedMetric, LeftOut
from ._steepness import labels, of_labels


def metric(est: StreamEstimator) -> np.ndarray:
    """The metric M of columns with deviation 1, (d, d); the largest number on its diagonal is 1."""
    M = _squares(est)
    return M / M.diagonal().max()


@in_turn
def fit_in_time(est: Shell[LearnedMetric], X: Any, y: Any, sample_weight: Any, apart: int, clock: Clock) -> LeftOut:
    """``fit`` as long as the clock allows; what is known of the first ``apart`` rows and some others by the rest."""
    with learning(est, fresh=True):
        rows, target, weight = counted(*est._admit(X, y, None, sample_weight, fresh=True))
        layers, state = bound(est)
        left = layers.learner.solve(state, rows, *layers.targets.batch(state, target, weight), apart, clock)
        state["t"] = rows.shape[0]
    return left


def length_of(est: StreamEstimator) -> float:
    """The length L of the kernel."""
    return float(1 / np.sqrt(_squares(est).diagonal().max()))


def relevance(est: StreamEstimator) -> np.ndarray:
    """Root of the mean square of the slope along each column of deviation 1, (d,), beside the largest."""
    return np.sqrt(metric(est).diagonal())


scales = entry("scales", "Factors of the columns in the sum of their differences, (d,).")
share = entry("share", "The part w of the distance in the kernel.")


def _squares(est: StreamEstimator) -> np.ndarray:
    root = est.state_["root"]
    return np.diag(root**2) if root.ndim == 1 else root @ root


@described()
@dataclass(eq=False, repr=False)
class MetricClassifier(StreamClassifier):
    r"""Kernel classifier on all rows in a learned metric.

    .. math:: f(x) = b + \sum_i \alpha_i k(x, x_i), \qquad (K + \lambda A^{-1})\, \alpha = y - b, \qquad
              k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j s_j |u_j(x_j) - u_j(z_j)|)

    Kernel ridge regression on -1 and +1 with all rows as centres, several classes one against the rest. The metric M is
    the average gradient outer product of the function itself [1]_: directions in which f varies count, others do not.
    The second part compares single columns, their values and ranks (u is the sum of both), as the cuts of trees do; s
    follows from the slopes of f in the same way. All this is found on some thousand rows by solving and differentiating
    in turn, starting both from all columns alike and from those that are informative alone. How much the off-diagonal
    part of M counts, the lengths, w, the penalty and powers of M and s are chosen by the least error of forecasts of
    each row by all others. Then one system has all rows. Very many rows are cut at medians into leaves [2]_, each with
    its own system in the same metric.

    Columns are divided by their standard deviations; values beyond three of them count by their logarithm.

    Parameters
    ----------
    lam : float or None, default=None
        Penalty next to the *sum* of the losses (scikit-learn's ``alpha`` of kernel ridge); None chooses it.
    size : {"small", "medium", "large"}, default="medium"
        Trades time for accuracy, by about a factor of four each. The metric is searched on 1,000 rows; on a quarter of
        all, but at least 2,500 and at most 5,000; or on twice as many. One system has up to 5,000 rows (2,500 in a leaf
        of very many rows), 20,000 (10,000), or 20,000 (as many in a leaf). If there are fewer rows than in ten leaves,
        leaves are larger.
    engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
        The compiled loops, or their readable specification; most of the work is in LAPACK with either. "torch" learns
        on a GPU, with up to 80,000 rows in one system or leaf and twice as many rows in the search. Up to 40,000 rows
        it also tries distances alone (w = 1), in a metric learned from four fifths of the rows and judged on the rest.
    random_state : int, Generator, RandomState or None, default=None
        Choice of the rows for the metric.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    metric_ : (d, d) array
        The metric M of columns with deviation 1.
    relevance_ : (d,) array
        How much the function varies along each column, relative to the largest.
    length_ : float
        The length L.
    scales_ : (d,) array
        The factors s.
    share_ : float
        The share w.
    lam_ : float
        The penalty in use.
    dual_coef_ : (n_outputs, n) array
        The coefficients.
    intercept_ : array
        The constant score b of each output.

    See Also
    --------
    MetricRegressor : The same for numbers.
    FalkonClassifier : Other kernels and losses, a width for each column, millions of rows.
    KernelClassifier : Streams; its ``fit`` has this learner among others.

    Notes
    -----
    Memory grows with the square of the number of rows in a system: 256 MB for 8,000 rows, 1.6 GB for 20,000. So does
    time from 7,000 rows on, by conjugate gradients [3]_, unless the penalty is small; else time grows with the cube.
    A model keeps all rows. For words and gaps, put :class:`~kernelstream.columns.Columns` before it in a pipeline.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
       backpropagation-free machine learning models, Science 383, 2024.
    .. [2] Beaglehole, Holzmüller, Radhakrishnan, Belkin: xRFM: accurate, scalable, and interpretable feature learning
       models for tabular data, arXiv 2508.10053, 2025.
    .. [3] Frangella, Tropp, Udell: Randomized Nyström preconditioning, SIAM J. Matrix Anal. Appl. 44, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = np.abs(X[:, 0] + X[:, 1]) > 1  # the other columns are noise
    >>> model = MetricClassifier(random_state=0).fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.9
    True
    >>> np.sort(np.argsort(model.relevance_)[-2:]).tolist()
    [0, 1]
    """

    on_device = True
    metric_, length_, relevance_ = property(metric), property(length_of), property(relevance)
    scales_, share_, lam_ = scales, share, lam
    dual_coef_, intercept_ = dual_coef, intercept

    lam: float | None = None
    size: str = "medium"

    _learns = LearnedMetric

    @staticmethod
    def _loss_rule(parameters: dict[str, Any], n_classes: int) -> Loss:
        loss = losses.get("squared")
        return losses.OneVsRest(loss) if n_classes > 2 else loss

    def _proba_of(self, scores: np.ndarray) -> np.ndarray:
        if len(self._known_labels()) == 1:
            return np.ones((len(scores), 1))
        p = special.softmax(self._state["steepness"] * of_labels(logarithms(scores)), axis=1)
        return link.agreeing(p, labels(scores))


@described(like=MetricClassifier)
@dataclass(eq=False, repr=False)
class MetricRegressor(StreamRegressor):
    r"""Kernel ridge regression on all rows in a learned metric, for one target or several.

    .. math:: f(x) = b + \sum_i \alpha_i k(x, x_i), \qquad (K + \lambda A^{-1})\, \alpha = y - b

    with all rows as centres and the kernel and metric of :class:`MetricClassifier`, from gradients of f [1]_ summed
    over the targets. Very many rows are cut at medians into leaves [2]_, each with its own system.

    Columns are divided by their standard deviations; values beyond three of them count by their logarithm.

    See Also
    --------
    MetricClassifier : The same for labels.
    FalkonRegressor : Other kernels, a width for each column, millions of rows.
    KernelRegressor : Streams; its ``fit`` has this learner among others.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(600, 8))
    >>> y = np.sin(X[:, 0] + X[:, 1]) + 0.1 * X[:, 2]  # the other columns are noise
    >>> model = MetricRegressor(random_state=0).fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.95
    True
    >>> bool(model.metric_[0, 1] > 0.9)  # x_0 + x_1 matters, not each of them alone
    True
    >>> mean, std = model.predict(X[500:], return_std=True)
    >>> bool(std[0] < model.predict(10 + X[:1], return_std=True)[1][0])  # less is known far from all rows
    True
    """

    _learner: ClassVar[LearnedMetric]
    on_device = True
    metric_, length_, relevance_ = property(metric), property(length_of), property(relevance)
    scales_, share_, lam_ = scales, share, lam
    dual_coef_, intercept_ = dual_coef, intercept
    loss = "squared"
    _several_targets = True

    lam: float | None = None
    size: str = "medium"

    _learns = LearnedMetric

    @in_turn
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted targets, (n,) or (n, k), and optionally their standard deviations.

        The deviation is that of a new target if f is a Gaussian process with the learned kernel. The first call takes
        the time of one more system of all rows, and 8 bytes of memory for each pair of rows.

        Parameters
        ----------
        X : (n, d) array or CSR
        return_std : bool, default=False

        Returns
        -------
        array, or a pair of arrays of the same shape
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        return mean, public(np.sqrt(self._learner.variance(self.state_, checked_rows(self, X))))
