"""Logs as lines of JSON, with the id of the request that they belong to."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

REQUEST: ContextVar[str | None] = ContextVar("request", default=None)  # the id of the request that is being answered
FACTS = ("method", "path", "status", "seconds", "client")  # of a request, where a record has them

requests = logging.getLogger("kernelstream_service.requests")  # one record for each, at level "info"


class JSONLines(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        about = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request": REQUEST.get(),
        }
        about |= {name: getattr(record, name, None) for name in FACTS}
        if record.exc_info:
            about["error"] = self.formatException(record.exc_info)
        return json.dumps({name: value for name, value in about.items() if value is not None})


def start(level: str) -> None:
    """Write what is logged from a level on ("info" has every request) to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    logging.captureWarnings(True)
    for name in ("kernelstream", "kernelstream_service", "uvicorn", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
