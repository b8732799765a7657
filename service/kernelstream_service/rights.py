"""Who may do what, and how often: tokens with rights and models, in a file that is read again when it has changed.

A line of the file is ``TOKEN [RIGHTS [MODELS]]``: rights and names of models are separated by commas, ``all`` stands
for all rights and ``*`` for all models, and a token alone has both. What follows a ``#`` is a comment.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from .problems import Problem

RIGHTS = ("predict", "learn", "operate", "administer")
SECONDS_UNREAD = 1.0  # seconds for which a file is not looked at again
MIN_TOKEN_LENGTH = 8

logger = logging.getLogger("kernelstream_service")


@dataclass(frozen=True)
class Grant:
    """Rights, and the models that they are for.

    ``predict`` and ``learn`` are the two calls; ``operate`` is to promote, to roll back and to acknowledge;
    ``administer`` is to create, replace, download and delete models and to set a challenger. Any right for a
    model allows its state to be read.
    """

    rights: frozenset[str] = frozenset(RIGHTS)
    models: frozenset[str] | None = None  # None for all

    def may(self, right: str | None, model: str | None = None) -> bool:
        """Whether it includes a right for a model (None: all models); without a right, whether that may be seen."""
        return (right is None or right in self.rights) and (self.models is None or model in self.models)


LOCAL_GRANT = Grant(frozenset(RIGHTS) - {"administer"})  # of everybody, where no token is asked for


def denied(right: str | None, name: str) -> Problem:
    """The answer to a request that a grant does not include."""
    needed = f"the right {right!r}" if right else "any right"
    return Problem(403, f"this needs a token with {needed} for the model {name[:80]!r}")


class Tokens:
    """The grants of a file of tokens.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    problem : str or None
        Why the file, which has changed, cannot be used; until it can, the previous tokens stay valid.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.problem: str | None = None
        self._looked, self._seen = time.monotonic(), self._stamp()
        self._grants = self._read()

    def grant(self, token: bytes) -> Grant | None:
        """What a token allows; None for one that is not known."""
        if time.monotonic() - self._looked > SECONDS_UNREAD:
            self._look()
        return self._grants.get(hashlib.sha256(token).digest())  # so that the time tells nothing about other tokens

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            self._seen, self._grants, self.problem = stamp, self._read(), None
        except (OSError, ValueError) as error:
            if str(error) != self.problem:
                logger.error("the token file cannot be used, the previous tokens stay valid: %s", error)
            self.problem = str(error)

    def _stamp(self) -> tuple[int, ...]:
        about = self.path.stat()
        return about.st_mtime_ns, about.st_size, about.st_ino

    def _read(self) -> dict[bytes, Grant]:
        found = {}
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.partition("#")[0].split()
            if words:
                try:
                    found[hashlib.sha256(words[0].encode()).digest()] = _grant(words)
                except ValueError as error:
                    raise ValueError(f"{self.path}, line {number}: {error}") from None
        if not found:
            raise ValueError(f"{self.path} holds no token")
        return found


def _grant(words: list[str]) -> Grant:
    if len(words) > 3:
        raise ValueError("a line is TOKEN [RIGHTS [MODELS]], with commas and no spaces inside RIGHTS and MODELS")
    token, rights, models = (*words, *("all", "*")[len(words) - 1 :])
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii():
        raise ValueError(f"a token has at least {MIN_TOKEN_LENGTH} characters, all of them ASCII")
    asked = frozenset(RIGHTS if rights == "all" else rights.split(","))
    if not asked <= set(RIGHTS):
        raise ValueError(f"the rights are {', '.join(RIGHTS)} or all, not {', '.join(sorted(asked - set(RIGHTS)))}")
    return Grant(asked, None if models == "*" else frozenset(models.split(",")))
