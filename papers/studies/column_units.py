"""When should columns be scaled? ``standardize`` off, on and "auto", on all data sets, beside what the first rows show.

    KERNELSTREAM_DATA=... python papers/studies/column_units.py [--rows 10000] [--sets mg,german]

One pass over raw columns, untuned; mistakes, or the mean squared error over the variance of the target. Streams keep
their order, the other sets come in one random order. The rule of ``standardize="auto"``, in
``kernelstream/estimators/_contract/scaling.py``, is compared with other numbers, and with other statistics of the same
100 rows. Writes papers/studies/results/column_units.md.
"""

from __future__ import annotations

import argparse
import os
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import numpy as np
import scipy.sparse as sp
from default_update import Data, score
from older_sets import STREAMS

import kernelstream as ks
from kernelstream import datasets, engine
from kernelstream.estimators._contract.scaling import APART, apart, column_units, no_moments, units_differ
from kernelstream.features import RandomFourier

RESULT = Path(__file__).parent / "results" / "column_units.md"
OWN_ORDER = (*STREAMS, "airlines2008_excerpt")
SMALL = RandomFourier(n_components=100)
FAMILIES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Feature": (ks.FeatureClassifier, ks.FeatureRegressor),
    "Nystroem": (ks.NystroemClassifier, ks.NystroemRegressor),
    "Budget": (ks.BudgetClassifier, ks.BudgetRegressor),
    "OnlineRidge": (
        lambda **params: ks.OnlineRidgeClassifier(SMALL, **params),
        lambda **params: ks.OnlineRidge(SMALL, **params),
    ),
    "RRF": (ks.RRFClassifier, ks.RRFRegressor),
    "Window": (ks.WindowClassifier, ks.WindowRegressor),
}
FIRST = 100  # rows that decide
ORDERS = 20  # places in a set from which the decision is made, to see how sure it is
MUCH = 0.05
NUMBERS = (0.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 2.0, 3.0, 5.0, 10.0, np.inf)


def load(name: str, rows: int) -> Data:
    """At most ``rows`` rows as they are in the file."""
    data = datasets.load(name)
    n = len(data.y)
    order = np.arange(n) if name in OWN_ORDER else np.random.default_rng(0).permutation(n)
    return Data(data.X[order[:rows]], data.y[order[:rows]], data.task)


def error(kind: Callable[..., Any], data: Data, standardize: Any) -> float:
    est, X = kind(random_state=0), data.X
    if standardize is True:
        X = np.array(X.toarray() if sp.issparse(X) else X, float)
        engine.get("auto").standardize(no_moments(X.shape[1]), X, None)
    if standardize != "auto":
        est.set_params(**({"standardize": False} if "standardize" in est.get_params() else {"gamma": "median"}))
    return score(est, Data(X, data.y, data.task))


def sureness(data: Data) -> float:
    """Share of several runs of 100 rows that decide to scale."""
    starts = np.linspace(0, max(0, len(data.y) - FIRST), ORDERS).astype(int)
    return float(np.mean([units_differ(data.X[start : start + FIRST]) for start in starts]))


def deviations(X: Any) -> np.ndarray:
    X = X.toarray() if sp.issparse(X) else X
    return np.asarray(X, float).std(axis=0)


def effective(units: np.ndarray) -> float:
    """Columns over the number of equal ones that would have such variances."""
    v = units[units > 0] ** 2
    return float(len(v) * (v**2).sum() / v.sum() ** 2)


STATISTICS: dict[str, Callable[[Any], float]] = {
    "units, root mean square over geometric mean": lambda X: apart(column_units(X)),
    "deviations, root mean square over geometric mean": lambda X: apart(deviations(X)),
    "units, largest over median": lambda X: _largest(column_units(X), np.median),
    "units, largest over least": lambda X: _largest(column_units(X), np.min),
    "deviations, columns over their effective number": lambda X: effective(deviations(X)),
}


def _largest(units: np.ndarray, other: Callable[..., Any]) -> float:
    units = units[units > 0]
    return float(units.max() / other(units)) if len(units) else 1.0


# -------------------------------------------------------------------- tables
def set_table(found: list[dict[str, Any]]) -> str:
    head = ["data set", "columns", "ratio", "scaled", *(f"{name}, off → on" for name in FAMILIES), "mean"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for one in sorted(found, key=lambda one: one["ratio"]):
        pairs = [f"{one[f][False]:.4g} → {one[f][True]:.4g}" for f in FAMILIES]
        mean = np.exp(_gain(one).mean()) - 1
        cells = [
            one["set"] + " (CSR)" * one["sparse"],
            str(one["columns"]),
            f"{one['ratio']:.3g}",
            f"{one['sure']:.0%}",
        ]
        lines.append("| " + " | ".join([*cells, *pairs, f"{mean:+.1%}"]) + " |")
    return "\n".join(lines)


def _gain(one: dict[str, Any]) -> np.ndarray:
    """Logarithm of the error with scaling over that without, by family."""
    return np.log([one[f][True] / one[f][False] for f in FAMILIES])


def number_table(found: list[dict[str, Any]]) -> str:
    """Mean error over that without scaling, for every number at which scaling might begin."""
    lines = ["| scale above | " + " | ".join(f"{x:g}" for x in NUMBERS) + " |", "|---|" + "---:|" * len(NUMBERS)]
    for name in FAMILIES:
        gains = np.array([np.log(one[name][True] / one[name][False]) for one in found])
        lines.append(_line(name, gains, np.array([one["ratio"] for one in found])))
    gains = np.array([_gain(one).mean() for one in found])
    lines.append(_line("all", gains, np.array([one["ratio"] for one in found])))
    return "\n".join(lines)


def _line(name: str, gains: np.ndarray, ratios: np.ndarray) -> str:
    means = [np.exp(np.where(ratios > x, gains, 0.0).mean()) for x in NUMBERS]
    best = min(means)
    return f"| {name} | " + " | ".join(f"**{m:.3f}**" if m == best else f"{m:.3f}" for m in means) + " |"


def statistic_table(found: list[dict[str, Any]]) -> str:
    """The best that any number could reach with other statistics."""
    gains = np.array([_gain(one).mean() for one in found])
    lines = ["| statistic | best number | mean error | largest rise |", "|---|---:|---:|---:|"]
    for name in STATISTICS:
        values = np.array([one[name] for one in found])
        order = np.argsort(values)
        means = [gains[values > x].sum() / len(gains) for x in values[order]]
        k = int(np.argmin(means))
        above = values[order[k + 1]] if k + 1 < len(order) else np.inf
        scaled = gains[values > values[order[k]]]
        rise = np.exp(scaled.max()) - 1 if len(scaled) else 0.0
        lines.append(f"| {name} | {values[order[k]]:.3g} to {above:.3g} | {np.exp(means[k]):.3f} | {rise:+.0%} |")
    knows = np.minimum(gains, 0.0).sum() / len(gains)
    lines.append(f"| knowing the outcome | | {np.exp(knows):.3f} | |")
    return "\n".join(lines)


def worse(found: list[dict[str, Any]]) -> str:
    """Sets on which "auto" costs more than ``MUCH`` of an error, with the families."""
    told = []
    for one in sorted(found, key=lambda one: one["set"]):
        for f in FAMILIES:
            best = min(one[f][False], one[f][True])
            if one[f]["auto"] > (1 + MUCH) * best:
                told.append((one["set"], f, one[f]["auto"] / best - 1))
    sets = sorted({name for name, _, _ in told})
    return "; ".join(f"{name} ({', '.join(f'{f} {x:+.0%}' for n, f, x in told if n == name)})" for name in sets)


def report(found: list[dict[str, Any]], rows: int) -> str:
    def mean(how: Any) -> float:
        return float(np.exp(np.mean([np.log(one[f][how] / one[f][False]) for one in found for f in FAMILIES])))

    always, auto = mean(True), mean("auto")
    text = f"""One pass over at most {rows:,} raw rows, streams in their own order, the others in one random order;
        mistakes, or the mean squared error over the variance of the target. *ratio*: root mean square over geometric
        mean of the units of the columns among the first {FIRST} rows, which `standardize="auto"` compares with
        {APART}; *scaled*: share of {ORDERS} runs of {FIRST} rows, from all over the set, that would decide to scale."""
    summary = f"""Over all sets and families the error is {always:.3f} of that of raw columns where columns are always
        scaled, and {auto:.3f} with "auto" (geometric means)."""
    cost = f'"auto" is more than {MUCH:.0%} above the better of the two, on or off, on: {worse(found)}.'
    wrap = lambda t: textwrap.fill(" ".join(t.split()), 120)  # noqa: E731
    return f"""# Columns of different units

Written by `python papers/studies/column_units.py`; the figures are those of that run.

{wrap(text)}

{wrap(summary)}

{wrap(cost)}

{set_table(found)}

## Where to begin

Mean error over that of raw columns if columns are scaled wherever the ratio is above a number.

{number_table(found)}

## Other statistics

The best number for each, chosen with the outcome at hand, so all of these figures flatter; *largest rise*: of the error
of a set that it scales, mean of the families.

{statistic_table(found)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    there = datasets.names()
    found = []
    for name in args.sets.split(",") if args.sets else there:
        data = load(name, args.rows)
        first = data.X[:FIRST]
        one: dict[str, Any] = {"set": name, "columns": data.X.shape[1], "sparse": sp.issparse(data.X)}
        one |= {"ratio": apart(column_units(first)), "sure": sureness(data)}
        one |= {statistic: value(first) for statistic, value in STATISTICS.items()}
        for family, kinds in FAMILIES.items():
            kind = kinds[data.task == "regression"]
            one[family] = {how: error(kind, data, how) for how in (False, True, "auto")}
        found.append(one)
        print(
            name,
            f"{one['ratio']:.3g}",
            {f: {str(k): round(v, 4) for k, v in one[f].items()} for f in FAMILIES},
            flush=True,
        )
    if args.sets:
        print(report(found, args.rows))
    else:
        RESULT.write_text(report(found, args.rows))


if __name__ == "__main__":
    main()
