"""Recipes of the zoo that stand for others."""

from kernelstream import zoo


def first_of_each_class(names):
    """The first recipe of every class of estimators, of every task: what concerns the class alone is tried on these."""
    found = {}
    for name in names:
        found.setdefault((type(zoo.make(name, zoo.get(name).tasks[-1])), *zoo.get(name).tasks), name)
    return sorted(found.values())
