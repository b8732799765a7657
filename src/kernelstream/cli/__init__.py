"""The command ``kernelstream``.

A subcommand is one function under ``@command``: it adds its arguments to a parser and returns what runs them. Heavy
modules are imported inside, so that ``--help`` and ``--version`` are quick.

Exit codes: 0 done, 1 something is wrong with the data, a model or the environment, 2 wrong usage, 130 interrupted
by control-C and 143 by SIGTERM (after a checkpoint, where there are any).
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gc
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..progress import Bar
from ..registry import plugins as _plugins
from ..registry.names import did_you_mean
from . import packages
from ._later import imports_later
from ._stopping import code_of
from .base import COMMANDS, Interrupted, UsageError, import_parts, print_json, print_table

__all__ = ["Bar", "UsageError", "main", "print_json", "print_table"]  # what commands of other packages are made of

OK, FAILED, USAGE = 0, 1, 2
IMPORT = "import a module with parts of your own; it is also searched for in this folder"
DEBUG = "show where an error comes from"

MODULES = ("train", "predict", "evaluate", "forecast", "info", "lists", "completion")
OBJECTS = 100_000  # created between two garbage collections: imports create many, none of them garbage


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    alone = argv is None  # nothing else runs in this process
    if alone:
        gc.set_threshold(OBJECTS)
    try:
        return _main(argv)
    except (Interrupted, KeyboardInterrupt) as stop:
        print(f"kernelstream: {stop if str(stop) else 'interrupted'}", file=sys.stderr)
        return code_of(getattr(stop, "number", signal.SIGINT))
    finally:
        if alone:
            gc.freeze()  # all memory is freed with the process: no search for garbage at exit


def _main(argv: Sequence[str] | None) -> int:
    argv, modules, debug = _anywhere(sys.argv[1:] if argv is None else argv)
    with warnings.catch_warnings():
        if not debug:
            warnings.showwarning = _warn
        try:
            for module in modules:
                import_parts(module, os.getcwd())
            if not {"--version", "--help", "-h"}.intersection(argv):
                _import_base()
            _plugins.serve_files = True
            parser = _parser(argv)
            args, unknown = parser.parse_known_args(argv)
            if unknown:
                _reject(parser, args, unknown)
            args.modules, args.debug = modules, debug
            args.run(args)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the pipe, such as `head`, has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if debug:
                raise
            print(f"kernelstream: error: {_message(error)}", file=sys.stderr)
            return USAGE if isinstance(error, UsageError) else FAILED
    return OK


def _import_base() -> None:
    """Import scikit-learn's base classes without the modules that they import and we do not use."""
    if "sklearn" not in sys.modules:
        with imports_later():
            importlib.import_module("sklearn.base")
            with contextlib.suppress(ImportError):  # before scikit-learn 1.9
                importlib.import_module("sklearn.callback")


def _anywhere(argv: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """The command line without the options that are allowed anywhere, the modules to import, and whether to debug."""
    early = argparse.ArgumentParser(prog="kernelstream", add_help=False, allow_abbrev=False)
    early.add_argument("--import", action="append", default=[], metavar="MODULE", dest="modules")
    early.add_argument("--debug", action="store_true")
    known, rest = early.parse_known_args(list(argv))
    return rest, known.modules, known.debug


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the subcommand that ``argv`` names gets its arguments, because finding some takes time."""
    parser = argparse.ArgumentParser(
        prog="kernelstream",
        description="Online kernel learning on streams of rows.",
        epilog="'kernelstream COMMAND --help' shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"kernelstream {__version__}")
    parser.add_argument("--debug", action="store_true", help=DEBUG)
    parser.add_argument("--import", action="append", metavar="MODULE", help=IMPORT)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    named = next((word for word in argv if not word.startswith("-")), None)
    for module in () if named in packages.OTHERS else [named] if named in MODULES else MODULES:
        importlib.import_module(f"{__name__}.{module}")
    if named is not None and named not in COMMANDS:
        packages.load(named)
    commands = COMMANDS if named in COMMANDS else packages.announced() | COMMANDS
    if named is not None and named not in commands:
        parser.error(f"there is no command {named!r}: {did_you_mean(named, commands)}there are {', '.join(commands)}")
    for name, about in commands.items():
        sub = subparsers.add_parser(
            name, help=about.help, description=about.help[0].upper() + about.help[1:] + ".", usage=about.usage,
            epilog=about.examples, formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        if name == named:
            sub.add_argument("--import", action="append", metavar="MODULE", help=IMPORT)
            sub.add_argument("--debug", action="store_true", help=DEBUG)
            sub.set_defaults(run=about.setup(sub, argv), parser=sub)
    return parser


def _reject(parser: argparse.ArgumentParser, args: argparse.Namespace, unknown: Sequence[str]) -> None:
    """Exit with an error about arguments that a command does not have."""
    sub = getattr(args, "parser", parser)
    known = {option.lstrip("-"): option for action in sub._actions for option in action.option_strings}
    word = unknown[0].split("=", 1)[0]
    close = difflib.get_close_matches(word.lstrip("-"), known, n=1, cutoff=0.7) if word.startswith("-") else []
    hint = f": did you mean {known[close[0]]}?" if close else ""
    sub.error(f"unknown argument {word}{hint}")


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the code that it came from."""
    print(f"kernelstream: warning: {message}", file=sys.stderr)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {str(error) or 'try a smaller model'}"
    from ..streams import BadRowError

    return f"{error} (--on-error skip leaves such rows out)" if isinstance(error, BadRowError) else str(error)
