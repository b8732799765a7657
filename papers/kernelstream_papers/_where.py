"""The page "where is this?": paper -> table or figure -> recipe -> printed -> ours -> cause, and what is missing."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from ._experiment import Experiment, load
from ._table import Cell, verdict, with_deviation

HEAD = """# Where is this? The papers, table by table

Written by `kernelstream reproduce --page` from the runs beside this file and from the list of what the papers hold. A
cell is *level* with the paper when the means differ by at most two standard deviations, the larger of the paper's and
ours; otherwise it is *ahead* or *behind*. *By the author's rules* are cells where the algorithm as published is behind,
and the rules of the author's own program, a line of the same experiment, come to the printed figure.
[tables.md](tables.md) has the same figures as tables, with lines of our own.
"""


@dataclass(frozen=True)
class Tally:
    """Printed numbers of a table or a paper."""

    level: int = 0
    author: int = 0
    ahead: int = 0
    behind: int = 0
    not_run: int = 0
    absent: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(self.numbers(), other.numbers(), strict=True)))

    def numbers(self) -> list[int]:
        return [self.level, self.author, self.ahead, self.behind, self.not_run, self.absent]

    @property
    def printed(self) -> int:
        return sum(self.numbers())

    @property
    def recomputed(self) -> int:
        return self.printed - self.not_run - self.absent

    def row(self) -> str:
        """Printed, recomputed, then the parts."""
        return " | ".join(str(n) for n in (self.printed, self.recomputed, *self.numbers()))


def contents() -> dict[str, Any]:
    """What the papers hold."""
    text = resources.files(__package__).joinpath("contents.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def where(found: dict[str, list[Cell]]) -> str:
    """The page, from the cells of experiments by name."""
    told = contents()
    sections, rows, total = [], [], Tally()
    for paper in told["paper"]:
        lines, sum_of = _paper(paper, told["absent"], found)
        sections += lines
        rows.append(f"| {paper['source']} | {sum_of.row()} |")
        total += sum_of
    counts = "level | by the author's rules | ahead | behind | declared, not run | not declared"
    head = f"| paper | printed | recomputed | {counts} |"
    rows.append(f"| **all** | {total.row()} |")
    rest = [*_listed("Built otherwise than printed", told["differs"]), *_listed("Not built", told["lacks"])]
    return "\n".join([HEAD, head, f"|---|{'---:|' * 8}", *rows, "", *sections, *rest])


def _listed(title: str, entries: list[dict[str, str]]) -> list[str]:
    """A table with a column for every key."""
    heads = list(entries[0])
    lines = [f"| {' | '.join(entry[head] for head in heads)} |" for entry in entries]
    return [f"## {title}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *lines, ""]


def _paper(paper: dict[str, Any], absent: dict[str, str], found: dict[str, list[Cell]]) -> tuple[list[str], Tally]:
    lines = [f"## {paper['title']}", "", "| place | what | experiment | printed | recomputed | missing, and notes |",
             "|---|---|---|---:|---:|---|"]  # fmt: skip
    details: list[str] = []
    total, seen = Tally(), set[str]()
    for item in paper["item"]:
        names = item.get("experiments", [])
        tally = Tally(absent=sum(item.get("absent", {}).values()))
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
        numbers = f"{tally.printed} | {tally.recomputed}" if tally.printed else " | "
        lines.append(f"| {item['place']} | {item['what']} | {shown} | {numbers} | {notes} |")
        total += tally
    return [*lines, "", *details], total


def _experiment(experiment: Experiment, cells: list[Cell]) -> tuple[Tally, list[str]]:
    """Every printed cell of an experiment beside ours."""
    if not experiment.printed:
        return Tally(), []
    by_place = {(cell.data, cell.algorithm): cell for cell in cells if not cell.point}
    recipes = {a.label: a.zoo or f"peer {a.peer}" for a in experiment.algorithms}
    instead = {a.instead: a.label for a in experiment.algorithms if a.instead is not None}
    lines = [f"### {experiment.source}, {experiment.place}: {experiment.title}", "",
             f"`kernelstream reproduce {experiment.name}`. {experiment.about}", "",
             "| data | line | recipe | printed | ours | | cause |", "|---|---|---|---:|---:|---|---|"]  # fmt: skip
    counts = dict.fromkeys(("level", "author", "ahead", "behind", "not_run"), 0)
    for data, printed in experiment.printed.items():
        for label, figure in printed.items():
            cell = by_place.get((data, label))
            found = (verdict(experiment, cell) if cell is not None else None) or "not run"
            cause = experiment.why.get(f"{data}/{label}", "not explained" if found == "behind" else "")
            other = by_place.get((data, instead.get(label, "")))
            if found == "behind" and other is not None and other.values:
                other = replace(other, printed=figure)
                cause = f"By the author's rules {other.shown(experiment.measure)}. {cause}"
                found = "author" if verdict(experiment, other) == "level" else found
            counts[found.replace(" ", "_")] += 1
            found = "by the author's rules" if found == "author" else found
            told = with_deviation(figure.value, figure.std or None, experiment.measure)
            ours = "" if cell is None or not cell.values else cell.shown(experiment.measure)
            lines.append(f"| {data} | {label} | `{recipes[label]}` | {told} | {ours} | {found} | {cause} |")
    return Tally(**counts), [*lines, ""]
