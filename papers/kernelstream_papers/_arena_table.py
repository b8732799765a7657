"""Places on streams, and the tables of an arena in Markdown, from records alone."""

from __future__ import annotations

from collections.abc import Callable

from scipy.stats import rankdata

from ._experiment import Experiment
from ._table import Cell, figure

#: Labels and numbers: the figure that places, its title, the other figure, its title, its digits.
TASKS = (("log_loss", "log-loss", "mistakes", "mistakes, %", 1), ("rmse", "RMSE", "r2", "R²", 3))

STAR = "\\*"  #: marks a run of the first rows only


def places(cells: list[Cell]) -> dict[tuple[str, str], float]:
    """Place of (stream, algorithm), 1 for the smallest value; equal ones share the mean of their places.

    Only runs over all rows of a stream have one: as many rows as the longest run of that stream.
    """
    found: dict[tuple[str, str], float] = {}
    for stream in dict.fromkeys(cell.data for cell in cells):
        run = [cell for cell in cells if cell.data == stream and cell.values]
        rows = max((cell.rows or 0 for cell in run), default=0)
        whole = [cell for cell in run if cell.rows == rows]
        found |= {(stream, c.algorithm): float(p) for c, p in zip(whole, rankdata([c.mean for c in whole]))}
    return found


def mean_places(cells: list[Cell]) -> dict[str, tuple[float, int]]:
    """Mean place of each algorithm and over how many streams, the best first; those without a place at the end."""
    by_algorithm: dict[str, list[float]] = {cell.algorithm: [] for cell in cells}
    for (_, algorithm), place in places(cells).items():
        by_algorithm[algorithm].append(place)
    means = {a: (sum(p) / len(p) if p else float("inf"), len(p)) for a, p in by_algorithm.items()}
    return dict(sorted(means.items(), key=lambda item: item[1][0]))


def arena_tables(experiment: Experiment, cells: list[Cell]) -> list[str]:
    """Lines of Markdown: for labels and for numbers the placing figure, the other one, seconds and memory."""
    lines = [f"## {experiment.source}, {experiment.place}: {experiment.title}", ""]
    lines += [experiment.about, ""]
    for main, title, other, other_title, digits in TASKS:
        these = [cell for cell in cells if main in cell.figures]
        if these:
            lines += _placed(f"{title} (place) [the board's]", these)
            lines += _plain(other_title, these, _figure(other, digits))
            lines += _plain("seconds of the processor", these, lambda cell: figure(cell.time))
            lines += _plain("memory, MB", these, _memory)
            lines += _first_rows(these)
    failed = [f"{c.algorithm} on {c.data}: {c.error}" for c in cells if not c.values]
    return [*lines, *(["Without a figure: " + "; ".join(failed) + ".", ""] if failed else [])]


def _placed(title: str, cells: list[Cell]) -> list[str]:
    place, means = places(cells), mean_places(cells)

    def shown(cell: Cell) -> str:
        at = place.get((cell.data, cell.algorithm))
        text = f"**{figure(cell.mean)}**" if at == 1 else figure(cell.mean)
        printed = "" if cell.printed is None else f" [{figure(cell.printed.value)}]"
        return text + (STAR if at is None else f" ({at:g})") + printed

    last = {a: ["" if not n else f"{mean:.2f}", str(n)] for a, (mean, n) in means.items()}
    return _table(title, cells, shown, ["mean place", "streams"], last)


def _plain(title: str, cells: list[Cell], shown: Callable[[Cell], str]) -> list[str]:
    place = places(cells)
    return _table(title, cells, lambda c: shown(c) + ("" if (c.data, c.algorithm) in place else STAR), [], {})


def _figure(name: str, digits: int) -> Callable[[Cell], str]:
    return lambda cell: f"{cell.figures[name]:.{digits}f}"


def _memory(cell: Cell) -> str:
    return "" if cell.peak_mb is None else f"{cell.peak_mb:,.0f}"


def _table(
    title: str, cells: list[Cell], shown: Callable[[Cell], str], more: list[str], last: dict[str, list[str]]
) -> list[str]:
    streams = list(dict.fromkeys(cell.data for cell in cells))
    by = {(cell.algorithm, cell.data): shown(cell) for cell in cells}
    head = [title, *streams, *more]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for algorithm in mean_places(cells):
        row = [algorithm, *(by.get((algorithm, stream), "") for stream in streams), *last.get(algorithm, [])]
        lines.append(f"| {' | '.join(row)} |")
    return [*lines, ""]


def _first_rows(cells: list[Cell]) -> list[str]:
    place = places(cells)
    short = [f"{c.algorithm} on {c.data} {c.rows:,}" for c in cells if (c.data, c.algorithm) not in place]
    return [f"{STAR} the first rows only, and so without a place: {', '.join(short)}.", ""] if short else []
