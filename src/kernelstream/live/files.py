"""Model files of a server: read to be served, and written to be downloaded."""

from __future__ import annotations

import io
import os
from typing import Any

from .. import model_io
from .learner import DurableLearner


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[Any, list[str] | None]:
    """A model that can learn row by row, and the names of its columns if its file has them.

    Raises
    ------
    ModelFileError
        The file cannot be read.
    TypeError
        The model cannot learn row by row.
    """
    model, notes = model_io.read(io.BytesIO(source) if isinstance(source, bytes) else source)
    if not hasattr(model, "learn"):
        raise TypeError(f"{type(model).__name__} learns all rows at once: it cannot be updated row by row")
    names = notes.get("reader", {}).get("features") if isinstance(notes.get("reader"), dict) else None
    if names is not None and len(names) != getattr(model, "n_features_in_", None):
        names = None  # some columns (of words, for example) became several
    return model, names


def file_of(learner: DurableLearner) -> bytes:
    """The file of the champion with everything it has learned."""
    view = learner.latest()
    notes: dict[str, Any] = {"rows": view.rows}
    if view.columns is not None:
        notes["reader"] = {"features": list(view.columns)}
    return model_io.to_bytes(view.model, notes)
