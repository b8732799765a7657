"""The page "where is this?": paper -> table or figure -> recipe -> printed -> ours -> cause, and what is missing."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from importlib import resources
from statistics import geometric_mean
from typing import Any

from ._experiment import Experiment, Printed, load, names
from ._table import Cell, verdict, with_deviation

HEAD = """# Where is this? The papers, table by table

Written by `kernelstream reproduce --page` from the runs beside this file and from the list of what the papers hold. A
cell is *level* with the paper when the means differ by at most three standard errors of their difference (the paper's
mean is one of as many orders as are declared; a deviation that is not printed is ours, and where orders of ours lack it
is the larger one), or in no printed digit; otherwise it is *ahead* or *behind*; the last columns count those without
a known cause. *By the author's rules* are cells where the algorithm as published is either, and the rules of the
author's own program, a line of the same experiment, come to the printed figure. [4/10] means that 4 of the 10 declared
orders ran. *Seconds* are multiples of the geometric mean of all lines of a data set, ours and in brackets the paper's,
so that the machine drops out (but ours may have run on several machines); *vectors* are support vectors, likewise.
[tables.md](tables.md) has the same figures as tables, with lines of our own.
"""

RUN = ("level", "by the author's rules", "ahead", "behind")
PARTS = (*RUN, "not run", "absent")
NOTES = ("reduced data", "ahead, no cause", "behind, no cause")  # among those that ran
COLUMNS = ("printed", "recomputed", *RUN, "declared, not run", "not declared", *NOTES)


def _numbers(tally: Counter[str]) -> tuple[int, int]:
    """Printed and recomputed cells."""
    return sum(tally[part] for part in PARTS), sum(tally[part] for part in RUN)


def _row(tally: Counter[str]) -> str:
    return " | ".join(str(n) for n in (*_numbers(tally), *(tally[part] for part in (*PARTS, *NOTES))))


def contents() -> dict[str, Any]:
    """What the papers hold."""
    text = resources.files(__package__).joinpath("contents.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def where(found: dict[str, list[Cell]]) -> str:
    """The page, from the cells of experiments by name."""
    told = contents()
    sections, rows, total = [], [], Counter[str]()
    for paper in told["paper"]:
        lines, sum_of = _paper(paper, told["absent"], found)
        sections += lines
        rows.append(f"| {paper['source']} | {_row(sum_of)} |")
        total += sum_of
    rows.append(f"| **all** | {_row(total)} |")
    head = [f"| paper | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
    rest = [*_listed("Built otherwise than printed", told["differs"]), *_listed("Not built", told["lacks"])]
    return "\n".join([HEAD, *head, *rows, "", *_points(found), *sections, *rest])


def _points(found: dict[str, list[Cell]]) -> list[str]:
    """Declared points, cells and points of curves alike: how many have a run, and which have none."""
    rows, lacking, total = [], [], Counter[str]()
    for name in names():
        experiment, cells = load(name), [cell for cell in found.get(name, []) if cell.values]
        ran = {(cell.data, cell.algorithm, str(cell.point)) for cell in cells}
        points = [(d.name, a.label, str(p)) for d, a in experiment.lines() for p in a.points()]
        without = Counter((data, label) for data, label, p in points if (data, label, p) not in ran)
        short = sum(not cell.complete for cell in cells)
        counts = {"points": len(points), "without a run": without.total(), "with fewer orders": short}
        total.update(counts)
        rows.append(f"| `{name}` | {' | '.join(map(str, counts.values()))} |")
        for data in dict.fromkeys(data for data, _ in without):
            labels = (label + (f" ({n} points)" if n > 1 else "") for (d, label), n in without.items() if d == data)
            lacking.append(f"- `{name}`, {data}: {'; '.join(labels)}")
    head = [f"| experiment | {' | '.join(total)} |", f"|---|{'---:|' * len(total)}"]
    rows.append(f"| **all** | {' | '.join(map(str, total.values()))} |")
    told = "Declared, and without a run here (`kernelstream reproduce NAME --data SET --algorithm LINE` makes one):"
    return ["## Points", "", *head, *rows, "", told, "", *lacking, ""]


def _listed(title: str, entries: list[dict[str, str]]) -> list[str]:
    """A table with a column for every key."""
    heads = list(entries[0])
    lines = [f"| {' | '.join(entry[head] for head in heads)} |" for entry in entries]
    return [f"## {title}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *lines, ""]


def _paper(
    paper: dict[str, Any], absent: dict[str, str], found: dict[str, list[Cell]]
) -> tuple[list[str], Counter[str]]:
    lines = [f"## {paper['title']}", "", "| place | what | experiment | printed | recomputed | missing, and notes |",
             "|---|---|---|---:|---:|---|"]  # fmt: skip
    details: list[str] = []
    total, seen = Counter[str](), set[str]()
    for item in paper["item"]:
        names = item.get("experiments", [])
        tally = Counter({"absent": sum(item.get("absent", {}).values())})
        for name in names:
            if name not in seen:  # a figure may be drawn from the runs of a table
                counted, part = _experiment(load(name), found.get(name, []))
                tally, details = tally + counted, details + part
                seen.add(name)
        missing = [f"{data}: {n} ({absent[data]})" for data, n in item.get("absent", {}).items()]
        recipes = ", ".join(f"`{name}`" for name in item.get("recipes", []))
        told = " ".join(filter(None, [f"Recipes {recipes}." if recipes else "", item.get("note")]))
        notes = "; ".join([*missing, told] if told else missing)
        shown = ", ".join(f"`{name}`" for name in names) or "—"
        numbers = " | ".join(map(str, _numbers(tally))) if _numbers(tally)[0] else " | "
        lines.append(f"| {item['place']} | {item['what']} | {shown} | {numbers} | {notes} |")
        total += tally
    return [*lines, "", *details], total


def _experiment(experiment: Experiment, cells: list[Cell]) -> tuple[Counter[str], list[str]]:
    """Every printed cell of an experiment beside ours."""
    if not experiment.printed:
        return Counter(), []
    by_place = {(cell.data, cell.algorithm): cell for cell in cells if not cell.point and cell.values}
    recipes = {a.label: a.zoo or f"peer {a.peer}" for a in experiment.algorithms}
    instead = {a.instead: a.label for a in experiment.algorithms if a.instead is not None}
    lines = [f"### {experiment.source}, {experiment.place}: {experiment.title}", "",
             f"`kernelstream reproduce {experiment.name}`. {experiment.about}", "",
             "| data | line | recipe | printed | ours | | seconds | vectors | cause |",
             "|---|---|---|---:|---:|---|---:|---:|---|"]  # fmt: skip
    counts = Counter[str]()
    for data, printed in experiment.printed.items():
        ratios = _ratios({label: (by_place.get((data, label)), figure) for label, figure in printed.items()})
        for label, figure in printed.items():
            cell = by_place.get((data, label))
            found = (verdict(experiment, cell) if cell is not None else None) or "not run"
            cause = experiment.reason(data, label, found) if cell is not None else ""
            other = by_place.get((data, instead.get(label, "")))
            if found in ("ahead", "behind") and other is not None:
                other = replace(other, printed=figure)
                cause = f"By the author's rules {other.shown(experiment.measure)}. {cause}"
                found = "by the author's rules" if verdict(experiment, other) == "level" else found
            counts[found] += 1
            counts["reduced data"] += cell is not None and data in experiment.reduced
            if found in ("ahead", "behind") and not experiment.reason(data, label, found):
                counts[f"{found}, no cause"] += 1
                cause += "Not explained."
            told = with_deviation(figure.value, figure.std or None, experiment.measure)
            ours = "" if cell is None else cell.shown(experiment.measure)
            vectors = f"{cell.size:,.0f} ({figure.size:,.0f})" if cell and cell.size and figure.size else ""
            place = data + ", reduced" * (data in experiment.reduced)
            shown = (place, label, f"`{recipes[label]}`", told, ours, found, ratios.get(label, ""), vectors, cause)
            lines.append(f"| {' | '.join(shown)} |")
    return counts, [*lines, ""]


def _ratios(lines: dict[str, tuple[Cell | None, Printed]]) -> dict[str, str]:
    """Seconds of the lines of a data set, ours and the paper's, as multiples of their geometric means."""
    both = {label: (max(c.time, 1e-5), p.seconds) for label, (c, p) in lines.items() if c is not None and p.seconds}
    means = [geometric_mean(seconds) for seconds in zip(*both.values(), strict=True)]
    return {label: f"{ours / means[0]:.2g} ({theirs / means[1]:.2g})" for label, (ours, theirs) in both.items()}
