"""The description of a live learner, as numbers, strings, lists and dicts."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from ..kernels import Kernel
from .copies import copied
from .rows import encoder_of
from .scores import weights_of
from .writer import Writer

RELEVANCE = 3.0  # seconds that the relevance of the columns holds at least
RELEVANCE_SHARE = 10  # finding it takes at most one part in RELEVANCE_SHARE of the time of a thread
RELEVANCE_SECONDS = 0.01  # seconds that a description waits for it


class Described(Writer):
    """The part of a learner that describes it."""

    _relevance: Any = None  # of the columns, as it was found last
    _relevance_due = -math.inf
    _finder: threading.Thread | None = None

    def health(self) -> dict[str, Any]:
        """Whether all is well: {"status": "ok" or "degraded", "problems": {...}, "waiting": calls, "lost": calls}."""
        problems = dict(self.problems)
        status = "degraded" if problems else "ok"
        return {"status": status, "problems": problems, "waiting": len(self._queue), "lost": self.losses.calls}

    def rows_per_second(self, seconds: float = 5.0) -> float:
        """Rows learned per second in the recent past."""
        now, total = time.monotonic(), self.total
        then = next(((at, rows) for at, rows in list(self._pace) if at >= now - seconds), None)
        return 0.0 if then is None or now - then[0] < 0.05 else (total - then[1]) / (now - then[0])

    def brief(self) -> dict[str, Any]:
        """A few facts, for a list of many learners."""
        scores = self.champion.scores.summary()
        about = {"rows": self.total, "rows_per_second": self.rows_per_second(), "version": self.version}
        return about | {"metric": scores["metric"], "recent": scores["recent"], "status": self.health()["status"]}

    def describe(self) -> dict[str, Any]:
        """What the learner is and how well it does, as numbers, strings, lists and dicts."""
        view, champion = self._view, self.champion
        inner = getattr(view.model, "model_", view.model)  # behind an encoder of columns
        kinds = getattr(encoder_of(view.model), "kinds_", None)
        columns = kinds if view.columns is None else view.columns
        about: dict[str, Any] = {
            "class": type(inner).__name__,
            "task": champion.scores.task,
            "rows": self.total,
            "rows_per_second": self.rows_per_second(),
            "version": self.version,
            "versions": list(self.retired),
            "columns": None if columns is None else list(columns),
            "kinds": kinds,
            "wrong_cells": wrong_cells(view.model),
            "width": getattr(inner, "n_features_in_", None),
            "classes": _plain(getattr(inner, "classes_", None)),
            "members": _members(inner),
            "relevance": self._known_relevance(view.model),
            "policy": dict(self.policy),
            "drift": champion.scores.marks,
            "scores": champion.scores.summary(),
            "challenger": None,
            "health": self.health(),
        }
        rival, against = self.challenger, self.against
        if rival is not None and against is not None:
            about["challenger"] = {
                "class": type(getattr(rival.model, "model", rival.model)).__name__,
                "scores": rival.scores.summary(),
                "champion": against.summary(),
                "failures": rival.failures,
                "former": self.on_probation,
            }
        return about

    def _known_relevance(self, model: Any) -> Any:
        """How much each column matters, where the model knows; found beside, since it may take seconds."""
        if self._finder is None and time.monotonic() >= self._relevance_due and hasattr(type(model), "relevance_"):
            finder = threading.Thread(target=self._find_relevance, args=(model,), name="relevance", daemon=True)
            self._finder = finder
            finder.start()
            finder.join(RELEVANCE_SECONDS)
        return self._relevance

    def _find_relevance(self, model: Any) -> None:
        started = time.monotonic()
        try:
            found = _plain(copied(model, None).relevance_)  # of a copy: predictions do not wait for it
        except Exception:  # for example because the model has learned too little
            found = None
        now = time.monotonic()
        self._relevance, self._relevance_due = found, now + max(RELEVANCE, RELEVANCE_SHARE * (now - started))
        self._finder = None


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
    names = names or [_member_name(member) for member in getattr(model, "learners_", [])][: len(weights)]
    if len(set(names)) < len(weights):
        names = [f"{i + 1}: {name}" for i, name in enumerate(names or ["member"] * len(weights))]
    return {"names": names, "weights": weights}


def _member_name(member: Any) -> str:
    """A member in a few words: its kernel if it has one."""
    params = member.get_params() if hasattr(member, "get_params") else {}
    kernel = next((value for value in params.values() if isinstance(value, Kernel)), None)
    return " ".join(str(kernel or member).split())[:60]
