"""The table of ``bench``, as the papers print it, and its curves."""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelstream.cli.base import csv_text, print_json, print_table
from kernelstream.cli.targets import kind_of
from kernelstream.evaluate.metrics import BASIC
from kernelstream.progress import size_text

HEADINGS = (
    "terms: support vectors, or else weights for each output, of all members; "
    "memory: arrays of the model while it learns (its file leaves out zeros, and is smaller)"
)


def show(args: argparse.Namespace, task: str, baselines: list[dict[str, Any]], lines: list[Any]) -> None:
    """Print what was found, the best first, and write the curves."""
    metric = BASIC[kind_of(task)][0]
    found = [_numbers(metric, about["algorithm"], about["errors"], about["rows"]) for about in baselines]
    found += [_numbers_of(metric, line) for line in lines]
    found.sort(key=lambda one: one[metric])
    if args.curve:
        _draw(args.curve, metric, [line for line in lines if line.results])
    rows = max(one["rows"] for one in found)
    if args.json:
        print_json({"task": task, "rows": rows, "results": found})
    elif args.table == "csv":
        names = list(dict.fromkeys(name for one in found for name in one))
        print(csv_text([names, *([_plain(one.get(name)) for name in names] for one in found)]), end="")
    else:
        _print(args.table, task, rows, metric, found)


def _numbers(metric: str, name: str, errors: Sequence[float], rows: int) -> dict[str, Any]:
    about = {"algorithm": name, **_mean(metric, errors), "orders": len(errors), "rows": rows}
    return about | {"rows_per_second": None, "model_bytes": 0}


def _numbers_of(metric: str, line: Any) -> dict[str, Any]:
    results = line.results
    about = _numbers(metric, line.name, [result.metrics[metric] for result in results], results[0].n_rows)
    more = {name: statistics.fmean(r.metrics[name] for r in results) for name in results[0].metrics if name != metric}
    seconds = [result.seconds for result in results]
    sizes = [size for size in line.sizes if size is not None]
    about |= {
        **more,
        **(_mean(f"test_{metric}", line.tests) if line.tests else {}),
        **(_mean("size", sizes) if sizes else {}),
        **_mean("seconds", seconds),
        "rows_per_second": statistics.fmean(result.rows_per_second for result in results),
        "model_bytes": round(statistics.fmean(result.model_bytes for result in results)),
    }
    return about | ({"chosen": line.chosen} if line.chosen else {})


def _mean(name: str, values: Sequence[float]) -> dict[str, float]:
    """Mean and, of several, standard deviation."""
    spread = {f"{name}_std": statistics.stdev(values)} if len(values) > 1 else {}
    return {name: statistics.fmean(values), **spread}


# ---------------------------------------------------------------- the table


def _print(style: str, task: str, rows: int, metric: str, found: list[dict[str, Any]]) -> None:
    tested = any(f"test_{metric}" in one for one in found)
    chosen = any("chosen" in one for one in found)
    orders = max(one["orders"] for one in found)
    word = metric.replace("_", " ")
    headings = [
        "algorithm",
        word,
        *([f"test {word}"] * tested),
        "terms",
        "seconds",
        "rows/s",
        "memory",
        *["chosen"] * chosen,
    ]
    table = []
    for one in found:
        cut = "" if one["rows"] == rows else f" (first {one['rows']:,} rows)"
        cut += "" if one["orders"] == orders else f" ({one['orders']} of {orders} orders)"
        line = [one["algorithm"] + cut, _spread(one, metric), *([_spread(one, f"test_{metric}")] * tested)]
        line += [f"{one['size']:,.0f}" if "size" in one else "", _spread(one, "seconds", 3)]
        line += ["" if one["rows_per_second"] is None else f"{one['rows_per_second']:,.0f}"]
        line += [size_text(one["model_bytes"]) if one["model_bytes"] else ""]
        line += [", ".join(f"{k} {v}" for k, v in one.get("chosen", {}).items())] * chosen
        table.append(line)
    title = f"{task}, {rows:,} rows" + (f", mean ± standard deviation over {orders} orders" if orders > 1 else "")
    if style == "text":
        print_table(title, headings, table, right=headings[1:])
        print(f"# {HEADINGS}")
    elif style == "markdown":
        print(f"{title}\n")
        print(f"| {' | '.join(headings)} |\n|---|{'---:|' * (len(headings) - 1)}")
        print("\n".join(f"| {' | '.join(line)} |" for line in table))
    else:
        print(f"% {title}\n\\begin{{tabular}}{{l{'r' * (len(headings) - 1)}}}\n\\hline")
        body = [headings, *table]
        print("\n\\hline\n".join([_latex(body[0]), "\n".join(map(_latex, body[1:]))]) + "\n\\hline\n\\end{tabular}")


def _spread(one: dict[str, Any], name: str, digits: int = 4) -> str:
    """Mean ± deviation: the mean with ``digits`` significant digits, the deviation with as many decimals as it has."""
    if name not in one:
        return ""
    mean, std = one[name], one.get(f"{name}_std")
    size = math.floor(math.log10(abs(mean))) if mean and math.isfinite(mean) else 0
    places = min(max(digits - 1 - size, 0), 9)
    if std is None:
        return f"{mean:.{digits}g}"
    return f"{mean:.{places}f} ± {std:.{places}f}"


def _latex(cells: Sequence[str]) -> str:
    escaped = (cell.replace("_", "\\_").replace("%", "\\%").replace("±", "$\\pm$") for cell in cells)
    return " & ".join(escaped) + " \\\\"


def _plain(value: Any) -> Any:
    return "" if value is None else " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else value


# ---------------------------------------------------------------- curves


def _draw(path: str, metric: str, lines: list[Any]) -> None:
    """Error against rows and against seconds, means over the orders."""
    results = [_mean_result(line.results, metric) for line in lines]
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        rows: list[list[Any]] = [["algorithm", "rows", "seconds", metric]]
        for result in results:
            curve = result.curves[metric]
            columns = (curve.rows.tolist(), result.time.total.tolist(), curve.value.tolist())
            rows += [[result.name, *point] for point in zip(*columns, strict=True)]
        with open(path, "w", encoding="utf-8") as file:
            file.write(csv_text(rows))
        return
    from kernelstream import plots

    made, axes = plots.figure(2)
    for ax, over in zip(axes, ("rows", "seconds"), strict=True):
        plots.curves(results, metric=metric, over=over, ax=ax)
    plots.save(made, path)


def _mean_result(results: list[Any], metric: str) -> Any:
    """One result with the mean curves of several, whose points are at the same rows."""
    first = results[0]

    def mean(curves: list[Any]) -> Any:
        return replace(curves[0], total=np.mean([curve.total for curve in curves], axis=0))

    curves = {metric: mean([result.curves[metric] for result in results])}
    return replace(first, curves=curves, time=mean([result.time for result in results]))
