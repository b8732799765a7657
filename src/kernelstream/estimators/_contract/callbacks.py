"""scikit-learn's callbacks (progress bars, monitors) in ``fit``, where the installed scikit-learn has them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...kernels.bandwidth import median_rows
from ...rows import Rows, take
from .calls import bound
from .learner import solves
from .order import counted, passes_over

try:  # not from ``sklearn.callback`` itself, which imports progress bars
    from sklearn.callback._callback_support import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback._callback_support import with_callbacks as with_callbacks
except ImportError:
    try:
        from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
        from sklearn.callback import with_callbacks as with_callbacks
    except ImportError:  # before scikit-learn 1.9
        CallbackSupportMixin = object

        def with_callbacks(method: Any) -> Any:
            """No callbacks."""
            return method


LISTENERS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")  # set while callbacks wait for the end of a fit


def listens(est: Any) -> bool:
    """Whether a callback is registered."""
    return bool(getattr(est, "_skl_callbacks", ())) or hasattr(est, "_parent_callback_ctx")


def learn_passes(
    est: Any,
    X: Any,
    y: Any,
    checked: tuple[Rows, np.ndarray, np.ndarray | None],
    shuffle: bool,
    passes: int,
    how: dict[str, Any],
) -> None:
    """Learn checked rows, targets and weights in passes, or all at once.

    Callbacks get X and y as they came; after every part one of them may end the fit.
    """
    (layers, state), context, known = bound(est), None, False
    at_once, listened, (rows, target, weight) = solves(layers.learner), listens(est), checked
    layers.targets.check_whole(target, weight)
    if at_once:
        layers.rows.warn(state, rows[median_rows(rows.shape[0])])
        rows, target, weight = counted(rows, target, weight)
    options = shuffle and not at_once, passes, listened and not at_once
    n_parts, order = passes_over(state["seed"], rows, weight, *options)
    if listened:
        context = est._init_callback_context(max_subtasks=n_parts)
        context.call_on_fit_task_begin(estimator=est, X=X, y=y)

    def take_part(name: str, part: Any) -> bool:
        task = None if context is None else context.subcontext(task_name=name)
        if task is not None:
            task.call_on_fit_task_begin(estimator=est, X=X, y=y)
        own = take(rows, part), target[part], None if weight is None else weight[part]
        if at_once:
            layers.solve(state, *own)
            layers.link_from(state, *own)
        else:
            layers.learn(state, *own, how, known)
        attributes = {"reconstruction_attributes": lambda: {"state_": copy.deepcopy(est.state_)}}
        return task is not None and bool(task.call_on_fit_task_end(estimator=est, X=X, y=y, **attributes))

    for parts in order:
        ended = any(take_part(f"part {i + 1} of {len(parts)}", part) for i, part in enumerate(parts))
        layers.first_rows.end(state, how)
        if ended:
            break
        known = True
    if context is not None:
        context.call_on_fit_task_end(estimator=est, X=X, y=y)
