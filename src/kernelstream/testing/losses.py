"""The checks a loss must pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelstream import losses

__all__ = ["check_loss"]

_STEP = 1e-6  # of the one-sided differences
_HUGE = (1e308, -1e308, 800.0, -800.0, 0.0)


def check_loss(loss: str | losses.Loss, kinks: Iterable[tuple[Any, Any, Any]] = ()) -> None:
    """Check a loss against its definition.

    The value is not negative and convex in the score; the gradient lies between the one-sided differences of the value
    and within ``bound``; numbers, arrays, and for multi-class losses single rows, give the same answers; the dtype of
    the scores is kept and inputs are left alone; scores up to 1e308 give no NaN and no warning; probabilities, where
    there are any, sum to 1 and agree with the prediction rule.

    Parameters
    ----------
    loss : str or Loss
    kinks : iterable of (y, f, gradient)
        Points where the value has a kink, and the documented choice of gradient there.

    Raises
    ------
    AssertionError
        Naming the property that does not hold.
    """
    loss = losses.get(loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, f = _grid(loss)
        _check_shapes(loss, y, f)
        _check_convex(loss, y, f)
        _check_gradient(loss, y, f)
        _check_extremes(loss)
        if hasattr(loss, "probability"):
            _check_probability(loss, f)
        for y_kink, f_kink, expected in kinks:
            got = loss.gradient(y_kink, f_kink)
            np.testing.assert_allclose(got, expected, atol=1e-15, err_msg=f"gradient at y={y_kink}, f={f_kink}")


def _grid(loss: losses.Loss) -> tuple[np.ndarray, np.ndarray]:
    """Targets (n,) and scores (n,) or (n, C); multiples of 1/8, so that kinks at round numbers are among them."""
    if loss.kind == "multiclass":
        rng = np.random.default_rng(0)
        f = rng.integers(-16, 17, size=(400, 4)) / 8.0
        return rng.integers(0, 4, size=400), f
    scores = np.arange(-24, 25) / 8.0
    targets = np.array([-1.0, 1.0]) if loss.kind == "binary" else np.array([-1.25, 0.0, 0.5, 2.0])
    y, f = np.meshgrid(targets, scores)
    return y.ravel(), f.ravel()


def _check_shapes(loss: losses.Loss, y: np.ndarray, f: np.ndarray) -> None:
    y_before, f_before = y.copy(), f.copy()
    value, gradient = loss.value(y, f), loss.gradient(y, f)
    assert value.shape == y.shape, f"value has shape {value.shape}, expected {y.shape}"
    assert gradient.shape == f.shape, f"gradient has shape {gradient.shape}, expected {f.shape}"
    assert (y == y_before).all() and (f == f_before).all(), "the inputs were changed"
    for i in range(len(y)):
        one_y, one_f = (int(y[i]), f[i]) if loss.kind == "multiclass" else (float(y[i]), float(f[i]))
        np.testing.assert_allclose(loss.value(one_y, one_f), value[i], rtol=1e-13, atol=1e-300, err_msg="one row")
        np.testing.assert_allclose(loss.gradient(one_y, one_f), gradient[i], rtol=1e-13, atol=1e-15, err_msg="one row")
    single = f.astype(np.float32)
    assert loss.value(y, single).dtype == np.float32, "value of float32 scores is not float32"
    assert loss.gradient(y, single).dtype == np.float32, "gradient of float32 scores is not float32"
    np.testing.assert_allclose(loss.gradient(y, single), gradient, rtol=1e-5, atol=1e-6, err_msg="float32 gradient")
    empty = loss.gradient(y[:0], f[:0])
    assert empty.shape == f[:0].shape, "gradient of no rows is not empty"
    if loss.kind == "multiclass":
        zeros, ones = np.zeros(3, dtype=int), np.ones((3, 1))
        assert not loss.value(zeros, ones).any(), "a single class has a loss"
        assert not loss.gradient(zeros, ones).any(), "a single class has a gradient"


def _check_convex(loss: losses.Loss, y: np.ndarray, f: np.ndarray) -> None:
    value = loss.value(y, f)
    assert (value >= 0.0).all(), "the loss is negative somewhere"
    rng = np.random.default_rng(1)
    for other in (f[::-1], f + rng.normal(size=f.shape), 100.0 * f):
        middle = loss.value(y, 0.5 * (f + other))
        ends = 0.5 * (value + loss.value(y, other))
        assert (middle <= ends * (1 + 1e-12) + 1e-12).all(), "the loss is not convex in the score"


def _check_gradient(loss: losses.Loss, y: np.ndarray, f: np.ndarray) -> None:
    gradient = loss.gradient(y, f)
    if loss.bound is not None:
        assert np.abs(gradient).max() <= loss.bound * (1 + 1e-12), f"gradient exceeds bound = {loss.bound}"
    columns = np.eye(f.shape[1]) if f.ndim == 2 else [1.0]
    for direction in columns:
        at = loss.value(y, f)
        right = (loss.value(y, f + _STEP * direction) - at) / _STEP
        left = (at - loss.value(y, f - _STEP * direction)) / _STEP
        slope = gradient @ direction if f.ndim == 2 else gradient
        # convex, so every valid subgradient lies between the two; 1e-5 covers curvature and rounding
        bad = (slope < left - 1e-5) | (slope > right + 1e-5)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise AssertionError(
                f"gradient at y={y[i]}, f={f[i]} is {slope[i]:.6g}; differences give {left[i]:.6g} to {right[i]:.6g}"
            )


def _check_extremes(loss: losses.Loss) -> None:
    if loss.kind == "multiclass":
        f = np.array([[a, b, 0.0] for a in _HUGE for b in _HUGE])
        points: list[tuple[Any, Any]] = [(np.full(len(f), c), f) for c in range(3)]
        points += [(c, row) for c in range(3) for row in f]
    else:
        points = [(y, f) for y in (-1.0, 1.0) for f in _HUGE]
        points += [(np.array([y]), np.array([f])) for y, f in points]
    for y, f in points:
        value, gradient = loss.value(y, f), loss.gradient(y, f)
        assert not np.isnan(value).any(), f"value is NaN at y={y}, f={f}"
        assert not np.isnan(gradient).any(), f"gradient is NaN at y={y}, f={f}"
        if loss.bound is not None:
            assert np.abs(gradient).max() <= loss.bound * (1 + 1e-12), f"gradient exceeds its bound at f={f}"


def _check_probability(loss: Any, f: np.ndarray) -> None:
    if loss.kind == "multiclass":
        huge = np.array([[a, b, 0.0] for a in _HUGE for b in _HUGE] + [[-800.0] * 3, [-1e308] * 3])
        for scores in (f, huge, np.zeros((2, 1))):
            p = loss.probability(scores)
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12, err_msg="probabilities do not sum to 1")
            chosen = p[np.arange(len(p)), scores.argmax(axis=1)]
            assert (chosen >= p.max(axis=1) * (1 - 1e-12)).all(), "the predicted class is not the most probable"
        return
    for scores in (f, np.array(_HUGE)):
        p = loss.probability(scores)
        assert ((p >= 0.0) & (p <= 1.0)).all(), "a probability outside [0, 1]"
        assert ((p >= 0.5) == (scores >= 0.0)).all(), "the predicted label is not the more probable one"
        assert [loss.probability(float(s)) for s in scores] == p.tolist(), "probability of a number differs"
