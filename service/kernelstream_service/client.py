"""A client of ``kernelstream serve`` that repeats what was not answered, and learns no row twice.

A request whose answer was lost may have been carried out. Rows are therefore learned under ids, and the server leaves
out an id that it has learned before: a repeated call is safe.
"""

from __future__ import annotations

import datetime
import json
import math
import random
import time
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from kernelstream.streams.cells import is_missing

from .extras import needs

with needs("client"):
    import httpx

ROWS_PER_REQUEST = 5_000  # fewer than the ids that a server remembers, so that a repeated request finds all of them
BYTES_PER_REQUEST = 1 << 20  # about: a server takes twice as many
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds between two attempts, doubled each time
REPEATED = {429, 503, 507}  # too many requests, busy, no room on the disk: the same request may succeed later

Answer = dict[str, Any]


class RequestError(ValueError):
    """The server refused a request, and would refuse it again.

    Attributes
    ----------
    status : int
        The HTTP status.
    content : dict
        The answer of the server: ``error``, and ``row`` and ``column`` where they are known.
    """

    def __init__(self, status: int, content: Answer):
        super().__init__(content.get("error") or f"the server answered with status {status}")
        self.status, self.content = status, content


class Client:
    """A client of ``kernelstream serve``.

    Parameters
    ----------
    url : str, default="http://localhost:8000"
    token : str, optional
        The token that the server expects.
    patience : float, default=60
        Seconds for which a request is repeated while the server cannot be reached, is busy or has no room on its disk.
        After that, a ConnectionError.
    **options
        Of ``httpx.Client``: ``timeout``, ``verify`` and others.

    Examples
    --------
    >>> from kernelstream_service import Client
    >>> with Client(token="secret") as client:
    ...     client.learn("prices", [{"size": 80, "rooms": 3}], [300])  # doctest: +SKIP
    ...     client.predict("prices", {"size": 95, "rooms": 4})["predictions"]  # doctest: +SKIP
    """

    def __init__(
        self, url: str = "http://localhost:8000", token: str | None = None, *, patience: float = 60.0, **options: Any
    ):
        if not patience >= 0:
            raise ValueError(f"patience must be a number of seconds >= 0, got {patience!r}")
        headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        self.patience = patience
        self._http = httpx.Client(base_url=url, headers=headers, **({"timeout": 60.0} | options))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---------------------------------------------------------------- rows
    def predict(self, model: str, rows: Any, ids: Sequence[str | int] | None = None) -> Answer:
        """Ask for predictions.

        Parameters
        ----------
        model : str
            Name of the model on the server.
        rows : list of dicts or lists, dict, (n, d) array or data frame
            A dict is one row. Dates become ISO text; NaN and None are gaps.
        ids : list of str or int, optional
            Names of the rows, under which they can be learned once their targets are known.

        Returns
        -------
        dict
            ``predictions`` and, where the model has them, ``probabilities``, ``classes``, ``intervals`` and ``sets``.
        """
        return self._in_pieces(f"{_path(model)}/predict", {"rows": _rows(rows), "ids": ids})

    def forecast(self, model: str, rows: Any, ids: Sequence[str | int] | None = None) -> Answer:
        """Ask for predictions of rows each of which is the next one of the stream; otherwise like :meth:`predict`."""
        return self._in_pieces(f"{_path(model)}/forecast", {"rows": _rows(rows), "ids": ids})

    def learn(self, model: str, rows: Any, y: Any, ids: Sequence[str | int] | None = None) -> Answer:
        """Learn rows: when it returns they are safe, and learned exactly once, however often the request was repeated.

        Parameters
        ----------
        model : str
        rows : like that of :meth:`predict`, or None
            None learns the rows that were predicted with the same ``ids``.
        y : list or array
            Targets, one for each row.
        ids : list of str or int, optional
            By default new ones are made.

        Returns
        -------
        dict
            ``learned`` and ``repeated`` count rows of this call, ``total`` those of the model.
        """
        target = list(y) if isinstance(y, (list, tuple)) or hasattr(y, "__array__") else [y]
        if rows is None and ids is None:
            raise ValueError("learn needs rows, or the ids of rows that were predicted")
        if ids is None:
            stem = uuid.uuid4().hex
            ids = [f"{stem}-{i}" for i in range(len(target))]
        content = {"rows": None if rows is None else _rows(rows), "y": target, "ids": ids}
        return self._in_pieces(f"{_path(model)}/learn", content)

    def _in_pieces(self, path: str, content: Answer) -> Answer:
        """A call of any number of rows: pieces in their order, and their answers joined."""
        lists = {key: _plain(list(values)) for key, values in content.items() if values is not None}
        lengths = {key: len(values) for key, values in lists.items()}
        n = max(lengths.values())
        if len(set(lengths.values())) > 1:
            raise ValueError(f"lengths differ: {', '.join(f'{count} {key}' for key, count in lengths.items())}")
        answers, start = list[Answer](), 0
        while not answers or start < n:
            stop = min(n, start + ROWS_PER_REQUEST)
            while True:
                body = _json({key: values[start:stop] for key, values in lists.items()})
                if len(body) <= BYTES_PER_REQUEST or stop <= start + 1:
                    break
                stop = start + (stop - start) // 2
            answers.append(self._call("POST", path, body))
            start = stop
        return _joined(answers)

    # ---------------------------------------------------------------- models
    def models(self) -> list[Answer]:
        """The models of the server: a list of dicts with their names."""
        found: list[Answer] = self._call("GET", "/models")["models"]
        return found

    def describe(self, model: str) -> Answer:
        """What a model has learned and how well it performs: a dict."""
        return self._call("GET", _path(model))

    def promote(self, model: str) -> Answer:
        """Make the challenger of a model its champion. The request is not repeated if its answer is lost."""
        return self._call("POST", f"{_path(model)}/promote", b"{}", repeatable=False)

    def rollback(self, model: str, to: int | None = None) -> Answer:
        """Return to an earlier version of a model, by default the latest. Like :meth:`promote`, it is not repeated."""
        return self._call("POST", f"{_path(model)}/rollback", _json({} if to is None else {"to": to}), repeatable=False)

    # ---------------------------------------------------------------- one request
    def _call(self, method: str, path: str, body: bytes | None = None, repeatable: bool = True) -> Answer:
        """One request, repeated while it may succeed later, for at most ``patience`` seconds.

        A request that must not be carried out twice is repeated only if the server has refused it.
        """
        wait, end = FIRST_WAIT, time.monotonic() + self.patience
        while True:
            after, cause = 0.0, None
            try:
                response = self._http.request(method, path, content=body)
            except httpx.TransportError as error:
                problem, cause = str(error) or type(error).__name__, error
                if not repeatable and not isinstance(error, httpx.ConnectError):
                    lost = f"the answer was lost, and the request may have been carried out: {problem}"
                    raise ConnectionError(lost) from error
            else:
                if response.status_code < 400:
                    found: Answer = response.json()
                    return found
                said = _said(response)
                if response.status_code not in REPEATED:
                    raise RequestError(response.status_code, said)
                problem = said.get("error", f"status {response.status_code}")
                wanted = response.headers.get("retry-after", "")
                after = float(wanted) if wanted.isdigit() else 0.0
            pause = max(after, wait * random.uniform(0.5, 1.0))  # clients that failed together do not return together
            if time.monotonic() + pause > end:
                raise ConnectionError(f"no answer within {self.patience:g} seconds: {problem}") from cause
            time.sleep(pause)
            wait = min(2.0 * wait, LONGEST_WAIT)


# -------------------------------------------------------------------- rows and answers
def _rows(rows: Any) -> list[Any]:
    """Rows one by one: lists of cells, or dicts."""
    if isinstance(rows, dict):
        return [rows]
    if hasattr(rows, "to_dicts"):  # polars
        return rows.to_dicts()
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):  # pandas
        names = [str(name) for name in rows.columns]
        return [dict(zip(names, cells, strict=True)) for cells in rows.itertuples(index=False, name=None)]
    return list(rows)


def _plain(value: Any) -> Any:
    """Rows, cells, targets and ids in types that JSON knows: dates are ISO text, gaps None."""
    if isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "__array__"):
        found = np.asarray(value)
        if found.dtype.kind != "M":
            return _plain(found.tolist())
        if found.ndim:
            return [_plain(item) for item in found]
    if is_missing(value):
        return None
    if isinstance(value, float):
        raise ValueError("a cell is infinite: rows hold finite numbers, words, dates and gaps")
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    raise ValueError(f"a cell of type {type(value).__name__} cannot be sent: {value!r}")


def _json(content: Answer) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _path(model: str) -> str:
    return f"/models/{quote(model, safe='')}"


def _said(response: Any) -> Answer:
    try:
        content = response.json()
    except ValueError:
        content = {"error": response.text.strip()[:200]}
    return content if isinstance(content, dict) else {"error": str(content)}


def _joined(answers: list[Answer]) -> Answer:
    """One answer: lists are concatenated, counts of rows add up, and all else is that of the last piece."""
    found = dict(answers[-1])
    for key in found:
        if key in ("predictions", "probabilities", "intervals", "sets"):
            found[key] = [item for answer in answers for item in answer[key]]
        elif key == "warnings":
            found[key] = list(dict.fromkeys(text for answer in answers for text in answer.get(key, [])))
    for key in ("learned", "repeated"):
        if any(key in answer for answer in answers):
            found[key] = sum(answer.get(key, 0) for answer in answers)
    return found
