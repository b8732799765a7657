"""The page: every experiment's table, pictures and the command to run it again, in one file without links outside."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ._arena_table import arena_tables
from ._experiment import Experiment, load, names
from ._records import Records
from ._table import Cell, best, number, table, with_deviation, worse
from ._where import where

UNITS = {
    "mistakes": "mistakes, %",
    "accuracy": "accuracy, %",
    "score": "accuracy or R², %",
    "mse": "squared error",
    "rmse": "RMSE",
    "regret": "regret",
    "relative": "relative error",
    "seconds": "seconds",
    "arena": "log-loss or RMSE",
}

FEW = "A mark [4/10] is at figures for which 4 of the 10 declared orders ran."

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; --mark: #c33; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
nav ul { columns: 18rem; padding-left: 1.2rem; } nav li { break-inside: avoid; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
td small, .soft { color: var(--soft); } .behind { color: var(--mark); }
figure { margin: 1rem 0; background: #fff; border-radius: .4rem; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; display: block; }
@media (max-width: 44rem) { figure.wide svg { max-width: none; width: 44rem; } }
code { font-size: .85rem; background: #8882; padding: .1rem .3rem; border-radius: .2rem; overflow-wrap: anywhere; }
"""


def write(folder: str | Path, quick: bool = False, own: Iterable[Experiment] = ()) -> Path:
    """Write ``index.html``, ``tables.md`` and ``where.md`` from the records in a folder, and return the page's path.

    Parameters
    ----------
    folder : path
    quick : bool, default False
        The records are those of a quick run.
    own : experiments, optional
        From files of one's own, beside those that come with the package.
    """
    folder = Path(folder)
    found = _found(folder, quick, own)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts(folder, found, quick).items():
        (folder / name).write_text(text, encoding="utf-8")
    page = folder / "index.html"
    page.write_text(_page(found, quick), encoding="utf-8")
    return page


def texts(folder: str | Path, found: list[Any] | None = None, quick: bool = False) -> dict[str, str]:
    """The pages in Markdown, by name; "where.md" is about whole runs only."""
    found = _found(Path(folder), quick) if found is None else found
    return {"tables.md": _markdown(found)} | ({} if quick else {"where.md": where({e.name: c for e, c, _ in found})})


def _found(folder: Path, quick: bool, own: Iterable[Experiment] = ()) -> list[tuple[Experiment, list[Cell], Records]]:
    """Experiments that have been run, with their cells and records."""
    found = []
    for known in [*map(load, names()), *own]:
        records = Records(folder, known.name)
        if len(records):
            experiment = known.quick() if quick else known
            cells = table(experiment, records)
            if cells:
                found.append((experiment, cells, records))
    return found


# ---------------------------------------------------------------------------------------------------- numbers


def seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _heading(experiment: Experiment, name: str) -> str:
    """Name of a data set above its column, whether its rows kept their order, or are fewer than the paper's."""
    ordered = any(d.name == name and d.order == "file" for d in experiment.data)
    return name + ", in its order" * ordered + ", reduced" * (name in experiment.reduced)


def _paper(cell: Cell, measure: str) -> str:
    return "" if cell.printed is None else with_deviation(cell.printed.value, cell.printed.std or None, measure)


# ---------------------------------------------------------------------------------------------------- the page


def _page(found: list[tuple[Experiment, list[Cell], Records]], quick: bool) -> str:
    esc = html.escape
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<link rel='icon' href='data:,'><title>kernelstream: results</title><style>{STYLE}</style>",
        "<h1>kernelstream: the papers' results, computed again</h1>",
        "<p>Mean ± standard deviation over random orders of the rows (over seeds, where a set keeps its order); the "
        "best of each column in bold; the paper's own figure beside ours. All of it is written from the raw runs "
        f"beside it (<code>*.jsonl</code>). {FEW}</p>",
    ]
    if quick:
        parts.append(
            "<p><b>A quick run: few rows and repetitions. It shows that all of it runs, not what it finds.</b></p>"
        )
    parts.append(_behind(found))
    parts.append("<nav><ul>")
    parts += [f"<li><a href='#{e.name}'>{esc(e.source)}, {esc(e.place)}</a>: {esc(e.title)}</li>" for e, _, _ in found]
    parts.append("</ul></nav>")
    for experiment, cells, _ in found:
        parts.append(_section(experiment, cells))
    parts.append(_machines(found))
    return "\n".join(parts) + "</html>\n"


def _behind(found: list[tuple[Experiment, list[Cell], Records]]) -> str:
    """Cells worse than the paper by more than three standard errors, each with its explanation."""
    esc = html.escape
    items, compared = [], 0
    for experiment, cells, _ in found:
        compared += sum(cell.printed is not None and bool(cell.values) for cell in cells)
        for cell in worse(experiment, cells):
            why = experiment.reason(cell.data, cell.algorithm, "behind") or "Not explained yet."
            items.append(
                f"<li><a href='#{experiment.name}'>{esc(experiment.place)}</a>, {esc(cell.data)}, "
                f"{esc(cell.algorithm)}: {cell.shown(experiment.measure)} against "
                f"{_paper(cell, experiment.measure)}. {esc(why)}</li>"
            )
    head = (
        f"<h2>Behind the papers</h2><p>{len(items)} of {compared} cells that a paper printed are worse than it by more "
    )
    head += "than three standard errors of the difference.</p>"
    return head + (f"<ul class='behind-list'>{''.join(items)}</ul>" if items else "")


def _section(experiment: Experiment, cells: list[Cell]) -> str:
    esc = html.escape
    parts = [
        f"<section id='{experiment.name}'>",
        f"<h2>{esc(experiment.source)}, {esc(experiment.place)}: {esc(experiment.title)}</h2>",
        f"<p>{esc(experiment.about)}</p>",
        f"<p><code>kernelstream reproduce {experiment.name}</code></p>",
    ]
    plain = [cell for cell in cells if not cell.point]
    swept = [cell for cell in cells if cell.point]
    if plain:
        parts.append(_html_table(experiment, plain))
    figure = "<figure class=wide>" if len({cell.data for cell in cells}) > 1 else "<figure>"
    parts += [f"{figure}{picture}</figure>" for picture in _pictures(experiment, plain, swept)]
    if swept:
        parts.append(_sweep_table(experiment, swept))
    return "\n".join(parts) + "</section>"


def _html_table(experiment: Experiment, cells: list[Cell]) -> str:
    esc, measure = html.escape, experiment.measure
    sets = list(dict.fromkeys(cell.data for cell in cells))
    paper = {d for d in sets if any(c.data == d and c.printed for c in cells)}
    memory = any(cell.peak_mb is not None for cell in cells)
    top = best(experiment, cells)
    late = {(c.data, c.algorithm) for c in worse(experiment, cells)}
    width = {d: 3 + (d in paper) + memory for d in sets}
    head = "".join(f"<th colspan='{width[d]}'>{esc(_heading(experiment, d))}</th>" for d in sets)
    sub = "".join(
        f"<th>{UNITS[measure]}</th>{'<th>paper</th>' if d in paper else ''}<th>s</th><th>size</th>"
        f"{'<th>MB</th>' if memory else ''}"
        for d in sets
    )
    rows = []
    for label in dict.fromkeys(cell.algorithm for cell in cells):
        row = [f"<td>{esc(label)}</td>"]
        for d in sets:
            cell = next((c for c in cells if c.data == d and c.algorithm == label), None)
            if cell is None:
                row.append("<td></td>" * width[d])
                continue
            text = cell.shown(measure)
            if cell.values and cell.mean == top.get(d):
                text = f"<b>{text}</b>"
            note = f" title='{esc(cell.error, quote=True)}'" if cell.error else ""
            row.append(f"<td{note}{' class=behind' if (d, label) in late else ''}>{text}</td>")
            if d in paper:
                row.append(f"<td><small>{_paper(cell, measure)}</small></td>")
            row.append(f"<td>{seconds(cell.time) if cell.values else ''}</td>")
            row.append(f"<td>{'' if cell.size is None else f'{cell.size:,.0f}'}</td>")
            if memory:
                row.append(f"<td>{'' if cell.peak_mb is None else f'{cell.peak_mb:,.0f}'}</td>")
        rows.append(f"<tr>{''.join(row)}</tr>")
    runs = sorted({len(c.values) for c in cells if c.values})
    said = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    failed = sorted({f"{c.algorithm}: {c.error}" for c in cells if c.error})
    foot = "".join(f"<p class='soft'>{esc(line)}</p>" for line in failed)
    return (
        f"<div class='scroll'><table><thead><tr><th></th>{head}</tr><tr><th></th>{sub}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div><p class='soft'>{said} orders.</p>{foot}"
    )


def _sweep_table(experiment: Experiment, cells: list[Cell]) -> str:
    esc, measure = html.escape, experiment.measure
    rows = [
        f"<tr><td>{esc(c.data)}</td><td>{esc(c.algorithm)}</td>"
        f"<td>{esc(', '.join(f'{k} {v:g}' for k, v in c.point.items()))}</td>"
        f"<td>{c.shown(measure)}</td><td>{seconds(c.time) if c.values else ''}</td></tr>"
        for c in cells
    ]
    return (
        "<details><summary>All points</summary><div class='scroll'><table><thead><tr><th>data</th><th>algorithm</th>"
        f"<th>point</th><th>{UNITS[measure]}</th><th>s</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _pictures(experiment: Experiment, plain: list[Cell], swept: list[Cell]) -> Iterable[str]:
    from ._pictures import memory, over_rows, over_time

    unit = UNITS[experiment.measure]
    if any(cell.curve for cell in plain):
        yield over_rows(plain, unit)
        if experiment.kind == "online":
            yield over_rows(plain, unit, clock=True)
    points = swept + ([cell for cell in plain if cell.values] if swept else [])
    if points:
        yield over_time(points, unit, experiment.axis)
    elif sum(bool(c.values) for c in plain) > 2:
        yield over_time([c for c in plain if c.values], unit)
    if any(cell.peak_mb is not None for cell in plain):
        yield memory([c for c in plain if c.peak_mb is not None])


def _machines(found: list[tuple[Experiment, list[Cell], Records]]) -> str:
    def esc(value: Any) -> str:
        return html.escape(str(value))

    seen: dict[str, dict[str, Any]] = {}
    for _, _, records in found:
        for machine in records.environments():
            seen[str(machine)] = machine
    lines = []
    for machine in seen.values():
        versions = ", ".join(f"{package} {version}" for package, version in machine["versions"].items())
        lines.append(
            f"<li>{esc(machine['processor'])} ({esc(machine['machine'])}), {esc(machine['cores'])} cores, "
            f"Python {esc(machine['python'])}; {esc(versions)}</li>"
        )
    return f"<h2>Machines and versions</h2><ul>{''.join(lines)}</ul>"


# ---------------------------------------------------------------------------------------------------- Markdown


def _markdown(found: list[tuple[Experiment, list[Cell], Records]]) -> str:
    """The same tables for a README: a line per algorithm, ours (paper's) per data set."""
    parts = ["# Results", "", f"Written by `kernelstream reproduce` from the raw runs beside this file. {FEW}", ""]
    for experiment, cells, _ in found:
        if cells:
            title, *rest = (arena_tables if experiment.kind == "arena" else markdown_table)(experiment, cells)
            parts += [title, *([] if experiment.kind == "arena" else ["", experiment.about]), *rest]
    return "\n".join(parts) + "\n"


def markdown_table(experiment: Experiment, cells: list[Cell]) -> list[str]:
    """Lines of a Markdown table: mean ± std, the best in bold; beside it the paper's mean, or a peer's seconds.

    Every point of a sweep has a line of its own.
    """
    measure = experiment.measure
    sets = list(dict.fromkeys(cell.data for cell in cells))
    top = best(experiment, cells)
    lines = [f"## {experiment.source}, {experiment.place}: {experiment.title}", ""]
    heads = [_heading(experiment, d) for d in sets]
    lines += [f"| {UNITS[measure]} | {' | '.join(heads)} |", f"|---|{'---:|' * len(sets)}"]
    for label in dict.fromkeys(map(_line, cells)):
        row = []
        for d in sets:
            cell = next((c for c in cells if c.data == d and _line(c) == label), None)
            if cell is None or not cell.values:
                row.append("")
                continue
            text = cell.shown(measure)
            text = f"**{text}**" if cell.mean == top.get(d) else text
            beside = f" ({number(cell.printed.value, measure)})" if cell.printed else ""
            row.append(text + (f", {seconds(cell.time)} s" if experiment.source == "peers" else beside))
        lines.append(f"| {label} | {' | '.join(row)} |")
    return [*lines, ""]


def _line(cell: Cell) -> str:
    """What a line is called: the algorithm, and the point of a sweep."""
    return ", ".join([cell.algorithm, *(f"{name} {value:g}" for name, value in cell.point.items())])
