"""The checks a budget strategy must pass."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from .. import budgets, losses, updates
from ..budgets import Budget
from ..estimators import BudgetClassifier, BudgetRegressor
from ..kernels import Gaussian
from ..losses import Loss
from ..updates import Update
from ._compare import close

__all__ = ["check_budget"]

_LOSSES = {"binary": "hinge", "multiclass": "crammer_singer", "regression": "epsilon_insensitive"}
_UPDATES = (updates.OGD(0.5), updates.Perceptron(), updates.OGD(0.5, lam=0.01))
_KERNEL, _BUDGET = Gaussian(0.7), 8
_ROWS, _BLOCK = 60, 16


def check_budget(strategy: str | Budget, loss: str | Loss | None = None, update: str | Update | None = None) -> None:
    """Check a budget strategy: what must hold for every support set, whatever leaves it.

    There are never more support vectors than the budget. The score of a row is that of the function that the state
    describes, ``f(x) = sum_j alpha_j k(s_j, x)``, also when rows come in blocks: a slot that changes is changed through
    the support set's own methods. The diagonal, and the Gram matrix where the strategy keeps one, are those of the
    vectors. Nothing is remembered outside the state: a model with a copy of it continues in the same way. All numbers
    are finite, in float32 too.

    Parameters
    ----------
    strategy : str or Budget
    loss, update : optional
        By default, for every kind of loss that the strategy serves, a piecewise linear one and an update it accepts.

    Raises
    ------
    AssertionError
        Naming the property that does not hold.

    Examples
    --------
    >>> from kernelstream.testing import check_budget
    >>> check_budget("remove_random")
    """
    strategy = budgets.get(strategy)
    parameters = repr(strategy.get_params())
    chosen = [losses.get(loss)] if loss is not None else [losses.get(_LOSSES[kind]) for kind in strategy.kinds]
    for one in chosen:
        step = _an_update(strategy, one, update)
        for dtype in (np.float64, np.float32):
            est = _estimator(strategy, one, step)
            X, y = _stream(one.kind, dtype)
            _check_rows(est, X, y, 1e-9 if dtype == np.float64 else 1e-4)
    assert repr(strategy.get_params()) == parameters, "the strategy changed its own parameters"


def _an_update(strategy: Budget, loss: Loss, update: Any) -> Update:
    """The update given, or the first that goes with the strategy."""
    reason = None
    for candidate in _UPDATES if update is None else (updates.get(update),):
        try:
            candidate.check(loss)
            strategy.check(_BUDGET, _KERNEL, loss, candidate)
        except ValueError as error:
            reason = error
        else:
            return candidate
    raise AssertionError(f"no update to check {strategy!r} and {loss!r} with: give one ({reason})")


def _estimator(strategy: Budget, loss: Loss, update: Update) -> Any:
    kind: Any = BudgetRegressor if loss.kind == "regression" else BudgetClassifier
    return kind(_KERNEL, budget=_BUDGET, strategy=strategy, loss=loss, update=update, engine="python", random_state=0)


def _stream(kind: str, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a nonlinear target; some of them occur twice."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(_ROWS, 3)).astype(dtype)
    X[40:44] = X[20:24]
    f = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2]
    if kind == "regression":
        return X, f
    return X, np.digitize(f, [0.0] if kind == "binary" else [-0.4, 0.4])


def _check_rows(est: Any, X: np.ndarray, y: np.ndarray, tolerance: float) -> None:
    classes = {} if isinstance(est, BudgetRegressor) else {"classes": np.unique(y)}
    est.learn(X[:1], y[:1], **classes)
    blocks, again = copy.deepcopy(est), None
    found = []
    for i in range(1, len(X)):
        expected = _scores(est, X[i : i + 1])
        try:
            found.append(est.learn(X[i : i + 1], y[i : i + 1]))
        except ValueError as error:
            raise AssertionError(f"row {i} is not learned: {error}") from error
        close(found[-1], expected, tolerance, f"the score of row {i} is not that of the function held before it", 1.0)
        _check_state(est, tolerance)
        if i == len(X) // 2:
            again = clone(est)
            again.state_ = copy.deepcopy(est.state_)
    assert again is not None
    again.learn(X[len(X) // 2 + 1 :], y[len(X) // 2 + 1 :])
    for key, value in est.state_.items():
        assert np.array_equal(value, again.state_[key]), f"something is remembered outside the state: {key} differs"
    blocks._learner.expansion(blocks._state).block = _BLOCK
    close(blocks.learn(X[1:], y[1:]), np.concatenate(found), tolerance, "rows in blocks have other scores", 1.0)
    n = est.n_support_
    assert blocks.n_support_ == n, f"rows in blocks leave {blocks.n_support_} support vectors, single rows {n}"
    close(blocks.state_["support"][:n], est.state_["support"][:n], tolerance, "rows in blocks leave other vectors", 1.0)


def _check_state(est: Any, tolerance: float) -> None:
    """The state after a row."""
    state, kernel = est.state_, est.kernel_
    n, vectors = est.n_support_, est.support_vectors_
    assert 0 <= n <= est.budget, f"{n} support vectors under a budget of {est.budget}"
    for name, value in state.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), f"{name} is not finite"
    if not n:
        return
    close(state["diag"][:n], kernel.diag(vectors), tolerance, "diag is not k(s, s) of the vectors", 1.0)
    if "budget_gram" in state:
        gram = kernel.pairwise(vectors, vectors)
        close(state["budget_gram"][:n, :n], gram, tolerance, "the Gram matrix is not that of the vectors", 1.0)


def _scores(est: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(est.predict(X) if isinstance(est, BudgetRegressor) else est.decision_function(X))
