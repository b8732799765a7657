r"""Budget strategies: what happens to the support set of ``f = sum_i alpha_i k(s_i, .)`` when a row joins.

An update (:mod:`kernelstream.updates`) gives a row its coefficients; a strategy takes the row into a support set of at
most ``budget`` vectors. Any strategy goes with any update, loss and kernel, unless its class says otherwise.

>>> from kernelstream import budgets
>>> budgets.names()
['bogd', 'forgetron', 'merge', 'oskl', 'project', 'projectron', 'projectron_pp', 'remove_random', 'remove_redundant',
'remove_smallest', 'replace', 'spa', 'stop', 'transfer']
"""

from ._base import Budget, Row, SupportSet, get, names, register
from .growing import OSKL, SPA, Growing, Stop
from .merge import Merge
from .projection import Project, Projectron, ProjectronPP
from .removal import BOGD, Forgetron, RemoveRandom, RemoveRedundant, RemoveSmallest
from .replace import Replace
from .transfer import Transfer

__all__ = [
    "BOGD",
    "OSKL",
    "SPA",
    "Budget",
    "Forgetron",
    "Growing",
    "Merge",
    "Project",
    "Projectron",
    "ProjectronPP",
    "RemoveRandom",
    "RemoveRedundant",
    "RemoveSmallest",
    "Replace",
    "Row",
    "Stop",
    "SupportSet",
    "Transfer",
    "get",
    "names",
    "register",
]
