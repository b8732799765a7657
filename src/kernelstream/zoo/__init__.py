"""The papers' names, each a composition of the library's parts.

Every module of this package holds the recipes of one family as rows of a table: name, paper, tasks, options, and how
the parts are composed. A recipe that is like no other is a function with the ``recipe`` decorator. New modules are
found without being listed anywhere.

>>> from kernelstream import zoo
>>> zoo.make("fogd", task="binary", n_components=200, gamma=0.5)
FeatureClassifier(features=RandomFourier(gamma=0.5, n_components=200),
                  loss=Hinge(), standardize=False)
"""

from importlib import import_module
from pkgutil import iter_modules

from ._registry import LABELS, NOVELTY, RIVALS, TASKS, Recipe, enter, get, make, names, recipe

__all__ = ["LABELS", "NOVELTY", "RIVALS", "TASKS", "Recipe", "enter", "get", "make", "names", "recipe"]

for _module in iter_modules(__path__):
    if not _module.name.startswith("_"):
        import_module(f"{__name__}.{_module.name}")
