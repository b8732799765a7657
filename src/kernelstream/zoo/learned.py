"""Recipes whose kernel is learned: RRF."""

from __future__ import annotations

from typing import Any

from ..estimators import RRFClassifier, RRFRegressor, RRFStep
from ..features.spectra import LowRank, Mixture
from ._registry import recipe
from .feature import _or_loss


@recipe("Nguyen, Le, Bui, Phung: Large-scale Online Kernel Learning with Random Feature Reparameterization, IJCAI 2017")
def rrf(
    task: str,
    gamma: Any = "median",
    n_components: int = 100,
    eta: float | str = "auto",
    eta_g: float = 0.1,
    batch_size: int = 1,
    epsilon: float | None = None,
    rank: int | None = None,
    n_centres: int | None = None,
    loss: Any = None,
    **common: Any,
) -> Any:
    """Random Fourier features whose widths are learned per input, together with the weights.

    ``rank`` learns a linear map of the input instead of a width per input, ``n_centres`` a spectral mixture. No step
    needs tuning.
    """
    if rank is not None and n_centres is not None:
        raise ValueError("rank (a linear map) and n_centres (a spectral mixture) are two different spectra: give one")
    spectrum: Any = "diagonal"
    if rank is not None:
        spectrum = LowRank(rank)
    elif n_centres is not None:
        spectrum = Mixture(n_centres)
    kind: Any = RRFRegressor if task == "regression" else RRFClassifier
    if (eta, eta_g, batch_size) != ("auto", 0.1, 1):
        common = {"step": RRFStep(eta, eta_g, batch_size), **common}
    return kind(n_components, gamma, spectrum, _or_loss(loss, task, epsilon), **common)
