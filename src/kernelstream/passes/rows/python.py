"""Learners of single rows: the python engine has none, single rows go through its passes."""

from __future__ import annotations

from typing import Any


def row_learner(kind: str, learner: Any, state: dict[str, Any], *parts: Any) -> None:
    """None: single rows are learned as blocks are."""


RowStack = None
