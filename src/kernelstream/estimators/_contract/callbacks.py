"""scikit-learn's callbacks (progress bars, monitors) in ``fit``, where the installed scikit-learn has them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .order import Order

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


def learn_passes(
    est: Any, X: Any, y: Any, order: Order, learn: Callable[[Any, bool], None], end: Callable[[], None]
) -> None:
    """Let ``learn`` go over the parts of an order, and call the callbacks, which get X and y as they came.

    It is told whether the rows are known, from an earlier pass. ``end`` is called after every pass. After every part a
    callback may end the fit.
    """
    context, known = None, False
    if listens(est):
        context = est._init_callback_context(max_subtasks=order.n_parts)
        context.call_on_fit_task_begin(estimator=est, X=X, y=y)

    def take_part(name: str, part: Any) -> bool:
        task = None if context is None else context.subcontext(task_name=name)
        if task is not None:
            task.call_on_fit_task_begin(estimator=est, X=X, y=y)
        learn(part, known)
        attributes = {"reconstruction_attributes": lambda: {"state_": copy.deepcopy(est.state_)}}
        return task is not None and bool(task.call_on_fit_task_end(estimator=est, X=X, y=y, **attributes))

    for parts in order:
        ended = any(take_part(f"part {i + 1} of {len(parts)}", part) for i, part in enumerate(parts))
        end()
        if ended:
            break
        known = True
    if context is not None:
        context.call_on_fit_task_end(estimator=est, X=X, y=y)
