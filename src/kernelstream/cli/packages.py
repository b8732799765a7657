"""Commands of other packages, found by their entry points of the group ``kernelstream.commands``.

A package that brings a command names the module in which it stands under ``@command``::

    [project.entry-points."kernelstream.commands"]
    serve = "kernelstream_service.commands.serve"
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from ..extras import PAPERS, SERVICE
from .base import Command, Run, Setup, UsageError

GROUP = "kernelstream.commands"

# Those of the packages beside this one, what each is for, and how to get it.
OTHERS = {
    "serve": ("serve models over HTTP", SERVICE),
    "consume": ("learn from a topic of Kafka or a stream of Redis", SERVICE),
    "store": ("look after the models of a server", SERVICE),
    "bench": ("compare algorithms on one file", PAPERS),
    "reproduce": ("compute the papers' tables and figures again", PAPERS),
}


def names() -> list[str]:
    """The commands of other packages: those of the packages beside this one, and all that are installed."""
    return sorted({*OTHERS, *(point.name for point in _points())})


def load(name: str) -> None:
    """Import a command, if a package brings it."""
    for point in _points(name=name):
        point.load()


def announced() -> dict[str, Command]:
    """What the help says of commands without importing them; one that is used says how to get it."""
    found = {name: OTHERS.get(name, ("", "")) for name in names()}
    return {name: Command(f"{about} (another package)", _missing(name, get)) for name, (about, get) in found.items()}


def _points(**which: Any) -> Iterable[Any]:
    from importlib import metadata  # slow to import, and needed only here

    return metadata.entry_points(group=GROUP, **which)


def _missing(name: str, remedy: str) -> Setup:
    def setup(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
        raise UsageError(f"{name} is a command of another package: {remedy}")

    return setup
