r"""Smoothing over the last rows: ``f(x) = sum_i w_i y_i / sum_i w_i``, ``w_i = exp(-|x - x_i|^2 / h^2)``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..checks import whole
from ..core.threads import cuts
from ..passes.window.python import MANY, NUMBERS, TWO
from ..rows import Rows, dense
from ..state.change import Change
from ..state.schema import Array, Schema, length
from ._contract.base import State
from ._contract.classifier import StreamClassifier
from ._contract.learner import Learner
from ._contract.regressor import StreamRegressor
from ._described import described

USUAL_ROWS, MOST_CELLS = 1000, 200_000  # rows of a window of automatic size, and rows × columns, at most
AT_ONCE = 4096  # rows that are scored in one call


class Window(Learner):
    """The last rows, and what is near among them."""

    rows: Any
    neighbours: int

    def check_parameters(self) -> None:
        if not (isinstance(self.rows, str) and self.rows == "auto"):
            whole("rows", self.rows)
        whole("neighbours", self.neighbours)

    def one_width(self) -> bool:
        return True

    def reset(self, state: State) -> None:
        d = state["n_features"]
        room = min(USUAL_ROWS, max(100, MOST_CELLS // d)) if isinstance(self.rows, str) else int(self.rows)
        state |= {"window_rows": np.zeros((d, room)), "window_numbers": np.zeros(3)}
        state |= {"window_value": np.zeros(room), "window_weight": np.zeros(room)}

    def _kind(self, state: State) -> int:
        return NUMBERS if self.regression else TWO if state["n_outputs"] == 1 else MANY

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        X = np.ascontiguousarray(dense(X), np.float64)
        spec = (self._kind(state), self.neighbours)
        scores = self.ops.window_pass(X, kept_values(state, y), weight, state, spec, state["n_outputs"])
        state["t"] += len(y) if weight is None else int(np.count_nonzero(weight))
        return scores

    def score(self, state: State, X: Rows) -> np.ndarray:
        spec, ops = (self._kind(state), self.neighbours), self.ops
        scores = np.empty((X.shape[0], state["n_outputs"]))
        for rows in cuts(X.shape[0], AT_ONCE):
            part = np.ascontiguousarray(dense(X[rows]), np.float64)
            scores[rows] = ops.window_pass(part, None, None, state, spec, scores.shape[1])
        return scores

    def row_learner(self, state: State) -> Any:
        return self.ops.row_learner("window", self, state, self._kind(state), self.neighbours)

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        if trained:
            state["window_value"] = codes_after(state, state["window_value"], place)

    def mix_outputs(self, state: State, change: Change) -> None:
        """There are no weights of outputs."""

    def widen(self, state: State, d: int) -> None:
        state["window_rows"] = np.pad(state["window_rows"], ((0, d - state["n_features"]), (0, 0)))

    def schema(self, state: State, trained: bool) -> Schema:
        if not trained:
            return {}
        room = length(state, "window_value")
        if not 1 <= room <= (USUAL_ROWS if isinstance(self.rows, str) else self.rows):
            raise ValueError(f"the window of the state has room for {room} rows")
        held = Array((room,), low=0.0, high=max(1, len(state["classes"]) - 1)) if "classes" in state else Array((room,))
        return {
            "window_rows": Array((state["n_features"], room)),
            "window_value": held,
            "window_weight": Array((room,), low=0.0),
            "window_numbers": Array((3,)),
        }


def kept_values(state: State, y: np.ndarray) -> np.ndarray:
    """Encoded targets (n,) as a window keeps them: numbers, or codes of labels."""
    # a lone class is put on the side of its sign, as one of two classes is
    return (y > 0).astype(np.float64) if "classes" in state and state["n_outputs"] == 1 else y


def codes_after(state: State, codes: np.ndarray, place: int) -> np.ndarray:
    """Codes of labels that are kept, (rows,), after one has appeared at a place among them."""
    codes = np.zeros_like(codes) if len(state["classes"]) == 2 else codes
    return codes + (codes >= place)


@described()
@dataclass(eq=False, repr=False)
class WindowClassifier(StreamClassifier):
    r"""Classifier by smoothing over the last rows: log-odds of the classes' weights near a row.

    .. math:: p_c(x) \propto \sum_{i: y_i = c} k\bigl(|x - x_i| / h(x)\bigr)

    over the rows :math:`x_i` of the window, h(x) the distance to a near neighbour [1]_.

    Parameters
    ----------
    rows : int or "auto", default="auto"
        Rows of the window; "auto" means 1,000, fewer for rows of more than 200 columns.
    neighbours : int, default=10
        The width h of the kernel at a row is its distance to the ``neighbours``-th nearest row of the window.
    standardize : bool or "auto", default="auto"
        Scale every column by the mean and standard deviation of its first rows, or by running ones while these change.
        "auto" does so if the first 100 rows show columns of different units.
    random_state : ignored
        Nothing here is random; the parameter exists because all learners have it.

    See Also
    --------
    WindowRegressor : The same for numbers.
    KernelClassifier : Has this learner among its members.

    Notes
    -----
    The model is the window itself: after a change of the stream it has adapted within that many rows. Time per row is
    proportional to the rows of the window.

    References
    ----------
    .. [1] Nadaraya: On estimating regression, Theory of Probability and its Applications 9 (1964).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import WindowClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> WindowClassifier().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.97
    True
    """

    loss = "logistic"

    rows: int | str = "auto"
    neighbours: int = 10
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = Window


@described(like=WindowClassifier)
@dataclass(eq=False, repr=False)
class WindowRegressor(StreamRegressor):
    r"""Regression by smoothing over the last rows.

    .. math:: f(x) = \frac{\sum_i k(|x - x_i| / h(x))\, y_i}{\sum_i k(|x - x_i| / h(x))}

    over the rows :math:`x_i` of the window, h(x) the distance to a near neighbour [1]_.

    See Also
    --------
    WindowClassifier : The same for labels.
    KernelRegressor : Has this learner among its members.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import WindowRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> WindowRegressor().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.97
    True
    """

    loss = "squared"

    rows: int | str = "auto"
    neighbours: int = 10
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = Window
