"""What must hold for every first-order update."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses import Loss
from ..updates import Update


def check_update(update: Update, loss: Loss) -> None:
    """Assert the defining properties of an update with a loss.

    A row without loss does not move the function (beyond decay); a row with loss moves it so that the loss of that row
    does not grow, to first order: ``<tau, gradient> <= 0``; nothing is hidden in the object: the same call with
    the same memory gives the same answer, and the update's parameters stay as they were.

    Examples
    --------
    >>> from kernelstream import losses, updates
    >>> check_update(updates.OGD(eta=0.5), losses.get("hinge"))
    """
    rng = np.random.default_rng(0)
    before = repr(update.get_params())
    update.check(loss)
    many = loss.kind == "multiclass"
    for t in range(1, 40):
        y: Any = (
            int(rng.integers(3)) if many else float(rng.choice([-1.0, 1.0])) if loss.kind == "binary" else rng.normal()
        )
        f: Any = rng.normal(size=3) if many else float(rng.normal())
        k_xx = float(rng.uniform(0.5, 2.0))
        memory = update.memory(3 if many else 1)
        for _ in range(3):  # a memory with some history
            update.step(loss, y, f, k_xx, t, memory)
        again = memory.copy()
        first = update.step(loss, y, f, k_xx, t, memory)
        second = update.step(loss, y, f, k_xx, t, again)
        assert np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1]), (
            "the step has a hidden state"
        )
        assert np.array_equal(memory, again), "the memory has a hidden state"
        gradient = np.atleast_1d(loss.gradient(y, f))
        tau = np.atleast_1d(first[1]) * (-1.0 if update.diagonal else 1.0)
        assert np.isfinite(tau).all() and np.isfinite(first[0]).all(), "the step is not finite"
        assert float(tau @ gradient) <= 1e-12, "the step climbs the loss"
        if not gradient.any() and update.name not in ("perceptron", "norma"):
            assert not tau.any(), "a row without loss moved the function"
    assert repr(update.get_params()) == before, "the update changed its own parameters"
