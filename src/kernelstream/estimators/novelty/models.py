"""The detector of unusual rows that works without tuning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ...named import named
from ...rows import dense
from ...state.turns import in_turn
from ...trust.contributions import Explanation, in_turns
from .._contract.base import checked_rows
from .._contract.composite import inside
from .._contract.mixed import columns
from .._contract.outlier import StreamOutlier
from .._described import described
from .base import Surprise


@described()
@dataclass(eq=False, repr=False)
class KernelNovelty(StreamOutlier):
    r"""Finds unusual rows of a stream without labels, and without tuning.

    Four members say how much a row surprises them: its leverage among random Fourier features z of several widths,

    .. math:: s_1(x) = \log z(x)' \Bigl(\frac1n \sum_i z(x_i) z(x_i)' + \lambda I\Bigr)^{-1} z(x),

    and the mean of ``-log p`` over the cells that it falls into, where the cells cut single columns, random projections
    (LODA [1]_) or a few columns together. Each surprise becomes the share of recent rows that were less surprising, and
    so does the mean of the four shares: the score, between 0 and 1.

    A row is learned with less weight the more unusual it was, and with hardly any if it repeats unusual rows before it:
    a burst of equal rows becomes normal only slowly. Columns are measured by medians and quartiles, far values count by
    their logarithm, and the model starts over from the latest rows when the median of a column has moved away.

    Parameters
    ----------
    contamination : float, default=0.05
        Share of the rows that should be called unusual, in (0, 1). It sets the threshold of ``predict`` and nothing
        else: a row is unusual if its score is above ``1 - contamination``; after ``fit``, if it is among this share of
        the rows of ``fit``, until further rows are learned.
    memory : int, default=10000
        Rows that the model remembers: older ones fade.
    columns : "auto" or dict of name: kind, default="auto"
        Rows may hold words, dates and gaps: unless the first rows are purely numeric, data frames, dictionaries and
        arrays of objects are encoded on the fly (:class:`~kernelstream.columns.Columns`). A dict gives the kind of
        columns whose first cells do not show it: "number", "integer", "category", "date" or "ignored"; texts are left
        out. In rows of numbers a gap (NaN) counts as the median of its column.

    Attributes
    ----------
    offset_ : float
        Threshold: ``decision_function = score_samples - offset_``.
    columns_ : Columns
        The encoder of mixed rows, if there is one.

    See Also
    --------
    BudgetOneClass : A kernel expansion with a threshold, NORMA.
    DoublyStochasticOneClass : The one-class support vector machine.

    Notes
    -----
    ``learn(X)`` returns the score that each row had before it was learned, and 0 for the first. Rows join the
    model in groups, at most 256 at a time and at the same rows however the stream is cut into calls.

    References
    ----------
    .. [1] Pevný: LODA, lightweight on-line detector of anomalies, Machine Learning 102 (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelNovelty
    >>> X = np.random.default_rng(0).normal(size=(3000, 4))
    >>> X[2000, 2] = 9.0
    >>> model = KernelNovelty(contamination=0.01, random_state=0)
    >>> scores = model.learn(X)
    >>> bool(scores[2000] > 0.99)
    True
    >>> model.predict([[0, 0, 0, 0], [0, 9, 0, 0]])
    array([ 1, -1])
    >>> int(model.explain([[0, 9, 0, 0]]).contributions.argmax())
    1
    """

    _learns = Surprise
    columns_ = property(columns)

    contamination: float = 0.05
    memory: int = 10_000
    _: KW_ONLY
    columns: dict[str, str] | str = "auto"

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, shuffle: bool = True, passes: int = 1
    ) -> KernelNovelty:
        with self._turns:
            super().fit(X, None, sample_weight, shuffle=shuffle, passes=passes)
            scores = self._scores(X)[:, 0]
            self._state["offset"] = np.array([self.contamination, -np.quantile(scores, 1 - self.contamination)])
        return self

    fit.__doc__ = StreamOutlier.fit.__doc__

    def learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order; returns the score of each before it was learned, (n,), in [0, 1].

        The score is the share of recent rows that were less unusual.

        Parameters
        ----------
        X : (n, d) array, CSR, or mixed rows
        y : ignored
        sample_weight : (n,) array, optional
        """
        return super().learn(X, y, sample_weight)

    def novel(self, answers: np.ndarray) -> np.ndarray:
        """Which rows were unusual, (n,) bool, by what ``learn`` returned of them."""
        return answers > 1 - self.contamination

    @in_turn
    def forecast_scores(self, X: Any) -> np.ndarray:
        """The scores that ``learn`` would return of rows, (n,), in [0, 1]; the model is left as it is."""
        return self._scores(X)[:, 0]

    @in_turn
    def score_samples(self, X: Any) -> np.ndarray:
        """Minus the scores of rows, (n,): the larger, the more like the stream so far."""
        return -self._scores(X)[:, 0]

    @in_turn
    def decision_function(self, X: Any) -> np.ndarray:
        """``score_samples - offset_`` of rows, (n,): negative for unusual ones."""
        return self.score_samples(X) - self.offset_

    @property
    def offset_(self) -> float:
        """The least score of a row that is not unusual."""
        given, found = self.state_.get("offset", (None, 0.0))
        return float(found) if given == self.contamination else self.contamination - 1.0

    @in_turn
    def explain(self, X: Any, baseline: Any = None) -> Explanation:
        """How much each column added to the scores of some rows.

        Columns take the place of those of the baseline one after the other, in random orders.

        Parameters
        ----------
        X : (n, d) array, or mixed rows
        baseline : one row, optional
            The row to compare with; by default the medians of the columns.

        Returns
        -------
        :class:`~kernelstream.trust.Explanation`
            Contributions (n, d), which sum to the difference between ``score`` and ``base``, scores in [0, 1].
        """
        found: Any = inside(self)
        learner, state = found
        rows = np.asarray(dense(checked_rows(self, X)), np.float64)
        base = state["scale"][0] if baseline is None else np.asarray(dense(checked_rows(self, baseline)), np.float64)[0]
        score = learner.score(state, np.concatenate([rows, base[None]]))[:, 0]
        sources = None if self._encoder is None else self._encoder._sources_of_width()
        if sources is not None:
            sources = np.pad(sources, (0, rows.shape[1] - len(sources)), mode="edge")
        parts = in_turns(lambda X: learner.score(state, X), rows, base, np.zeros(len(rows), np.intp), sources)
        return Explanation(named(parts, self), score[:-1], np.full(len(rows), score[-1]), base.copy())
