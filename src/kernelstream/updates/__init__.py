r"""First-order updates: what one row does to a function ``f``.

An update turns the loss of a row into two numbers, ``(decay, tau)``, and the function becomes
``f <- decay * f + tau * k(x, .)``; on explicit features that reads ``w <- decay * w + tau * z``. For a multi-class
model ``tau`` is a vector with one entry per class. *Diagonal* updates (:class:`AdaGrad`) instead return ``(eta, g)``
and move every weight by its own step.

``memory`` is the update's own small array, one row per remembered number and one column per output; it belongs to
the model's state, so the objects here never change.
"""

from importlib import import_module
from pkgutil import iter_modules

from ..checks import positive
from ._base import CATALOGUE, Update, get, names, register
from .adagrad import AdaGrad
from .averaged import Averaged, unwrap
from .coin_betting import CoinBetting
from .norm_adagrad import NormAdaGrad
from .norma import NORMA
from .novelty import Novelty
from .ogd import OGD
from .passive_aggressive import PassiveAggressive
from .pegasos import Pegasos
from .perceptron import Perceptron
from .rates import REACH, SETTLED, TINY, auto_rate, check_auto, stable_rate, within_reach

__all__ = [
    "NORMA",
    "OGD",
    "REACH",
    "SETTLED",
    "TINY",
    "AdaGrad",
    "Averaged",
    "CoinBetting",
    "NormAdaGrad",
    "Novelty",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
    "Update",
    "auto_rate",
    "check_auto",
    "get",
    "names",
    "positive",
    "register",
    "stable_rate",
    "unwrap",
    "within_reach",
]

# Every file of this folder is looked at, so that an update needs no other entry than its own file.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
for _update in CATALOGUE.parts.values():
    if _update.__module__.startswith(__name__) and _update.__name__ not in __all__:
        globals()[_update.__name__] = _update
        __all__ += [_update.__name__]
