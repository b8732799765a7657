"""Dead letters: messages that could not be used, kept with the reason.

They are lines of JSON in a file of the learner's folder. A line is there before the learner goes on behind its message,
so that none is missing after a crash; one that is there twice is known by its part and place.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from .log import LogError
from .sources import Message

DEAD_FILE, FORMER_DEAD_FILE = "dead.jsonl", "dead.old.jsonl"
DEAD_FILE_BYTES = 64 << 20  # of a file; then it becomes the former one, and the one before that goes


def bury(path: Path, message: Message, reason: str) -> None:
    """Add a message to the dead letters; LogError where the disk does not take it."""
    line = {
        "part": message.part, "at": message.at, "reason": reason, "time": time.time(),
        "content": message.content.decode(errors="backslashreplace"),
    }  # fmt: skip
    try:
        if path.exists() and path.stat().st_size > DEAD_FILE_BYTES:
            os.replace(path, path.with_name(FORMER_DEAD_FILE))
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise LogError(error.errno, f"{path.name} cannot be written: {error.strerror or error}") from error
