"""scikit-learn's callbacks (progress bars, monitors) in ``fit``, where the installed scikit-learn has them."""

from __future__ import annotations

import copy
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks."""

    def with_callbacks(method: Any) -> Any:  # type: ignore[misc]
        """No callbacks."""
        return method


PARTS = 100  # reports during a fit, at most
LEAST = 1000  # rows between two reports, at least


def listens(est: Any) -> bool:
    """Whether somebody wants to hear how a fit goes on."""
    return bool(getattr(est, "_skl_callbacks", ())) or hasattr(est, "_parent_callback_ctx")


def cuts(n: int) -> list[slice]:
    """Parts of n rows after which to report; learning them one by one gives the same model as all at once."""
    size = max(LEAST, -(-n // PARTS))
    return [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)]


def learn_in_parts(est: Any, context: Any, parts: list[slice], X: Any, y: Any, weight: Any) -> None:
    """Learn checked rows, telling the callbacks after every part; they may end it early."""
    for rows in parts:
        part = context.subcontext(task_name=f"rows to {rows.stop}")
        part.call_on_fit_task_begin(estimator=est, X=X, y=y)
        est._run(X[rows], y[rows], None if weight is None else weight[rows])
        attributes = {"reconstruction_attributes": lambda: {"state_": copy.deepcopy(est.state_)}}
        if part.call_on_fit_task_end(estimator=est, X=X, y=y, **attributes):
            break
