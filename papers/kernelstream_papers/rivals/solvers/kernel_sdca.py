"""Dual coordinate ascent in the kernel expansion, on all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelstream.losses import Loss, dual_of

BLOCK = 256  # rows of the Gram matrix made at once


@dataclass
class Expansion:
    """Coefficients (n,) of ``f = sum_i alpha_i k(x_i, .)``, the objectives that enclose the minimum, and passes."""

    alpha: np.ndarray
    primal: float
    dual: float
    n_iter: int
    converged: bool


def kernel_sdca(
    gram: Callable[[np.ndarray], np.ndarray],
    diag: np.ndarray,
    y: np.ndarray,
    a: np.ndarray,
    loss: Loss,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    report: Callable[[int, float], None] = lambda iteration, gap: None,
) -> Expansion:
    r"""Minimise ``1/2 ||f||^2 + sum_i a_i l(y_i, f(x_i))`` over the functions of the kernel (k-SDCA).

    Rows come in random order, each moves its dual number to the best place, which changes all scores by one row of the
    Gram matrix. Stops when the duality gap is at most ``tol`` times the objective of f = 0.

    Parameters
    ----------
    gram : callable
        Rows (m,) of indices -> their rows of the Gram matrix, (m, n).
    diag : (n,) array
        k(x_i, x_i).
    y : (n,) array
        Labels -1 and +1, or targets.
    a : (n,) array
        Positive factors of the losses.
    """
    dual, n = dual_of(loss), len(y)
    sign = np.ones(n) if loss.kind == "regression" else y
    beta, f = dual.start * a, np.zeros(n)
    targets, weights, sizes, signs = (part.tolist() for part in (y, a, diag, sign))
    if dual.start:
        for start in range(0, n, BLOCK):
            rows = np.arange(start, min(start + BLOCK, n))
            f[rows] = gram(rows) @ (beta * sign)
    at_zero = float(a @ loss.value(y, np.zeros(n)))
    for iteration in range(1, max_iter + 1):
        order = rng.permutation(n)
        for start in range(0, n, BLOCK):
            rows = order[start : start + BLOCK]
            for i, k in zip(rows.tolist(), gram(rows)):
                if sizes[i] <= 0.0:
                    continue
                old = float(beta[i])
                new = dual.best(targets[i], float(f[i]), old, weights[i], sizes[i])
                if new != old:
                    f += ((new - old) * signs[i]) * k
                    beta[i] = new
        half = 0.5 * float((beta * sign) @ f)
        primal, lower = half + float(a @ loss.value(y, f)), float(dual.value(y, beta, a).sum()) - half
        report(iteration, (primal - lower) / max(at_zero, 1e-300))
        if primal - lower <= tol * at_zero:
            return Expansion(beta * sign, primal, lower, iteration, True)
    return Expansion(beta * sign, primal, lower, max_iter, False)
