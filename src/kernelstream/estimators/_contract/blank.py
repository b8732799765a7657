"""Entries of an untrained model."""

from __future__ import annotations

import numpy as np

from ...state.nested import State
from ...state.schema import Array, Schema


def blank(schema: Schema) -> State:
    """Zeros in the shapes and types that a schema says; of its other entries none."""
    return {name: np.zeros(entry.shape, entry.dtype) for name, entry in schema.items() if isinstance(entry, Array)}
