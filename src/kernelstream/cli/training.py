"""What ``train`` on this machine and on workers have in common: the task, what a model file notes, and the report."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..files import descriptor, is_special
from ..innermost import innermost
from ..progress import size_text
from .base import UsageError, inner, print_json
from .mixed import CELL_OPTIONS
from .targets import find_task


def task_of_run(args: argparse.Namespace, stream: Any, found: Any, notes: dict[str, Any]) -> str:
    known = notes.get("task") or (found[1]["notes"].get("task") if found is not None else None)
    if args.task != "auto":
        return args.task
    if known is not None:
        return known
    y = stream.peek()[1]
    if y is None:
        raise UsageError(f"--target: {stream.name} has no column to learn")
    task = find_task(y)
    if not args.quiet and not args.json:
        print(f"task: {task}, by the first {len(y):,} targets (--task overrides)", file=sys.stderr)
    return task


def kept(options: dict[str, Any], stream: Any) -> dict[str, Any]:
    """Options that a reader of other data for the same model needs."""
    reader = inner(stream)
    if reader.mixed:
        keep = {key: value for key, value in options.items() if key in ("format", "header", "delimiter", "strict")}
        keep |= {key: getattr(reader, key) for key in ("marks", "thousands") if hasattr(reader, key)}
        return keep | {
            "mixed": True, "target": reader.target, "ignore": list(options.get("drop", [])), "kinds": reader.kinds,
        }  # fmt: skip
    columns = getattr(reader, "columns", None)
    if columns is None:
        return {key: value for key, value in options.items() if key in ("format", "zero_based", "dtype", "target")}
    passing = ("drop", "encoding", "on_error", "block", "n_features", *CELL_OPTIONS)
    keep = {key: value for key, value in options.items() if key not in passing}
    return {**keep, "features": columns.feature_names, "target": reader.target}


def check_writable(path: str | None) -> None:
    """UsageError if a model cannot be written: now, not hours later."""
    if path is None:
        return
    if is_special(path):
        if descriptor(path) is None and not os.access(path, os.W_OK):
            raise UsageError(f"--model: {path} cannot be written to")
        return
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UsageError(f"--model: {path}: {error.strerror}") from None
    folder = os.path.dirname(os.path.realpath(path) if os.path.islink(path) else path) or os.curdir
    if not os.path.isdir(folder):
        raise UsageError(f"--model: there is no folder {folder}")
    if os.path.isdir(path):
        raise UsageError(f"--model: {path} is a folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"--model: the folder {folder} cannot be written to")


def report(args: argparse.Namespace, est: Any, about: dict[str, Any], line: str, whole: bool = True) -> None:
    """Print what was done, and where a ``whole`` model was written, on standard output unless the model goes there."""
    from ..evaluate import model_bytes

    file = sys.stderr if args.model is not None and descriptor(args.model) == 1 else sys.stdout
    model = args.model if whole else None
    if args.json:
        features = getattr(innermost(est), "n_features_in_", None)
        print_json(about | {"model": model, "model_bytes": model_bytes(est), "features": features}, file)
    elif not args.quiet:
        written = "" if model is None else f"; {model}"
        written += "" if model is None or is_special(model) else f" ({size_text(os.path.getsize(model))})"
        print(line + written, file=file)
