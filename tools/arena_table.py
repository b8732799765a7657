"""Write the table of docs/default_learner.md from the runs in papers/results/ and the board's figures.

python tools/arena_table.py            # after running the experiment streams-arena
"""

from __future__ import annotations

from pathlib import Path

import kernelstream_papers as papers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "default_learner.md"
OURS, BOOSTED = "kernelstream, the default learner", "LightGBM, doubling"
SMALL = f"{OURS}, small"
BOARD = ("CapyMOA ARF", "CapyMOA SRP", "CapyMOA SOKNL")
START, END = "<!-- arena: written by tools/arena_table.py -->", "<!-- end of arena -->"


def runs() -> dict[tuple[str, str], dict]:
    """The last complete run of each stream and learner."""
    found = {}
    for record in papers.Records(ROOT / "papers" / "results", "streams-arena"):
        if "figures" in record:
            found[record["data"], record["algorithm"]] = record
    return found


def cell(record: dict | None) -> str:
    """The figures of a run: log-loss and mistakes, or the root of the mean squared error and R²."""
    if record is None:
        return ""
    figures = record["figures"]
    if "log_loss" in figures:
        return f"{figures['log_loss']:.3f}, {figures['mistakes']:.1f} %"
    return f"{figures['rmse']:.4g}, R² {figures['r2']:.3f}"


def table() -> str:
    """One row for each stream."""
    found, experiment = runs(), papers.load("streams-arena")
    lines = ["| stream | the default learner | small | LightGBM, refitted | ARF | SRP or SOKNL | seconds, ours |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for data in experiment.data:
        own = found.get((data.name, OURS))
        if own is None:
            continue
        printed = {name: experiment.printed.get(data.name, {}).get(name) for name in BOARD}
        other = printed["CapyMOA SRP"] if printed["CapyMOA SRP"] is not None else printed["CapyMOA SOKNL"]
        board = [f"{value.value:.4g}" if value is not None else "" for value in (printed["CapyMOA ARF"], other)]
        cells = [f"**{cell(own)}**", cell(found.get((data.name, SMALL))), cell(found.get((data.name, BOOSTED))), *board]
        lines.append(f"| {data.name} | {' | '.join(cells)} | {own['cpu_seconds']:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(START)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{START}\n{table()}\n{END}{after}")
