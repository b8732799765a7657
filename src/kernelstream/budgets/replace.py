"""Strategies in which the new row takes over what it can of the vector it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import flag
from ._base import NOTHING, NOVELTY, Budget, Row, SupportSet, register

TIE = 1e-9  # costs this close are equal, and the lowest slot is taken


@register
class Replace(Budget):
    r"""The new row replaces the vector r whose part it can take over best, and takes it over (BPA-S, BPA-NN).

    The smallest change of f that drops r, removes the loss as the update does and uses only the vectors V (the new row;
    with ``neighbour`` also the nearest neighbour of r) projects ``alpha_r k(x_r, .)`` on their span. Its cost is
    ``|alpha_r|^2 (k_rr - k_Vr' K_VV^-1 k_Vr) / 2`` up to a term that is the same for every r; the cheapest r goes.

    Wang, Vucetic: Online passive-aggressive algorithms on a budget, AISTATS 2010.

    Parameters
    ----------
    neighbour : bool
        Whether the nearest neighbour of r shares the work.
    """

    name = "replace"

    def __init__(self, neighbour: bool = False):
        self.neighbour = neighbour

    def check(self, budget: Any, kernel: Any, loss: Any, update: Any) -> None:
        flag("neighbour", self.neighbour)
        super().check(budget, kernel, loss, update)

    @property
    def gram(self) -> bool:  # type: ignore[override]
        """The neighbours are found in the Gram matrix."""
        return self.neighbour

    @property
    def least(self) -> int:  # type: ignore[override]
        """A neighbour must exist."""
        return 2 if self.neighbour else 1

    def absorb(self, S: SupportSet, row: Row) -> None:
        if not S.full:
            return S.place(S.n, row, row.tau)
        alpha = S.coefficients
        if self.neighbour:
            on_new, on_neighbour, residual, nearest = _two(S, row)
        else:
            on_new = _share(row)
            residual = S.diag - row.k * on_new
        cost = 0.5 * (alpha**2).sum(axis=0) * np.maximum(residual, 0.0)
        r = int(np.argmax(cost <= cost.min() + TIE))
        if self.neighbour:
            S.alpha[:, nearest[r]] += alpha[:, r] * on_neighbour[r] / S.scale
        S.place(r, row, alpha[:, r] * on_new[r] + row.tau)

    def native(self) -> Any:
        return self.name, [float(self.neighbour)]


def _share(row: Row) -> np.ndarray:
    """How much of every vector the new row takes over, ``k / k(x, x)``; nothing if it is 0, as all k are."""
    return row.k / row.k_xx if row.k_xx > NOTHING else np.zeros_like(row.k)


def _two(S: SupportSet, row: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Projection of every slot on the new row and its own nearest neighbour: weights, residual, neighbour, (n,)."""
    gram, every = S.state["budget_gram"], np.arange(S.n)
    distance = S.diag[:, None] + S.diag - 2 * gram
    distance[every, every] = np.inf
    nearest = distance.argmin(axis=1)
    k_rn, k_nn, k_tn = gram[every, nearest], S.diag[nearest], row.k[nearest]
    det = row.k_xx * k_nn - k_tn**2
    apart = det > NOVELTY * row.k_xx * k_nn  # otherwise the neighbour equals the new row, up to rounding
    det = np.where(apart, det, 1.0)
    on_new = np.where(apart, (row.k * k_nn - k_rn * k_tn) / det, _share(row))
    on_neighbour = np.where(apart, (k_rn * row.k_xx - row.k * k_tn) / det, 0.0)
    return on_new, on_neighbour, S.diag - row.k * on_new - k_rn * on_neighbour, nearest
