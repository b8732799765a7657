"""Learners of single rows: in the python engine the passes are all there is, so there are none."""

from __future__ import annotations

from typing import Any


def row_learner(kind: str, member: Any, state: dict[str, Any], *parts: Any) -> None:
    """None: rows go the way that blocks go."""


RowStack = None
