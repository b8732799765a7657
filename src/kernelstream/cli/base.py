"""What all subcommands share."""

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

Run = Callable[[argparse.Namespace], Any]
Setup = Callable[[argparse.ArgumentParser, Sequence[str]], Run]


class Command(NamedTuple):
    """A subcommand: what its help says, and the function that adds its arguments."""

    help: str
    setup: Setup
    usage: str | None = None
    examples: str | None = None


COMMANDS: dict[str, Command] = {}


class UsageError(ValueError):
    """An error in the command line rather than in the data."""


class Interrupted(Exception):
    """The user asked to stop by a signal, and everything worth keeping was saved."""

    def __init__(self, message: str, number: int = signal.SIGINT):
        super().__init__(message)
        self.number = number


def command(name: str, help: str, usage: str | None = None, examples: str | None = None) -> Callable[[Setup], Setup]:
    """Decorator: register a subcommand."""

    def enter(setup: Setup) -> Setup:
        COMMANDS[name] = Command(help, setup, usage and f"kernelstream {name} {usage}", examples)
        return setup

    return enter


def import_parts(module: str, folder: str) -> None:
    """Import a module, which may also be in the given folder; UsageError if that fails."""
    if module.endswith(".py"):
        raise UsageError(f"--import takes the name of a module, not of a file: --import {module.removesuffix('.py')}")
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"--import: {module!r} is not the name of a module")
    if folder not in sys.path:
        sys.path.append(folder)  # at the end, so that a file here cannot replace a library
    try:
        importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"--import: the module {module!r} cannot be imported ({reason})") from error


def positive(text: str) -> int:
    """A whole number of at least 1, as ``1000``, ``1_000`` or ``1,000``."""
    try:
        value = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def not_the_data(option: str, path: str, read: Iterable[str]) -> None:
    """UsageError where an output would overwrite an input."""
    for other in read:
        if os.path.isfile(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise UsageError(f"{option}: {path} is read by this command, and would be replaced")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as a CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def print_json(content: Any, file: Any = None) -> None:
    """JSON on standard output, or elsewhere; numbers that JSON lacks become null."""
    print(json.dumps(_jsonable(content), indent=1), file=file)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return _jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Aligned columns on a terminal; elsewhere one plain line per row, for `grep` and the like."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        shown = [headings, *rows] if any(headings[1:]) else rows
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        print(f"# {title}")
        for row in shown:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(headings[1:]), pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def wants_bar(args: argparse.Namespace) -> bool | None:
    """Whether to show a progress bar; None shows it if standard error is a terminal."""
    return False if args.quiet else None


def inner(stream: Any) -> Any:
    """The reader of the current file."""
    return getattr(stream, "now", stream)


class Around:
    """A wrapper of a stream: whatever it does not define is that of the stream."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def read(self) -> Any:
        return self.stream.read()

    def __iter__(self) -> Iterator[Any]:
        while (block := self.read()) is not None:
            yield block
