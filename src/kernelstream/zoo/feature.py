"""Recipes on explicit features: FOGD and NOGD."""

from __future__ import annotations

from typing import Any

from ..estimators import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor
from ..features import Nystroem, for_kernel
from ..losses import CrammerSinger, Hinge, Loss, Squared
from ..updates import OGD
from ._registry import recipe


def gradient_loss(task: str, epsilon: float | None) -> Loss:
    """The loss of the papers' gradient learners: hinge, Crammer-Singer, or squared with a dead zone epsilon."""
    if task == "regression":
        return Squared(epsilon or 0.0)
    if epsilon is not None:
        raise ValueError("epsilon is the dead zone of regression; classification has none")
    return Hinge() if task == "binary" else CrammerSinger()


def given_loss(loss: Any, task: str, epsilon: float | None) -> Any:
    """The loss that was given, else that of the papers."""
    if loss is None:
        return gradient_loss(task, epsilon)
    if epsilon is not None:
        raise ValueError("give epsilon inside the loss object, or no loss")
    return loss


JMLR = "Lu, Hoi, Wang, Zhao, Liu: Large Scale Online Kernel Learning, JMLR 17 (2016)"


@recipe(f"{JMLR}, algorithm 1")
def fogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    n_components: int = 400,
    eta: float | None = None,
    epsilon: float | None = None,
    loss: Any = None,
) -> Any:
    """Online gradient descent on random Fourier features.

    ``n_components`` is the number D of frequencies (2D features, scaled by 1/sqrt(D): the paper's eta is ours divided
    by D). Without ``eta`` the steps are AdaGrad's and need no tuning; with it they are the paper's constant ones.
    """
    features = for_kernel(kernel, n_components=n_components, gamma=gamma)
    loss = given_loss(loss, task, epsilon)
    update = "auto" if eta is None else OGD(eta)
    if task == "regression":
        return FeatureRegressor(features, loss, update, center=eta is None)
    return FeatureClassifier(features, loss, update)


@recipe(f"{JMLR}, algorithm 2")
def nogd(
    task: str,
    kernel: Any = "gaussian",
    gamma: Any = None,
    budget: int = 100,
    rank: int | None = None,
    eta: float | None = None,
    epsilon: float | None = None,
    landmarks: Any = "support",
    loss: Any = None,
) -> Any:
    """Kernel gradient descent until the budget is full, then on Nyström features of the support set.

    ``landmarks`` other than "support" (uniform, kmeans++, leverage, rpcholesky, or an array) are chosen among the
    first rows instead. ``refresh=ROWS`` lets the support landmarks move. Without ``eta`` no step needs tuning.
    """
    loss = given_loss(loss, task, epsilon)
    update = "auto" if eta is None else OGD(eta)
    rest = {"center": eta is None} if task == "regression" else {}
    if isinstance(landmarks, str) and landmarks == "support":
        kind: Any = NystroemRegressor if task == "regression" else NystroemClassifier
        return kind(kernel, gamma, budget, rank, loss, update, **rest)
    rank = max(1, round(0.2 * budget)) if rank is None else rank
    kind = FeatureRegressor if task == "regression" else FeatureClassifier
    return kind(Nystroem(kernel, budget, gamma, landmarks, rank), loss, update, **rest)
