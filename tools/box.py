"""Write the table "What is in the box" of README.md from the registries.

python tools/box.py            # after adding a component
python tools/box.py --check    # exit code 1 when the table is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

import kernelstream
from kernelstream import budgets, features, kernels, losses, updates, zoo

README = Path(__file__).parents[1] / "README.md"
START, END = "<!-- box: written by tools/box.py -->", "<!-- end of box -->"


def table() -> str:
    """Every public name, by kind."""
    rows = {
        "Estimators": [name for name in kernelstream._NAMES if name[0].isupper()],
        "Algorithms, `zoo.make(name)`": zoo.names(),
        "Kernels": kernels.names(),
        "Feature maps": features.names(),
        "Losses": losses.names(),
        "Updates": updates.names(),
        "Budgets": budgets.names(),
    }
    lines = ["| | |", "|---|---|"]
    lines += [f"| {kind} | {', '.join(f'`{name}`' for name in names)} |" for kind, names in rows.items()]
    return "\n".join(lines)


def renewed(text: str) -> str:
    """The README with a fresh table."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{README.name} lacks the lines {START} and {END}")
    return f"{before}{START}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    old = README.read_text()
    new = renewed(old)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if old == new else "the table in README.md is stale: run python tools/box.py")
    README.write_text(new)
