"""Write tables of the documentation: what is in the box from the registries, the peers from the runs in results/.

python tools/box.py            # after adding a component, or after running an experiment of the tables
python tools/box.py --check    # exit code 1 when a table is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

import kernelstream
from kernelstream import budgets, features, kernels, losses, reproduce, updates, zoo
from kernelstream.reproduce.report import markdown_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "catalogue.md"
SHOWN = ("peers-row", "peers-batch")  # experiments whose tables the page has


def box() -> str:
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


def results() -> str:
    """Tables of the experiments that compare with other tools."""
    lines = []
    for name in SHOWN:
        experiment = reproduce.load(name)
        cells = reproduce.table(experiment, reproduce.Records(ROOT / "results", name))
        rest = markdown_table(experiment, cells)[1:]  # without its heading
        lines += [f"**{experiment.title}.** {' '.join(experiment.text.split())}", *rest]
    return "\n".join(lines).rstrip()


TABLES = {"box": box, "results": results}


def renewed(text: str) -> str:
    """The page with fresh tables."""
    for name, table in TABLES.items():
        start, end = f"<!-- {name}: written by tools/box.py -->", f"<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE.name} lacks the lines {start} and {end}")
        text = f"{before}{start}\n{table()}\n{end}{after}"
    return text


if __name__ == "__main__":
    old = PAGE.read_text()
    new = renewed(old)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if old == new else "a table in docs/catalogue.md is stale: run python tools/box.py")
    PAGE.write_text(new)
