"""Pictures of a page, as SVG text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from ._table import Cell

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#e08e0b", "#7b4fa3", "#00897b", "#8c564b", "#5f6b7a", "#c2185b", "#9e9d24",
           "#3949ab", "#bf6f30")  # fmt: skip


def _figure(sets: list[str], draw: Callable[[Any, str], None], xlabel: str, ylabel: str) -> str:
    """One panel per data set, one legend for all."""
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("the page's pictures need matplotlib: pip install 'kernelstream[plots]'") from None
    import matplotlib

    columns = min(2, len(sets))
    lines = -(-len(sets) // columns)
    with matplotlib.rc_context({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "kernelstream"}):
        figure = Figure(figsize=(4.6 * columns, 3.0 * lines + 0.7), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for ax, name in zip(axes, sets):
            draw(ax, name)
            ax.set_title(name, fontsize=10)
            ax.set_xlabel(xlabel)
            ax.set_ylabel(ylabel)
            ax.grid(alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
        for ax in axes[len(sets) :]:
            ax.set_visible(False)
        handles: dict[str, Any] = {}
        for ax in axes[: len(sets)]:
            for handle, label in zip(*ax.get_legend_handles_labels()):
                handles.setdefault(label, handle)
        if handles:
            figure.legend(
                handles.values(),
                handles.keys(),
                loc="outside lower center",
                ncols=2 * columns,
                frameon=False,
                fontsize=8,
            )
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    picture = re.sub(r"^.*?(<svg)", r"\1", out.getvalue(), flags=re.S)
    return re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.S)


def _colours(cells: list[Cell]) -> dict[str, str]:
    labels = dict.fromkeys(cell.algorithm for cell in cells)
    return {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(labels)}


def _limits(ax: Any, values: list[float]) -> None:
    """Limits that show where the learners differ; values far off are cut."""
    ordered = sorted(values)
    low, high = ordered[0], ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    pad = 0.15 * (high - low) or 0.05 * abs(high) or 1.0
    ax.set_ylim(low - pad, high + 2 * pad)


def over_rows(cells: list[Cell], unit: str, clock: bool = False) -> str:
    """The running measure over rows, a line per algorithm; or over seconds, of which every row has an equal part."""
    colours = _colours(cells)

    def draw(ax: Any, name: str) -> None:
        shown = [cell for cell in cells if cell.data == name and cell.curve]
        for cell in shown:
            rows, values = cell.curve or ([], [])
            at = [cell.time * row / (cell.rows or rows[-1]) for row in rows] if clock else rows
            ax.plot(at, values, color=colours[cell.algorithm], label=cell.algorithm, lw=1.4)
        late = [v for cell in shown for v in (cell.curve or ([], []))[1][len((cell.curve or ([], []))[1]) // 4 :]]
        if late and min(late) > 0 and max(late) > 100 * min(late):
            ax.set_xscale("log")
            ax.set_yscale("log")
        elif late:
            _limits(ax, late)
        if clock:  # learners differ by factors, not by seconds
            ax.set_xscale("log")

    return _figure(list(dict.fromkeys(c.data for c in cells if c.curve)), draw, "seconds" if clock else "rows", unit)


def over_time(cells: list[Cell], unit: str, axis: str = "seconds") -> str:
    """The measure against seconds, or against a swept parameter; the points of a sweep are joined."""
    colours = _colours(cells)
    cells = cells if axis == "seconds" else [cell for cell in cells if axis in cell.point]

    def place(cell: Cell) -> float:
        return max(cell.time, 1e-4) if axis == "seconds" else float(cell.point[axis])

    def draw(ax: Any, name: str) -> None:
        mine = [cell for cell in cells if cell.data == name and cell.values]
        for label in dict.fromkeys(cell.algorithm for cell in mine):
            line = [cell for cell in mine if cell.algorithm == label]
            ax.plot([place(c) for c in line], [c.mean for c in line], "o-", color=colours[label], label=label, ms=4,
                    lw=1.2)  # fmt: skip
        seen = [place(cell) for cell in mine]
        if seen and max(seen) > 10 * min(seen):  # a smaller range has no tick to show
            ax.set_xscale("log")

    return _figure(list(dict.fromkeys(c.data for c in cells if c.values)), draw, axis.replace("_", " "), unit)


def memory(cells: list[Cell]) -> str:
    """Peak memory beyond loading the data, a bar per algorithm."""
    colours = _colours(cells)

    def draw(ax: Any, name: str) -> None:
        mine = [cell for cell in cells if cell.data == name]
        ax.barh(
            [c.algorithm for c in mine], [c.peak_mb or 0.0 for c in mine], color=[colours[c.algorithm] for c in mine]
        )
        ax.invert_yaxis()

    return _figure(list(dict.fromkeys(c.data for c in cells)), draw, "peak memory beyond loading the data, MB", "")
