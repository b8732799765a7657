"""Recipes as they come beside the best of a grid of their steps, on 24 data sets, one pass each.

    KERNELSTREAM_DATA=... python papers/studies/defaults.py [--rows 5000] [--sets mg,german] [--only norma,rbp]

Mistakes of the forecasts before each update, or their mean squared error over the variance of the target; columns
standardised, rows in random order (elec2 in its own). The grid goes over the step or the regulariser, in regression in
units of the target's deviation; sizes (budget, features) and the bandwidth are those of the default.
Lines are added to papers/studies/results/defaults.jsonl (a line of the same recipe, set and rows takes the place of an
older one; ``--no-grid`` measures the default alone and keeps the older line's grid), and defaults.json beside it is
made of them, from which ``tools/box.py`` writes the table of docs/default_update.md.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import numpy as np
from default_update import BINARY, MULTICLASS, REGRESSION, Data, load, score

from kernelstream import zoo

RESULTS = Path(__file__).parent / "results"
LINES = RESULTS / "defaults.jsonl"
SETS = [*BINARY, *MULTICLASS, *REGRESSION]
STEPS = (0.03, 0.1, 0.3, 1.0)
LAMS = (1e-5, 1e-4, 1e-3, 1e-2)
SQUARED_LAMS = (1e-4, 1e-3, 5e-3, 2e-2, 1e-1)  # where the loss has no bound


def task_of(name: str) -> str:
    return "regression" if name in REGRESSION else "multiclass" if name in MULTICLASS else "binary"


@functools.lru_cache(maxsize=1)
def loaded(name: str, rows: int) -> Data:
    """The set that a process is at: its recipes follow each other."""
    return load(name, rows)


def of(name: str, values: tuple[float, ...], **more: Any) -> list[dict[str, Any]]:
    return [{name: value, **more} for value in values]


def grids(task: str) -> dict[str, list[dict[str, Any]]]:
    """Parameters to try, for every recipe that has some."""
    number = task == "regression"
    units = {"center": "standard"} if number else {}
    lams = SQUARED_LAMS if number else LAMS
    found = {name: of("lam", lams) for name in ("pegasos", "bsgd_merge", "bsgd_project", "dualsgd")}
    found["norma"] = of("eta", STEPS, **units)
    found["bogd"] = of("eta", (0.05, 0.1, 0.2, 0.5), **units)
    found["spa"] = of("eta", STEPS, **units)
    found |= {name: of("C", STEPS, **units) for name in ("pa1", "pa2", "bpas", "bpann", "bpap")}
    if number:  # for labels the step changes nothing but the scale
        perceptrons = ("perceptron", "rbp", "forgetron", "projectron")
        found |= {name: of("eta", STEPS, **units) for name in perceptrons}
    else:
        found["bsgd_remove"] = of("lam", lams)
        found["oskl"] = of("eta", STEPS)
        found["pros_n_kons"] = [
            {"alpha": alpha, "beta": beta, "budget": 50} for alpha in (0.1, 1.0, 10.0) for beta in (0.3, 1.0)
        ]
    return found


def error(name: str, data: Data, **params: Any) -> float:
    try:
        return score(zoo.make(name, task=data.task, random_state=0, **params), data)
    except ValueError:  # beyond the range of floats
        return float("inf")


def online(name: str, data: Data, grid: bool) -> tuple[float, float, dict[str, Any]]:
    """Error of the default, the least of the grid, and where that is: NaN and nothing without the ``grid``."""
    if not grid:
        return error(name, data), float("nan"), {}
    tried = [(error(name, data, **params), params) for params in grids(data.task)[name]]
    best, params = min(tried, key=lambda pair: pair[0])
    return error(name, data), best, {key: value for key, value in params.items() if key != "center"}


def recorded() -> list[dict[str, Any]]:
    """The lines of the file, less those of tasks that a recipe has given up."""
    lines = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    return [line for line in lines if line["task"] not in zoo.get(line["recipe"]).otherwise]


def keep(line: dict[str, Any], grid: bool) -> None:
    """Into the file, in the place of an older line about the same; without a grid, beside the one of that line."""
    same = ("recipe", "set", "rows")
    lines = recorded()
    older = [old for old in lines if all(old[key] == line[key] for key in same)]
    if not grid:
        if not older:
            raise SystemExit(f"no grid for {line['recipe']} on {line['rows']} rows of {line['set']} in {LINES}")
        line |= {key: older[0][key] for key in ("best", "parameters")}
    lines = [old for old in lines if old not in older] + [line]
    LINES.write_text("".join(json.dumps(each) + "\n" for each in lines))


def show() -> dict[str, Any]:
    """The table: a recipe and task a row, over the sets."""
    lines = recorded()
    head = ["recipe", "task", "sets", "within 20 % of the best of a grid", "mean ratio", "worst", "where"]
    rows = []
    for recipe in sorted({line["recipe"] for line in lines}):
        for label, regression in (("labels", False), ("numbers", True)):
            own = [line for line in lines if line["recipe"] == recipe and (line["task"] == "regression") == regression]
            if not own:
                continue
            ratios = np.array([line["default"] / line["best"] for line in own])
            worst = own[int(ratios.argmax())]
            rows.append([
                f"`{recipe}`", label, f"{len(own)}", f"{int((ratios <= 1.2).sum())}",
                f"{np.exp(np.log(ratios).mean()):.2f}", f"{ratios.max():.2f}",
                f"{worst['set']}: {worst['default']:.3f}, best {worst['best']:.3f}",
            ])  # fmt: skip
    record = {"head": head, "rows": rows}
    (RESULTS / "defaults.json").write_text(json.dumps(record, indent=1) + "\n")
    return record


def measured(name: str, recipe: str, rows: int, grid: bool) -> dict[str, Any]:
    """A line: a recipe's default on a set, beside the best of its grid."""
    warnings.simplefilter("ignore")
    data = loaded(name, rows)
    found = online(recipe, data, grid)
    line = {"recipe": recipe, "set": name, "rows": len(data.y), "task": data.task}
    return line | dict(zip(("default", "best", "parameters"), found, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    parser.add_argument("--only", help="recipes, separated by commas; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="recipes and sets that are measured at once, a core each")
    parser.add_argument("--no-grid", action="store_true", help="the defaults again, beside the best of the older lines")
    args = parser.parse_args()
    grid = not args.no_grid
    work = [
        (name, recipe, args.rows, grid)
        for name in (args.sets.split(",") if args.sets else SETS)
        for recipe in grids(task_of(name))
        if not args.only or recipe in args.only.split(",")
    ]
    with ProcessPoolExecutor(max(1, args.jobs)) as pool:
        for done in as_completed([pool.submit(measured, *each) for each in work]):
            keep(done.result(), grid)
            print(json.dumps(done.result()), flush=True)
    for row in show()["rows"]:
        print(" | ".join(row))


if __name__ == "__main__":
    main()
