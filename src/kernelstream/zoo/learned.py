"""Recipes whose kernel is learned: RRF."""

from __future__ import annotations

from typing import Any

from ..estimators import RRFClassifier, RRFRegressor, RRFStep
from ..features.spectra import LowRank, Mixture
from ._registry import TASKS, enter
from .feature import given_loss

STEP = {"eta": "auto", "eta_g": 0.1, "batch_size": 1, "lam": None}


def _rrf(task: str, epsilon: float | None, rank: int | None, n_centres: int | None, loss: Any, **options: Any) -> Any:
    if rank is not None and n_centres is not None:
        raise ValueError("rank (a linear map) and n_centres (a spectral mixture) are two different spectra: give one")
    spectrum: Any = "diagonal"
    if rank is not None:
        spectrum = LowRank(rank)
    elif n_centres is not None:
        spectrum = Mixture(n_centres)
    kind: Any = RRFRegressor if task == "regression" else RRFClassifier
    step = {name: options.pop(name) for name in STEP}
    if step != STEP:
        options["step"] = RRFStep(**step)
    return kind(spectrum=spectrum, loss=given_loss(loss, task, epsilon), **options)


enter(
    "rrf",
    "Nguyen, Le, Bui, Phung: Large-scale Online Kernel Learning with Random Feature Reparameterization, IJCAI 2017",
    TASKS,
    "Random Fourier features whose widths are learned per input, together with the weights.\n\n"
    "``rank`` learns a linear map of the input instead of a width per input, ``n_centres`` a spectral mixture. No step "
    "needs tuning; with ``lam`` they are those that the paper prints.",
    {"gamma": "median", "n_components": 100, **STEP, "epsilon": None, "rank": None, "n_centres": None, "loss": None},
    _rrf,
)  # fmt: skip
