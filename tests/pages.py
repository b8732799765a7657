"""Code blocks of Markdown pages, and what runs them."""

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from kernelstream import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Block:
    """A block of a page.

    Attributes
    ----------
    language : str
    code : str
    mark : str
        The comment in the line before, which readers do not see: ``not run: WHY``, or the name of a file that the block
        is a part of.
    after : str
        The text up to the next block.
    """

    language: str
    code: str
    mark: str
    after: str

    @property
    def why_not(self):
        """The reason why it is not run, or None."""
        return self.mark.removeprefix("not run: ") if self.mark.startswith("not run: ") else None


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [Block(match[2], match[3], match[1] or "", text[match.end() : end]) for match, end in zip(found, ends)]


def run_shell(code):
    """Commands of this package, one a line, called as a shell would; ``> FILE`` takes the output."""
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        assert words[0] == "kernelstream", f"{line!r} is not run by the tests: mark the block and say why"
        target = None
        if ">" in words:
            *words, _, target = words
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            code = cli.main(words[1:])
        assert code == 0, f"{line!r} ends with exit code {code}"
        if target is not None:
            Path(target).write_text(heard.getvalue())
