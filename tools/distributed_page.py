"""Write the tables of docs/distributed.md: the measured ones from benchmarks/results, and what the cost model predicts.

Run after benchmarks/speed/many_machines.py:

    python tools/distributed_page.py
"""

import json
import math
from pathlib import Path

HERE = Path(__file__).parents[1] / "benchmarks"
PAGE = HERE.parent / "docs" / "distributed.md"
ROWS = 10**10
LATENCY, BANDWIDTH = 1e-3, 1e9  # seconds a task, bytes a second
FEATURES, CELLS, GRIDS, ROUNDS = 2000, 10**6, 64, 50


def insert(text: str, name: str, table: str) -> str:
    """The page with the text between a marker and the empty comment that ends its place replaced."""
    marker, end = f"<!-- {name} -->\n", "<!-- -->\n"
    before, found, rest = text.partition(marker)
    if not found:
        raise ValueError(f"the page has no place for {name!r}: it lacks {marker.strip()!r}")
    stop = rest.find("<!--")  # the next comment of any kind: another marker means that this one was never closed
    if stop < 0 or not rest.startswith(end, stop):
        raise ValueError(f"the place for {name!r} has no end: {end.strip()!r} must follow it before any other comment")
    return f"{before}{marker}{table.strip()}\n{rest[stop:]}"


def predictions(measured: dict[str, dict[str, float]], sizes: dict[str, int]) -> str:
    """Hours and memory for ROWS rows; the rates are rows a second with one worker."""
    lines = [
        f"| {ROWS:.0e} rows | rows/s of a worker | 10 workers | 100 workers | 1000 workers |".replace("e+", "e"),
        "|---|---|---|---|---|",
    ]
    for name, rounds, depth, size in (
        ("ridge", 1, 2, 8 * FEATURES**2),
        ("binning", ROUNDS, 8, 8 * CELLS),
    ):
        one = measured[f"{name}/1"]
        rate = sizes[name] * one["rounds"] / one.get("cpu", one["seconds"])
        cells = []
        for K in (10, 100, 1000):
            work = ROWS / (K * rate)
            tree = math.ceil(math.log(K, depth)) * size / BANDWIDTH
            seconds = rounds * (work + tree + LATENCY * 2 * K)
            share = f"{100 * work * rounds / seconds:.0f} % of it on rows"
            memory = "" if name == "ridge" else f", {4 * GRIDS * ROWS / K / 1e9:,.0f} GB each"
            cells.append(f"{seconds / 3600:,.1f} h, {share}{memory}")
        words = {
            "ridge": f"ridge, P = {FEATURES}",
            "binning": f"binning CG, {GRIDS} grids, D = 10^6, {ROUNDS} rounds",
        }
        lines.append(f"| {words[name]} | {rate:,.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    record = json.loads((HERE / "results" / "many_machines.json").read_text())
    text = insert(text, "many machines", (HERE / "results" / "many_machines.md").read_text(encoding="utf-8"))
    text = insert(text, "predictions", predictions(record["measured"], record["rows"]))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
