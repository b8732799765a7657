"""Write tables of the documentation: the catalogue from the registries, figures from papers/results/.

python tools/box.py            # after adding a component, or after running an experiment of the tables
python tools/box.py --check    # exit code 1 when a table is stale

A page marks the place of a table: ``<!-- box: written by tools/box.py -->`` up to ``<!-- end of box -->``. The table
of an experiment has its name in place of ``box``; that of a benchmark (``benchmarks/results/NAME.json`` or
``papers/studies/results/NAME.json`` with ``head`` and ``rows``) is called ``record-NAME``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import kernelstream
import kernelstream_papers as papers
from kernelstream import budgets, features, kernels, losses, updates, zoo
from kernelstream_papers import rivals
from kernelstream_papers.report import markdown_table

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"<!-- ([\w-]+): written by tools/box\.py -->\n.*?<!-- end of \1 -->", re.DOTALL)


def pages() -> list[Path]:
    """Pages with a table of this program."""
    return [page for page in sorted((ROOT / "docs").glob("*.md")) if MARK.search(page.read_text())]


def box() -> str:
    """Every public name, by kind."""
    rows = {
        "Estimators": [name for name in kernelstream._NAMES if name[0].isupper()],
        "Rivals, `kernelstream_papers.rivals`": [name for name in rivals.__all__ if name[0].isupper()],
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


def table(name: str) -> str:
    """Table of an experiment, with what it says about itself."""
    experiment = papers.load(name)
    cells = papers.table(experiment, papers.Records(ROOT / "papers" / "results", name))
    rest = markdown_table(experiment, cells)[1:]  # without its heading
    text = [f"**{experiment.title}** (`kernelstream reproduce {name}`). {experiment.about}", *rest]
    return "\n".join(text).rstrip()


def record(name: str) -> str:
    """Table of a benchmark."""
    places = (ROOT / "benchmarks" / "results", ROOT / "papers" / "studies" / "results")
    (path,) = (path for place in places if (path := place / f"{name}.json").exists())
    found = json.loads(path.read_text())
    lines = [found["head"], ["---"] * len(found["head"]), *found["rows"]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def body(name: str) -> str:
    """What stands between the marks of a name."""
    if name == "box":
        return box()
    return record(name.removeprefix("record-")) if name.startswith("record-") else table(name)


def renewed(text: str) -> str:
    """A page with fresh tables."""
    return MARK.sub(
        lambda found: f"<!-- {found[1]}: written by tools/box.py -->\n{body(found[1])}\n<!-- end of {found[1]} -->",
        text,
    )


if __name__ == "__main__":
    for page in pages():
        old = page.read_text()
        new = renewed(old)
        if "--check" in sys.argv[1:] and old != new:
            sys.exit(f"a table in docs/{page.name} is stale: run python tools/box.py")
        page.write_text(new)
