"""The table of the members."""

from __future__ import annotations

from typing import Any

from ...state.turns import in_turn
from .._contract.composite import fitted
from .shell import StackShell


@in_turn
def members(est: StackShell) -> list[dict[str, Any]]:
    """A small table: each member's name, weight, error so far and over about the last 1,000 rows, restarts, rows.

    Errors are shares of mistakes for labels and roots of mean squared errors for numbers, of the member alone.
    Rows are those that it has learned, as often as ``fit`` went over them.
    """
    state, stack = fitted(est), est._learner
    names, errors, rows = stack.names(), stack.errors(state), max(state["t"], 1)
    table = []
    for i, (name, weight) in enumerate(zip(names, stack.weights(state), strict=True)):
        whole, lately = errors[0, i] / rows, errors[1, i] / max(errors[2, i], 1e-300)
        if stack.regression:
            whole, lately = whole**0.5, lately**0.5
        table.append(
            {"name": name, "weight": float(weight), "error": float(whole), "error_lately": float(lately)}
            | {"restarts": int(state["restarts"].reshape(-1, len(names))[:, i].sum())}
            | {"rows": int(state["members"][i]["t"])}
        )
    return table
