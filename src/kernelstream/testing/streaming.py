"""What must hold for every streaming estimator, whatever it learns."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_outlier_detector

from ..engine import has_native

CHUNKS = (1, 7)


def check_streaming(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    rtol: float = 1e-8,
    chunks: tuple[int, ...] = CHUNKS,
    bounded: bool = True,
    exact_split: bool = True,
    engines: tuple[Any, ...] | None = None,
) -> None:
    """Assert the streaming contract on rows X (n, d) with targets y (n,).

    Any split of the rows into calls gives the same model and the same scores (to the bit in the python engine); the
    engines agree; a copied state continues as if nothing had happened; scoring changes nothing; inputs are neither
    changed nor kept; a row of weight 0 changes nothing, and neither does a call without rows; bad input is refused and
    leaves no trace; memory stays constant.

    Parameters
    ----------
    estimator : estimator
        Unfitted; it is cloned, never changed. Where its ``random_state`` is None, 0 is used.
    rtol : float
        Relative tolerance between engines and, in the native engine, between splits.
    chunks : tuple of int
        Rows per call, compared with all rows in one call.
    bounded : bool
        Whether the state must keep its size in the second half of the stream.
    exact_split : bool
        Whether the python engine must be bit-identical for any split.
    engines : tuple, optional
        Engines to check, which must agree with the first; by default python and, where it was built, native.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import FeatureClassifier
    >>> X, y = make_moons(150, noise=0.2, random_state=0)
    >>> check_streaming(FeatureClassifier(random_state=0), X, y)
    """
    if engines is None:
        engines = ("python", "native") if has_native() else ("python",)
    results = []
    for engine in engines:
        case = _Case(estimator, engine, X, y)
        results.append((case.whole.state_, case.scores))
        exact = isinstance(engine, str) and engine == "python" and exact_split
        tolerance = 0.0 if exact else rtol
        for chunk in chunks:
            _check_split(case, chunk, tolerance)
        _check_resume(case)
        _check_pure(case)
        _check_weight_zero(case, tolerance)
        _check_nothing(case)
        _check_bad_input(case)
        if bounded:
            _check_bounded(case)
    for engine, (state, scores) in zip(engines[1:], results[1:]):
        assert_same_state(results[0][0], state, rtol, f"engines {engines[0]} and {engine}")
        assert_same_scores(results[0][1], scores, rtol, f"engines {engines[0]} and {engine}")


def assert_same_state(a: dict[str, Any], b: dict[str, Any], rtol: float, what: str) -> None:
    """Assert that two states hold the same entries, arrays within ``rtol`` of their largest value (0: to the bit)."""
    assert a.keys() == b.keys(), f"{what}: entries differ: {sorted(a.keys() ^ b.keys())}"
    for key in a:
        left, right = np.asarray(a[key]), np.asarray(b[key])
        assert left.shape == right.shape, f"{what}: {key} has shape {left.shape} and {right.shape}"
        if rtol == 0.0 or left.dtype.kind != "f":
            assert np.array_equal(left, right), f"{what}: {key} differs"
        else:
            scale = max(float(np.max(np.abs(left), initial=0.0)), 1e-300)
            gap = float(np.max(np.abs(left - right), initial=0.0)) / scale
            assert gap <= rtol, f"{what}: {key} differs by {gap:.2e} of its largest value (allowed {rtol:.0e})"


def assert_same_scores(a: np.ndarray, b: np.ndarray, rtol: float, what: str) -> None:
    """Assert that two arrays of scores agree within ``rtol`` of the largest finite score."""
    assert a.shape == b.shape, f"{what}: scores of shape {a.shape} and {b.shape}"
    finite = np.isfinite(a)
    assert np.array_equal(finite, np.isfinite(b)), f"{what}: scores are infinite in different places"
    scale = max(float(np.max(np.abs(a[finite]), initial=0.0)), 1e-300)
    gap = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0)) / scale
    assert gap <= rtol, f"{what}: scores differ by {gap:.2e} of the largest (allowed {rtol:.0e})"


class _Case:
    """An estimator with an engine, its rows, and models of all of them and of the first half, learned once."""

    def __init__(self, estimator: Any, engine: Any, X: Any, y: Any) -> None:
        # of the learners inside, too: with two engines mixed, neither would be checked
        params = dict.fromkeys((name for name in estimator.get_params() if name.split("__")[-1] == "engine"), engine)
        if estimator.get_params(deep=False).get("random_state", 0) is None:
            params["random_state"] = 0  # or no two models would be the same
        self.make: Callable[[], Any] = lambda: clone(estimator).set_params(**params)
        self.X, self.y, self.half = X, y, X.shape[0] // 2
        self.name = type(estimator).__name__
        self.whole, self.first = self.make(), self.make()
        self.scores: np.ndarray = self.whole.learn(X, y)
        _learn_of_copies(self.first, X[: self.half], y[: self.half])

    def of_all(self) -> Any:
        """A model of all rows, which may be changed."""
        return copy.deepcopy(self.whole)

    def of_half(self) -> Any:
        """A model of the first half of the rows, which may be changed."""
        return copy.deepcopy(self.first)


def _learn_of_copies(est: Any, X: Any, y: Any) -> None:
    """Learn from copies of rows; the model must not change them, nor hold them when they are overwritten."""
    rows, target, name = X.copy(), np.array(y), type(est).__name__
    est.learn(rows, target)
    unchanged = (rows != X).nnz == 0 if sp.issparse(X) else np.array_equal(rows, X)
    assert unchanged and np.array_equal(target, y), f"{name}: learn changed its input"
    before = copy.deepcopy(est.state_)
    (rows.data if sp.issparse(rows) else rows)[:] = 0
    assert_same_state(before, est.state_, 0.0, f"{name}: before and after its input was overwritten")


def _in_chunks(est: Any, X: Any, y: Any, chunk: int) -> list[np.ndarray]:
    return [est.learn(X[i : i + chunk], y[i : i + chunk]) for i in range(0, X.shape[0], chunk)]


def _check_split(case: _Case, chunk: int, rtol: float) -> None:
    est = case.make()
    parts = _in_chunks(est, case.X, case.y, chunk)
    what = f"{case.name}, engine={est.engine}: {chunk} rows a call and all in one call"
    assert_same_state(est.state_, case.whole.state_, rtol, what)
    if all(part.ndim == case.scores.ndim and part.shape[1:] == case.scores.shape[1:] for part in parts):
        assert_same_scores(np.concatenate(parts), case.scores, rtol, what)


def _check_resume(case: _Case) -> None:
    X, y = case.X[case.half :], case.y[case.half :]
    straight = case.of_half()
    _learn_of_copies(straight, X, y)
    for how, resumed in {"pickle": pickle.loads(pickle.dumps(case.first)), "state": case.make()}.items():
        if how == "state":
            resumed.state_ = copy.deepcopy(case.first.state_)
        resumed.learn(X, y)
        assert_same_state(resumed.state_, straight.state_, 0.0, f"{case.name}: resumed from its {how}, and not")


def _check_pure(case: _Case) -> None:
    est, X = case.of_all(), case.X
    before = copy.deepcopy(est.state_)
    first = est.predict(X)
    assert np.array_equal(first, est.predict(X)), f"{case.name}: two calls of predict differ"
    if hasattr(est, "decision_function"):
        est.decision_function(X)
    assert_same_state(before, est.state_, 0.0, f"{case.name}: before and after predict")


def _check_weight_zero(case: _Case, rtol: float) -> None:
    X, y = case.X, case.y
    keep = np.arange(X.shape[0]) % 3 != 1
    weighted, without = case.make(), case.make()
    weighted.learn(X, y, sample_weight=keep.astype(float))
    without.learn(X[keep], y[keep], sample_weight=np.ones(keep.sum()))
    assert_same_state(weighted.state_, without.state_, rtol, f"{case.name}: weight 0 and no row")


def _check_nothing(case: _Case) -> None:
    """Calls without rows, or with rows of weight 0 only, are answered and change nothing."""
    est, X, y, half, name = case.make(), case.X, case.y, case.half, case.name
    assert len(est.learn(X[:0], y[:0])) == 0, f"{name}: no rows have scores"
    assert not hasattr(est, "state_"), f"{name}: a call without rows left traces on an unfitted model"
    est = case.of_half()
    before = copy.deepcopy(est.state_)
    assert len(est.learn(X[:0], y[:0])) == 0, f"{name}: no rows have scores"
    scores = est.learn(X[half:], y[half:], sample_weight=np.zeros(X.shape[0] - half))
    assert_same_state(before, est.state_, 0.0, f"{name}: before and after rows of weight 0")
    asks = ("forecast_scores",) if is_outlier_detector(est) else ()
    known = next(getattr(est, ask) for ask in (*asks, "decision_function", "predict") if hasattr(est, ask))(X[half:])
    assert_same_scores(known, scores, 1e-8, f"{name}: scores of rows of weight 0, and of the same rows")


def _check_bad_input(case: _Case) -> None:
    est, X, y, name = case.make(), case.X, case.y, case.name
    rows = X[:5].toarray() if sp.issparse(X) else np.array(X[:5])
    hole, endless = rows.copy(), rows.copy()
    hole[2, 0], endless[1, 0] = np.nan, np.inf
    target = np.array(y[:5])
    bad: dict[str, tuple[Any, Any]] = {
        "NaN": (hole, target),
        "infinity": (endless, target),
        "a missing column": (rows[:, :-1], target),
        "a one-dimensional X": (rows[0], target[:1]),
        "strings": (np.full(rows.shape, "a"), target),
        "ragged lists": ([[1.0, 2.0], [1.0]], target[:2]),
        "y of another length": (rows, target[:4]),
        "y with NaN": (rows, np.full(5, np.nan)),
    }
    if is_outlier_detector(est):  # they ignore y
        bad = {what: pair for what, pair in bad.items() if not what.startswith("y ")}
    elif not is_classifier(est):
        bad["a target that is not a number"] = (rows, np.array(list("abcde")))
    fresh = dict(est.__dict__)
    for what, (rows_, target_) in bad.items():
        if what == "a missing column":
            continue
        _refuses(est, rows_, target_, what)
        assert est.__dict__.keys() == fresh.keys(), f"{name}: {what} left traces on an unfitted model"
    est = case.of_all()
    before = copy.deepcopy(est.state_)
    for what, (rows_, target_) in bad.items():
        _refuses(est, rows_, target_, what)
        assert_same_state(before, est.state_, 0.0, f"{name}: before and after {what}")
    for weight in (np.array([1, 1, -1, 1, 1.0]), np.ones(4), np.full(5, np.nan)):
        _refuses(est, rows, target, f"sample_weight={weight}", sample_weight=weight)
        assert_same_state(before, est.state_, 0.0, f"{name}: before and after bad weights")


def _refuses(est: Any, X: Any, y: Any, what: str, **options: Any) -> None:
    try:
        est.learn(X, y, **options)
    except ValueError as error:
        if not str(error).strip():
            raise AssertionError(f"{type(est).__name__}: the error about {what} says nothing") from error
    else:
        raise AssertionError(f"{type(est).__name__} accepted {what}")


def _check_bounded(case: _Case) -> None:
    est = case.of_all()
    size = _bytes(est.state_)
    for _ in range(2):
        est.learn(case.X, case.y)
    assert _bytes(est.state_) <= size, f"{case.name}: state grew from {size} to {_bytes(est.state_)} bytes"


def _bytes(state: dict[str, Any]) -> int:
    return sum(value.nbytes for value in state.values() if isinstance(value, np.ndarray))
