"""Write docs/leaderboard.md from the runs in papers/results/: peers, machine, versions, date, and the command for each.

python tools/leaderboard.py            # after an experiment of EXPERIMENTS was run
python tools/leaderboard.py --check    # exit code 1 when the page is stale
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import kernelstream_papers as papers
from kernelstream_papers._arena_table import arena_tables
from kernelstream_papers.report import markdown_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "leaderboard.md"
EXPERIMENTS = ("streams-arena", "peers-fit", "peers-online", "peers-row", "peers-batch")
TOP = """# Leaderboard

This library beside other tools, on the same rows. No method is best everywhere, and figures that do not favour this
library are shown too. Every table names the machine, the versions and the command that reproduces it; a command that
was stopped continues where it was. `tools/leaderboard.py` writes this page.
"""


def environments(records: papers.Records) -> list[str]:
    """Machines and versions of an experiment's runs, the most frequent ones first."""
    counts: dict[str, int] = {}
    for record in records:
        found = record.get("environment")
        if found:
            text = json.dumps(found, sort_keys=True)
            counts[text] = counts.get(text, 0) + 1
    shown = []
    for text in sorted(counts, key=lambda text: (-counts[text], text))[:2]:
        found = json.loads(text)
        versions = ", ".join(f"{name} {version}" for name, version in found.get("versions", {}).items())
        processor = found.get("processor") or found.get("machine")
        shown.append(f"{processor}, {found.get('cores')} cores, Python {found.get('python')}; {versions}")
    return shown


def date(path: Path) -> str:
    """Day of the last commit of the runs."""
    made = subprocess.run(
        ["git", "log", "-1", "--format=%cs", "--", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return made.stdout.strip() or "not yet committed"


def page() -> str:
    lines = [TOP]
    for name in EXPERIMENTS:
        records = papers.Records(ROOT / "papers" / "results", name)
        if not len(records):
            continue
        experiment = papers.load(name)
        cells = papers.table(experiment, records)
        lines += [f"## {experiment.title}", "", f"Runs of {date(records.kept)}.", ""]
        if experiment.kind == "arena":
            rest = arena_tables(experiment, cells)[2:]
        else:
            rest = [experiment.about, "", *markdown_table(experiment, cells)[2:]]
        lines += rest
        lines += [f"*Machine:* {text}." for text in environments(records)]
        lines += ["", "<!-- not run: hours -->", "```sh", f"kernelstream reproduce {name}", "```", ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    new = page()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text() == new else "docs/leaderboard.md is stale: run python tools/leaderboard.py")
    PAGE.write_text(new)
