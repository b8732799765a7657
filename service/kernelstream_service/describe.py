"""The description of a live learner, as numbers, strings, lists and dicts."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from kernelstream.columns.stream import encoder_of
from kernelstream.copies import copied
from kernelstream.innermost import innermost
from kernelstream.plots import member_label

from .answers import View
from .champions import Champions
from .scores import weights_of

RELEVANCE_HOLDS = 3.0  # seconds that the relevance of the columns holds at least
RELEVANCE_SHARE = 10  # finding it takes at most one part in RELEVANCE_SHARE of the time of a thread
RELEVANCE_WAIT = 0.01  # seconds that a description waits for it


class Relevance:
    """How much each column of a model matters; found in a thread of its own, since it may take seconds."""

    def __init__(self) -> None:
        self.found: Any = None
        self.finder: threading.Thread | None = None
        self._due = -math.inf

    def of(self, model: Any) -> Any:
        """The latest value; None where the model does not know it."""
        if self.finder is None and time.monotonic() >= self._due and hasattr(type(model), "relevance_"):
            self.finder = finder = threading.Thread(target=self._find, args=(model,), name="relevance", daemon=True)
            finder.start()
            finder.join(RELEVANCE_WAIT)
        return self.found

    def _find(self, model: Any) -> None:
        started = time.monotonic()
        try:
            self.found = _plain(copied(model, None).relevance_)  # of a copy: predictions do not wait for it
        except Exception:  # for example because the model has learned too little
            self.found = None
        now = time.monotonic()
        self._due = now + max(RELEVANCE_HOLDS, RELEVANCE_SHARE * (now - started))
        self.finder = None


def describe(champions: Champions, view: View, relevance: Relevance) -> dict[str, Any]:
    """What a learner is and how well it performs, as numbers, strings, lists and dicts."""
    champion, rival = champions.champion, champions.challenger
    inner = innermost(view.model)
    kinds = getattr(encoder_of(view.model), "kinds_", None)
    columns = kinds if view.columns is None else view.columns
    about: dict[str, Any] = {
        "class": type(inner).__name__,
        "task": champion.scores.task,
        "rows": champions.total,
        "version": champions.version,
        "versions": list(champions.retired),
        "columns": None if columns is None else list(columns),
        "kinds": kinds,
        "wrong_cells": wrong_cells(view.model),
        "width": getattr(inner, "n_features_in_", None),
        "classes": _plain(getattr(inner, "classes_", None)),
        "members": _members(inner),
        "relevance": relevance.of(view.model),
        "drift": champion.scores.marks,
        "scores": champion.scores.summary(),
        "challenger": None,
    }
    against = champions.against
    if rival is not None and against is not None:
        about["challenger"] = {
            "class": type(innermost(rival.model)).__name__,
            "scores": rival.scores.summary(),
            "champion": against.summary(),
            "failures": rival.failures,
        }
    return about


def wrong_cells(model: Any) -> dict[str, int] | None:
    """Cells that were taken as missing because they did not fit their column's kind, by column."""
    encoder = encoder_of(model)
    return None if encoder is None else {name: count for name, (count, _) in encoder.wrong_.items()}


def _plain(value: Any) -> Any:
    """An attribute of a model in JSON's types; None where the model lacks it."""
    try:
        return None if value is None else np.asarray(value).tolist()
    except Exception:
        return None


def _members(model: Any) -> dict[str, Any] | None:
    """Names and weights of the members of an ensemble."""
    weights = weights_of(model)
    if weights is None:
        return None
    members: Any = getattr(model, "members_", None)
    named = isinstance(members, list) and members and isinstance(members[0], dict)
    names = [member["name"] for member in members] if named else []
    names = names or [member_label(member) for member in getattr(model, "learners_", [])][: len(weights)]
    if len(set(names)) < len(weights):
        names = [f"{i + 1}: {name}" for i, name in enumerate(names or ["member"] * len(weights))]
    return {"names": names, "weights": weights}
