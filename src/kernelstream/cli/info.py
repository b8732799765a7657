"""``info``: what is in a model file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from ._base import Run, command, print_json, size_text


@command("info", "show what a model file holds")
def _info(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("model", metavar="MODEL", help="model file or checkpoint")
    parser.add_argument("--json", action="store_true", help="print JSON")

    def run(args: argparse.Namespace) -> None:
        from .. import model_io

        about = model_io.describe(args.model)
        state = about.pop("state")
        about = {"file": args.model, "bytes": os.path.getsize(args.model), **about}
        classes = state.get("classes", state.get("model:classes"))
        if classes is not None:
            about["classes"] = classes.tolist()
        if "columns:names" in state:
            about["columns"] = _columns(state)
        if args.json:
            print_json(about)
            return
        for key, value in _lines(about, state):
            print(f"{key:14} {value}")

    return run


def _columns(state: dict[str, Any]) -> dict[str, str]:
    """Names and kinds of the columns that a model reads as they come."""
    from ..columns._state import unpacked
    from ..columns.kinds import KINDS

    names = unpacked("names", {key.removeprefix("columns:"): value for key, value in state.items()})
    return dict(zip(names, (KINDS[kind] for kind in state["columns:kinds"].tolist()), strict=True))


def _lines(about: dict[str, Any], state: dict[str, Any]) -> Any:
    versions = f"format {about['format_version']}, kernelstream {about['library_version']}"
    yield "file", f"{about['file']}, {size_text(about['bytes'])}, {versions}"
    yield "estimator", about["class"].removeprefix("estimators.")
    for name, value in about["parameters"].items():
        if value is not None:
            yield f"  {name}", " ".join(str(value).split())
    if not state:
        yield "state", "none: it has not learned anything"
        return
    if about["parts"]:
        modules = ", ".join(sorted(set(about["parts"].values())))
        yield "parts", f"{', '.join(name.partition(':')[2] for name in about['parts'])} of {modules}"
    notes = about["notes"]
    notes = notes.get("notes", notes) if "position" in notes else notes
    for name in ("task", "algorithm"):
        if name in notes:
            yield name, notes[name]
    yield (
        "rows learned",
        f"{notes.get('rows', state.get('t', 0)):,}" + ("" if notes.get("finished", True) else " (interrupted)"),
    )
    if "position" in about["notes"]:
        yield "checkpoint", f"after row {about['notes']['position']['rows']:,}"
    features, dtype = (state.get(name, state.get(f"model:{name}", "?")) for name in ("n_features", "dtype"))
    yield "features", f"{features} ({dtype})"
    if "columns" in about:
        yield "columns", ", ".join(f"{name} ({kind})" for name, kind in about["columns"].items())
    if about["feature_names"] or notes.get("reader", {}).get("features"):
        names = about["feature_names"] or notes["reader"]["features"]
        yield "  columns", ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    if notes.get("reader", {}).get("target") is not None:
        yield "  target", notes["reader"]["target"]
    if "classes" in about:
        shown = about["classes"]
        yield "classes", ", ".join(map(str, shown[:12])) + (f", ... ({len(shown)})" if len(shown) > 12 else "")
    yield "arrays", ""
    for name, entry in about["entries"].items():
        if isinstance(entry, dict) and "shape" in entry:
            yield f"  {name}", f"{' x '.join(map(str, entry['shape'])) or 'scalar'} {entry['dtype']}"
