"""``info``: what is in a model file."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import Any

from ..checks import few
from ..progress import size_text
from .base import Run, command, print_json

MAX_COLUMNS_SHOWN = 8  # columns whose relevance is shown


@command("info", "show what a model file holds")
def _info(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("model", metavar="MODEL", help="model file or checkpoint")
    parser.add_argument("--full", action="store_true", help="parameters and arrays as well")
    parser.add_argument("--json", action="store_true", help="print JSON")

    def run(args: argparse.Namespace) -> None:
        from .. import model_io

        about = model_io.describe(args.model)
        state = about.pop("state")
        about = {"file": args.model, "bytes": os.path.getsize(args.model), **about}
        classes = state.get("classes", state.get("model/classes"))
        if classes is not None:
            about["classes"] = classes.tolist()
        if "columns/names" in state:
            about["columns"] = _columns(state)
        if args.json:
            print_json(about)
            return
        for key, value in _lines(about, state, args.full):
            print(f"{key:14} {value}")

    return run


def _columns(state: dict[str, Any]) -> dict[str, str]:
    """Names and kinds of the columns of a model with an encoder."""
    from ..columns._state import unpacked
    from ..columns.kinds import KINDS

    names = unpacked("names", {key.removeprefix("columns/"): value for key, value in state.items()})
    return dict(zip(names, (KINDS[kind] for kind in state["columns/kinds"].tolist()), strict=True))


def _lines(about: dict[str, Any], state: dict[str, Any], full: bool) -> Any:
    versions = f"format {about['format_version']}, kernelstream {about['library_version']}"
    yield "file", f"{about['file']}, {size_text(about['bytes'])}, {versions}"
    yield "written", time.strftime("%Y-%m-%d %H:%M", time.localtime(os.path.getmtime(about["file"])))
    yield "estimator", about["class"].removeprefix("estimators").lstrip(".:")
    for name, value in about["parameters"].items() if full else ():
        if value is not None:
            yield f"  {name}", " ".join(str(value).split())
    if not state:
        yield "state", "none: it has not learned anything"
        return
    if about["parts"]:
        modules = ", ".join(sorted(set(about["parts"].values())))
        yield "parts", f"{', '.join(name.partition(':')[2] for name in about['parts'])} of {modules}"
    yield from _learned(about, state)
    if "columns" in about:
        yield "columns", ", ".join(f"{name} ({kind})" for name, kind in about["columns"].items())
    relevance = _relevance(about)
    if relevance:
        yield "relevance", relevance
    if full:
        yield "arrays", ""
        for name, entry in about["entries"].items():
            if isinstance(entry, dict) and "shape" in entry:
                yield f"  {name}", f"{' x '.join(map(str, entry['shape'])) or 'scalar'} {entry['dtype']}"


def _notes(about: dict[str, Any]) -> dict[str, Any]:
    """The notes of the run; in a checkpoint they are inside those of the checkpoint."""
    notes: dict[str, Any] = about["notes"]
    return notes.get("notes", notes) if "position" in notes else notes


def _learned(about: dict[str, Any], state: dict[str, Any]) -> Any:
    """What was learned, from how many rows, and with which error."""
    notes, reader = _notes(about), _notes(about).get("reader", {})
    for name in ("task", "algorithm"):
        if name in notes:
            yield name, notes[name]
    if reader.get("target") is not None:
        yield "  target", reader["target"]
    rows = f"{notes.get('rows', state.get('t', 0)):,}"
    yield "rows learned", rows + ("" if notes.get("finished", True) else " (interrupted)")
    if "position" in about["notes"]:
        yield "checkpoint", f"after row {about['notes']['position']['rows']:,}"
    for metric, value in notes.get("error", {}).items():
        when = "" if metric.startswith("training") else ", of rows before they were learned"
        yield "error", f"{metric.replace('_', ' ')} {value:.4g}{when}"
    features, dtype = (state.get(name, state.get(f"model/{name}", "?")) for name in ("n_features", "dtype"))
    yield "features", f"{features} ({dtype})"
    names = about["feature_names"] or reader.get("features")
    if names:
        yield "  columns", few(names, 10)
    if "classes" in about:
        yield "classes", few(about["classes"], 12)


def _relevance(about: dict[str, Any]) -> str:
    """The columns that matter most, with their shares, for models that know."""
    from .. import model_io

    try:
        est = model_io.read(about["file"])[0]
        relevance = est.relevance_
    except (AttributeError, ImportError, ValueError):  # it does not know, or needs a module that is not here
        return ""
    shares = relevance.tolist()
    names = about["feature_names"] or _notes(about).get("reader", {}).get("features")
    names = names or getattr(relevance, "names", None)
    if names is None or len(names) != len(shares):
        names = [f"column {j}" for j in range(len(shares))]
    best = sorted(zip(shares, names, strict=True), key=lambda pair: -pair[0])[:MAX_COLUMNS_SHOWN]
    return ", ".join(f"{name} {share / sum(shares):.0%}" for share, name in best if share > 0)
