"""Rows that wait for their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..checks import whole
from ..rows import canonical, concat, pack, unpack
from ..state.nested import State
from ..state.schema import Anything, Array, Count, Inside, Schema
from ..state.turns import in_turn
from ..state.undo import all_or_nothing
from ._wrapper import Wrapper

ROWS = "X"


@dataclass(eq=False, repr=False)
class Delayed(Wrapper):
    """A learner whose rows wait for their targets: remembered by an id when they are predicted, learned later.

    The rows that wait are part of the model's state, so they survive saving and loading. At most ``most`` of them wait,
    and a row is dropped once ``oldest`` others have been remembered after it; the oldest are dropped first.

    Parameters
    ----------
    model : estimator of this library, or any with ``learn``
        It is cloned before it learns.
    most : int, default=10_000
        Largest number of waiting rows.
    oldest : int, optional
        A row is dropped when this many others have been remembered after it; by default age does not matter.

    Attributes
    ----------
    waiting_ : array
        Ids of the rows that wait, oldest first.
    forgotten_ : int
        Rows that were dropped before their targets came.
    model_ : the learner, fitted
    state_ : dict

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OnlineRidge
    >>> from kernelstream.trust import Delayed
    >>> model = Delayed(OnlineRidge(random_state=0))
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> _ = model.learn(X[:400], X[:400, 0])
    >>> forecast = model.remember([7001, 7002], X[400:402])
    >>> answer = model.learn(id=[7002], y=X[401:402, 0])
    >>> bool(answer[0] == forecast[1]), model.waiting_.tolist()
    (True, [7001])
    """

    model: Any
    most: int = 10_000
    oldest: int | None = None

    @in_turn
    def remember(self, id: Any, X: Any) -> np.ma.MaskedArray:
        """Predict rows, and keep them until their targets come.

        Parameters
        ----------
        id : (n,) array of integers or strings
            A name for each row; none of them may be waiting already.
        X : (n, d) array or CSR

        Returns
        -------
        (n,) masked array
            What ``predict`` gives for the rows now; masked as long as nothing has been learned.
        """
        fresh, model = "model_" not in self.__dict__, self._inside()
        names = _ids(id)
        rows = canonical(X) if sp.issparse(X) else np.ascontiguousarray(np.asarray(X))
        if rows.ndim != 2 or rows.shape[0] != len(names):
            raise ValueError(f"got {len(names)} ids for rows of shape {rows.shape}")
        if not sp.issparse(rows):
            rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
            if not np.isfinite(rows).all():
                raise ValueError("Input X contains NaN or infinity")
        waiting = np.empty(0, names.dtype) if fresh else self._beside["wait"]["ids"]
        if len(waiting) and (waiting.dtype.kind in "US") != (names.dtype.kind in "US"):
            raise ValueError(
                f"ids must all be integers or all be strings: got {names[0]!r}, but {waiting[0]!r} is waiting"
            )
        again = names[np.isin(names, waiting)]
        if len(again) or len(np.unique(names)) < len(names):
            twice = (again if len(again) else names)[:3]
            raise ValueError(f"ids must be unique and not waiting already: {twice}")
        kept = None if fresh else unpack(ROWS, self._beside["wait"])
        if kept is not None and (kept.shape[1] != rows.shape[1] or sp.issparse(kept) != sp.issparse(rows)):
            raise ValueError(f"X has {rows.shape[1]} columns, but the waiting rows have {kept.shape[1]}")
        trained = hasattr(model, "n_features_in_") and not fresh
        forecast = model.predict(X) if trained else np.zeros(len(names))
        self._adopt(model)
        self._add(names, rows if kept is None else concat([kept, rows]), forecast, trained)
        return np.ma.MaskedArray(forecast, mask=np.full(len(names), not trained))

    @in_turn
    def learn(self, X: Any = None, y: Any = None, *, id: Any = None, missing: str = "raise", **kwargs: Any) -> Any:
        """Learn rows: those given, as the model inside does, or those of some ids whose targets have come.

        Parameters
        ----------
        X : (n, d) array or CSR, optional
        y : (n,) array
        id : (n,) array, optional
            Instead of X.
        missing : {"raise", "skip"}
            What to do about ids that are not waiting, for example because they were dropped.
        **kwargs
            ``classes`` and ``sample_weight``, see the model inside.

        Returns
        -------
        array
            With X, what the model inside returns. With ids, the forecasts as they were made by :meth:`remember`, a
            masked array (n,): masked where there was none.
        """
        if (X is None) == (id is None):
            raise ValueError("pass X and y, or id and y")
        if id is None:
            model = self._inside()
            answers = model.learn(X, y, **kwargs)
            self._has_learned(model)
            return answers
        with all_or_nothing(self):
            return self._learn_ids(_ids(id), np.asarray(y), missing, kwargs)

    def _learn_ids(self, names: np.ndarray, y: np.ndarray, missing: str, kwargs: dict[str, Any]) -> Any:
        if missing not in ("raise", "skip"):
            raise ValueError(f"missing must be 'raise' or 'skip', got {missing!r}")
        if y.shape != names.shape:
            raise ValueError(f"got {len(names)} ids, but y has shape {y.shape}")
        model, wait = self._fitted(), self._beside["wait"]
        place = {name: i for i, name in enumerate(wait["ids"].tolist())}
        at = np.array([place.pop(name, -1) for name in names.tolist()], np.intp)
        found = at >= 0
        if missing == "raise" and not found.all():
            raise ValueError(
                f"no rows are waiting for the ids {names[~found][:5]}: never remembered, learned already, or dropped"
            )
        forecast = np.zeros(len(names), wait["forecast"].dtype)
        made = np.zeros(len(names), bool)
        if found.any():
            weight = kwargs.pop("sample_weight", None)
            part = {} if weight is None else {"sample_weight": np.broadcast_to(weight, names.shape)[found]}
            rows: Any = unpack(ROWS, wait)
            model.learn(rows[at[found]], y[found], **part, **kwargs)
            forecast[found], made[found] = wait["forecast"][at[found]], wait["made"][at[found]] > 0
            self._beside["wait"] = _kept(wait, np.delete(np.arange(len(wait["ids"])), at[found]))
        return np.ma.MaskedArray(forecast, mask=~made)

    @property
    def waiting_(self) -> np.ndarray:
        """Ids of the rows that wait, oldest first."""
        return self._beside["wait"]["ids"].copy() if "model_" in self.__dict__ else np.empty(0)

    @property
    def forgotten_(self) -> int:
        """Rows that were dropped before their targets came."""
        return int(self._beside["wait"]["counts"][1]) if "model_" in self.__dict__ else 0

    # ---------------------------------------------------------------- what waits
    def _add(self, names: np.ndarray, rows: Any, forecast: np.ndarray, trained: bool) -> None:
        wait = self._beside["wait"]
        n = len(names)
        start = int(wait["counts"][0])
        old = wait["forecast"] if wait["made"].any() else np.zeros(len(wait["ids"]), forecast.dtype)
        wait = pack(ROWS, rows) | {
            "ids": np.concatenate([wait["ids"], names]) if len(wait["ids"]) else names,
            "forecast": np.concatenate([old, forecast if trained or not len(old) else np.zeros(n, old.dtype)]),
            "made": np.concatenate([wait["made"], np.full(n, int(trained), np.int64)]),
            "since": np.concatenate([wait["since"], np.arange(start, start + n)]),
            "counts": wait["counts"] + [n, 0],
        }
        age = wait["counts"][0] - wait["since"]
        young = np.ones(len(age), bool) if self.oldest is None else age <= self.oldest
        left = np.flatnonzero(young)[-self.most :]
        lost = len(young) - len(left)
        self._beside["wait"] = _kept(wait, left) | {"counts": wait["counts"] + [0, lost]} if lost else wait

    # ---------------------------------------------------------------- the state
    def _start(self, model: Any) -> State:
        none = np.empty(0, np.int64)
        counts = np.zeros(2, np.int64)  # rows that were remembered, and those that were dropped
        return {"wait": {"ids": none, "forecast": np.empty(0), "made": none, "since": none, "counts": counts}}

    def _schema(self) -> Schema:
        wait = self._beside["wait"]
        ids: Any = wait.get("ids")
        n = len(ids) if isinstance(ids, np.ndarray) and ids.ndim == 1 else 0
        for name in ("ids", "forecast"):
            value: Any = wait.get(name)
            if not isinstance(value, np.ndarray) or value.shape != (n,) or value.dtype.kind not in "biufUS":
                raise ValueError(f"state_['wait/{name}'] must have one entry for each of {n} rows")
        schema: Schema = {
            "ids": Anything(),
            "forecast": Anything(),
            "made": Array((n,), "int64", low=0, high=1),
            "since": Array((n,), "int64", low=0, rising=True),
            "counts": Array((2,), "int64", low=0),
        }
        if ROWS in wait:
            value = wait[ROWS]
            width = value.shape[1] if isinstance(value, np.ndarray) and value.ndim == 2 else 0
            schema |= {ROWS: Array((n, width), ("float32", "float64"))}
        if f"{ROWS}_data" in wait:
            rows: Any = unpack(ROWS, wait)
            rows.check_format(full_check=True)
            if rows.shape[0] != n or not np.isfinite(rows.data).all():
                raise ValueError(f"state_['wait/{ROWS}_data'] must hold {n} finite rows")
            schema |= {f"{ROWS}_{name}": Anything() for name in ("data", "indices", "indptr")}
            schema |= {f"{ROWS}_width": Count(1)}
        return {"wait": Inside(schema)}

    def _check_parameters(self) -> None:
        for name in ("most", "oldest"):
            whole(name, getattr(self, name), optional=name == "oldest")


def _kept(wait: dict[str, Any], left: np.ndarray) -> dict[str, Any]:
    """Of what waits only the rows in ``left``."""
    rows: Any = unpack(ROWS, wait)
    kept = {name: wait[name][left] for name in ("ids", "forecast", "made", "since")}
    return pack(ROWS, rows[left]) | kept | {"counts": wait["counts"]}


def _ids(id: Any) -> np.ndarray:
    names = np.atleast_1d(np.asarray(id))
    if names.ndim != 1 or names.dtype.kind not in "iuUS":
        raise ValueError(f"id must be integers or strings, one for each row, got {id!r:.60}")
    return names.astype(np.int64) if names.dtype.kind in "iu" else names
