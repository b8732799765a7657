"""What a learner is given besides its parameters: a few facts of the estimator around it, not the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import RegressorMixin

from ... import losses
from ...losses import Loss

#: The loss that goes with the parameters of an estimator, for a number of classes (0 for numbers).
LossRule = Callable[[dict[str, Any], int], Any]


@dataclass(frozen=True)
class Context:
    """What a learner knows of where it is used.

    Parameters
    ----------
    kind : type
        The class of the estimator, for messages and for models of the same kind.
    ops : engine
    engine : str or TorchEngine
        The parameter that it was chosen by.
    loss_for : callable
        The loss for a number of classes; 0 for numbers.
    random_state
        Where the seed of a model comes from.
    width
        How many columns the first rows had, where rows have come.
    """

    kind: type
    ops: Any
    engine: Any
    loss_for: Callable[[int], Any]
    random_state: Any
    width: Any

    @property
    def name(self) -> str:
        """Of the estimator, for messages."""
        return self.kind.__name__

    @property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return issubclass(self.kind, RegressorMixin)


def loss_of_labels(parameters: dict[str, Any], n_classes: int) -> Loss:
    """A binary loss turns into its multi-class form when a third class appears."""
    loss = losses.get(parameters["loss"], task="classification")
    return loss.multiclass() if n_classes > 2 and loss.kind == "binary" else loss


def loss_of_numbers(parameters: dict[str, Any], n_classes: int) -> Loss:
    """The loss of a regressor."""
    return losses.get(parameters["loss"], task="regression")


def binary_loss(parameters: dict[str, Any], n_classes: int) -> Loss:
    """A binary loss, of several classes for each against the rest."""
    return one_against_rest(losses.get(parameters["loss"], task="binary"), n_classes)


def one_against_rest(loss: Loss, n_classes: int) -> Loss:
    """A loss of one output, for ``n_classes`` classes with an output each."""
    return losses.OneVsRest(loss) if n_classes > 2 and loss.kind == "binary" else loss


def no_loss(parameters: dict[str, Any], n_classes: int) -> None:
    """Rows without a target have none."""
