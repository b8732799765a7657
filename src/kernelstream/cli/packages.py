"""Commands of other packages, found by their entry points of the group ``kernelstream.commands``.

A package that brings a command names the module in which it stands under ``@command``::

    [project.entry-points."kernelstream.commands"]
    serve = "kernelstream_service.commands.serve"
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..extras import PAPERS, SERVICE
from .base import COMMANDS, Run, UsageError, command

GROUP = "kernelstream.commands"

# Those of the packages beside this one, what each is for, and how to get it.
OTHERS = {
    "serve": ("serve models over HTTP", SERVICE),
    "consume": ("learn from a topic of Kafka or a stream of Redis", SERVICE),
    "store": ("look after the models of a server", SERVICE),
    "bench": ("compare algorithms on one file", PAPERS),
    "reproduce": ("compute the papers' tables and figures again", PAPERS),
}


def load(name: str) -> None:
    """Import a command of another package; in the place of one that is not installed stands how to get it."""
    from importlib import metadata  # slow to import, and needed only here

    for point in metadata.entry_points(group=GROUP, name=name):
        point.load()
    if name in OTHERS and name not in COMMANDS:
        about, remedy = OTHERS[name]

        @command(name, about)
        def missing(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
            raise UsageError(f"{name} is a command of another package: {remedy}")


def names() -> list[str]:
    """The commands of other packages: those of the packages beside this one, and all that are installed."""
    from importlib import metadata

    return sorted({*OTHERS, *(point.name for point in metadata.entry_points(group=GROUP))})
