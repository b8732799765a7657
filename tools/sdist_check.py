"""Check that a source archive is small and complete: below 2 MB, without generated files, with what a build needs.

python tools/sdist_check.py dist/kernelstream-*.tar.gz
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

MOST = 2_000_000  # bytes
NEEDED = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE")
NEEDED += ("cpp/bind/core.cpp", "src/kernelstream/__init__.py")
LEFT_OUT = ("papers/", "gen/", "build/", "docs/_build/", "docs/gallery/", "docs/api/generated/", ".venv")


def problems(archive: Path) -> list[str]:
    """What is wrong with an archive, in words."""
    size = archive.stat().st_size
    found = [] if size < MOST else [f"{size:,} bytes are more than {MOST:,}"]
    with tarfile.open(archive) as tar:
        names = [name.partition("/")[2] for name in tar.getnames()]
    found += [f"{name} is missing" for name in NEEDED if name not in names]
    found += [
        f"{name} should not be there" for name in names if name.startswith(LEFT_OUT) or name.endswith((".so", ".pyc"))
    ]
    return found


if __name__ == "__main__":
    wrong = [problem for name in sys.argv[1:] for problem in problems(Path(name))]
    sys.exit("\n".join(wrong) if wrong else 0)
