"""Write the stub of the compiled core, src/kernelstream/_core.pyi: names and types of its functions for type checkers.

python tools/stub.py            # after a change of the bindings, once it is built
python tools/stub.py --check    # exit code 1 when the stub is stale
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

from kernelstream import _core

STUB = Path(__file__).parents[1] / "src" / "kernelstream" / "_core.pyi"
HEAD = "# Written by tools/stub.py from the compiled core; do not edit.\n# ruff: noqa\n# fmt: off\n"


def stub() -> str:
    """The stub of the core that is installed."""
    made = StubGen(module=_core, quiet=True)
    made.put(_core)
    # Shapes and devices are checked by the core itself; a reader and a type checker want the type of an array.
    text = re.sub(r"Annotated\[(NDArray\[[\w.]+\]), dict\([^)]*(?:\([^)]*\)[^)]*)*\)\]", r"\1", made.get())
    text = text.replace("import Annotated, overload", "import Any, overload")
    for bare, full in (("dict", "dict[str, Any]"), ("list", "list[Any]"), ("tuple", "tuple[Any, ...]")):
        text = re.sub(rf"\b{bare}\b(?!\[)", full, text)
    return HEAD + text


def main() -> int:
    wanted = stub()
    if "--check" in sys.argv[1:]:
        if STUB.read_text() != wanted:
            print(f"{STUB.name} is stale: run python tools/stub.py")
            return 1
        return 0
    STUB.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
