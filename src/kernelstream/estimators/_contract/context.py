"""What a learner is given besides its parameters: a few facts of the estimator around it, not the estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from sklearn.base import RegressorMixin

from ... import losses
from ...losses import Loss


@dataclass(frozen=True)
class Context:
    """What a learner knows of where it is used.

    Parameters
    ----------
    kind : type
        The class of the estimator, for messages and for models of the same kind.
    ops : engine
    loss_for : callable
        The loss for a number of classes; 0 for numbers.
    width
        How many columns the first rows had, where rows have come.
    texts : bool
        Whether some of these were scores of texts.
    """

    kind: type
    ops: Any
    loss_for: Callable[[int], Any]
    width: Any
    texts: bool = False

    @property
    def name(self) -> str:
        """Of the estimator, for messages."""
        return self.kind.__name__

    def targets(self, learner: Any) -> Any:
        """What the estimator knows of its targets, see :mod:`.targets`."""
        kind: Any = self.kind
        return kind._targets(learner, kind._several_targets)

    def asks(self, name: str) -> bool:
        """Whether the estimator has a parameter of this name."""
        return any(entry.init and entry.name == name for entry in fields(self.kind))

    @property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return issubclass(self.kind, RegressorMixin)


def learner_of(est: Any, ops: Any, width: int = 1) -> Any:
    """What learns in an estimator, for rows of this width: its parameters, those that its class has in their place."""
    parameters = {entry.name: getattr(est, entry.name) for entry in fields(est) if not entry.name.startswith("_")}
    parameters["loss"], features = getattr(est, "loss", None), getattr(est, "features", None)
    # a map with a seed of its own gives it to the whole
    parameters["seed"] = getattr(features, "random_state", None) if est.random_state is None else est.random_state
    return est._learns(parameters, Context(type(est), ops, partial(type(est)._loss_rule, parameters), width, est.texts))


def loss_of_labels(parameters: dict[str, Any], n_classes: int) -> Loss:
    """A binary loss turns into its multi-class form when a third class appears."""
    return losses.get(parameters["loss"], "multiclass" if n_classes > 2 else "classification")


def loss_of_numbers(parameters: dict[str, Any], n_classes: int) -> Loss:
    """The loss of a regressor."""
    return losses.get(parameters["loss"], task="regression")


def binary_loss(parameters: dict[str, Any], n_classes: int) -> Loss:
    """A binary loss, of several classes for each against the rest."""
    return one_against_rest(losses.get(parameters["loss"], task="binary"), n_classes)


def one_against_rest(loss: Loss, n_classes: int) -> Loss:
    """A loss of one output, for ``n_classes`` classes with an output each."""
    return losses.OneVsRest(loss) if n_classes > 2 and loss.kind == "binary" else loss
