"""A small experiment as a file, and how tests run it and show it."""

import kernelstream_papers as reproduce
from kernelstream_papers import report

TEXT = """
title = "A small one"
source = "tests"
place = "Table 0"
kind = "online"
measure = "mistakes"
repeats = 3

[[data]]
name = "iris"
scale = "minmax"
values = { B = 20 }

[[data]]
name = "wine"
scale = "standard"
values = { B = 30 }

[[algorithm]]
label = "Perceptron"
zoo = "perceptron"
parameters = { gamma = 1.0 }

[[algorithm]]
label = "RBP"
zoo = "rbp"
parameters = { gamma = 1.0, budget = "$B" }
only = ["iris"]

[[algorithm]]
label = "FOGD"
zoo = "fogd"
parameters = { n_components = 20 }
grid = { eta = [0.001, 1.0] }

[printed.iris]
Perceptron = [1.0, 0.1, 5.0, 100]
RBP = [99.0, 0.5]

[why]
"iris/Perceptron" = "The figure is made up."
"""


def parsed():
    """The experiment, read."""
    return reproduce.parse("small", TEXT)


def recorded(experiment, folder, **options):
    """Its records, made one after the other and without a bar."""
    return reproduce.run(experiment, folder, n_jobs=1, progress=False, **options)


def table(experiment, folder, **options):
    """Its cells, after a run."""
    return reproduce.table(experiment, recorded(experiment, folder, **options))


def made_up(data, algorithm, values, printed=None, settings=None):
    """A cell of a table, made up."""
    return reproduce.Cell(data, algorithm, settings or {}, values, [1.0], None, None, {}, printed)


def show(patch, *experiments):
    """Pages are of these experiments, until the patch is undone."""
    known = {experiment.name: experiment for experiment in experiments}
    patch.setattr(report, "names", lambda: list(known))
    patch.setattr(report, "load", known.__getitem__)
