"""scikit-learn's callbacks (progress bars, monitors) in ``fit``, where the installed scikit-learn has them."""

from __future__ import annotations

import copy
from typing import Any

from ...rows import take

try:  # not from ``sklearn.callback`` itself, which imports progress bars
    from sklearn.callback._callback_support import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback._callback_support import with_callbacks as with_callbacks
except ImportError:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
        from sklearn.callback import with_callbacks as with_callbacks
    except ImportError:  # before scikit-learn 1.9

        class CallbackSupportMixin:  # type: ignore[no-redef]
            """No callbacks."""

        def with_callbacks(method: Any) -> Any:
            """No callbacks."""
            return method


LISTENERS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")  # set while callbacks wait for the end of a fit


def listens(est: Any) -> bool:
    """Whether a callback is registered."""
    return bool(getattr(est, "_skl_callbacks", ())) or hasattr(est, "_parent_callback_ctx")


def learn_in_parts(est: Any, context: Any, parts: list[Any], X: Any, y: Any, weight: Any) -> bool:
    """Learn checked rows, and call the callbacks after every part; True if one of them ends the fit early."""
    for i, rows in enumerate(parts):
        part = None
        if context is not None:
            part = context.subcontext(task_name=f"part {i + 1} of {len(parts)}")
            part.call_on_fit_task_begin(estimator=est, X=X, y=y)
        est._learn_part(take(X, rows), y[rows], None if weight is None else weight[rows])
        if part is not None:
            attributes = {"reconstruction_attributes": lambda: {"state_": copy.deepcopy(est.state_)}}
            if part.call_on_fit_task_end(estimator=est, X=X, y=y, **attributes):
                return True
    return False
