"""``reproduce``: the papers' tables and figures, by the package in the folder ``papers``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec

from .._extra import PAPERS
from ._base import Run, command

PACKAGE = "kernelstream_papers"


@command("reproduce", "compute the papers' tables and figures again, beside other tools")
def _reproduce(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    if find_spec(PACKAGE) is None:
        parser.error(f"the experiments are a package of their own: {PAPERS}")
    from kernelstream_papers.command import setup

    return setup(parser)
