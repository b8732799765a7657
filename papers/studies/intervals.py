"""Intervals that know the row: coverage in every tenth of the forecasts, and widths beside those of one width for all.

    python papers/studies/intervals.py --jobs 2 --out intervals.json --write

Streams are the regression sets in the folder ``KERNELSTREAM_DATA``, in the order of their files, up to 25,000 rows, and
simulations y = f(x) + s(x) e; the model is the default learner, and around online ridge regression the wrapper. Tables
are held-out rows after `fit` (80 % of 12,000 random rows to learn, seeds 0 to 2), and the next 500 rows of a stream,
eight times. "One width" is `IntervalTracker` on the same forecasts: one half-width for all rows at a time, as intervals
had before; of a table, the best one with hindsight. The constants of the quantiles were chosen, among some seventy
settings, for the sets marked with a star and the simulations; the figures of the other sets were seen with them.
Results are added to those in the file; what is there is not computed again. ``--write`` makes the page
``results/intervals.md`` of it, and the table in docs/trust.md.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # a core for each job

import numpy as np  # noqa: E402

from kernelstream import KernelRegressor, OnlineRidge, datasets  # noqa: E402
from kernelstream.evaluate import crps  # noqa: E402
from kernelstream.trust import IntervalTracker, WithIntervals  # noqa: E402

CHOSEN = ("abalone", "airlines2008_excerpt", "california", "casp", "diamonds", "mg", "parkinsons")
JUDGED = ("ailerons", "cadata", "cpusmall", "fifa", "fried", "housing", "kings_county")
SIMULATED = (
    "even noise",
    "noise of the forecast",
    "noise of a column",
    "noise of a range",
    "skewed noise",
    "drift of the noise",
)
COVERAGES = (0.5, 0.8, 0.9)
HUNDRED = (np.arange(100) + 0.5) / 100
ASKED = [*HUNDRED, *(0.5 + side * c / 2 for c in COVERAGES for side in (-1, 1))]
WINDOW = 5000


def simulated(name: str, n: int = 20_000, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 4))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    e = rng.gamma(1.0, 1.0, n) - 1 if name == "skewed noise" else rng.normal(size=n)
    s = {
        "even noise": lambda: np.full(n, 0.3),
        "noise of the forecast": lambda: 0.1 + 0.3 * np.maximum(f + 2, 0),
        "noise of a column": lambda: 0.3 * np.exp(X[:, 2]),
        "noise of a range": lambda: np.where(np.abs(X[:, 3]) < 0.5, 1.0, 0.1),
        "skewed noise": lambda: 0.2 + 0.3 * np.abs(X[:, 0]),
        "drift of the noise": lambda: np.where(np.arange(n) // 3000 % 2, 1.0, 0.2) * np.exp(0.5 * X[:, 2]),
    }[name]()
    return X, f + s * e


def rows_of(name: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    if name in SIMULATED:
        return simulated(name)
    X, y = datasets.load(name, return_X_y=True)
    return np.asarray(X[:most], np.float64), np.asarray(y[:most], np.float64)


def tenths(forecast: np.ndarray, held: np.ndarray) -> list[float]:
    parts = np.array_split(np.argsort(forecast, kind="stable"), 10)
    return [float(held[part].mean()) for part in parts]


def compared(forecast: np.ndarray, y: np.ndarray, new: np.ndarray, old: dict[float, np.ndarray]) -> dict[str, Any]:
    """Figures of the quantiles asked (n, 106), and of half-widths ``old`` by coverage."""
    out: dict[str, Any] = {"rows": len(y), "crps": float(crps(y, new[:, :100]).mean())}
    spread = np.stack([np.sign(tau - 0.5) * at(old, abs(2 * tau - 1)) for tau in HUNDRED], axis=1)
    out["crps of one width"] = float(crps(y, forecast[:, None] + spread).mean())
    for i, c in enumerate(COVERAGES):
        low, high = new[:, 100 + 2 * i], new[:, 101 + 2 * i]
        held = (low <= y) & (y <= high)
        out[f"tenths {c}"] = tenths(forecast, held)
        out[f"tenths of one width {c}"] = tenths(forecast, np.abs(y - forecast) <= old[c])
        out[f"width {c}"] = float((high - low).mean() / (2 * old[c]).mean())
        out[f"windows {c}"] = [float(held[a : a + WINDOW].mean()) for a in range(0, len(y) - WINDOW + 101, WINDOW)]
    return out


def at(half: dict[float, np.ndarray], coverage: float) -> np.ndarray:
    """Half-widths of any coverage, between those known."""
    known = sorted(half)
    if coverage <= known[0]:
        return half[known[0]] * coverage / known[0]
    i = min(int(np.searchsorted(known, coverage)), len(known) - 1)
    part = np.log1p(-coverage) - np.log1p(-known[i - 1])
    part /= np.log1p(-known[i]) - np.log1p(-known[i - 1])
    return (1 - part) * half[known[i - 1]] + part * half[known[i]]


def stream(name: str, learner: str, most: int) -> dict[str, Any]:
    X, y = rows_of(name, most)
    ridge = WithIntervals(OnlineRidge(standardize=True, random_state=0))
    model: Any = ridge if learner == "ridge" else KernelRegressor(size=learner, random_state=0)
    forecast, new = model.learn_quantiles(X, y, quantiles=ASKED)
    one = IntervalTracker()
    errors = np.abs(y - forecast)
    half = one._pass(errors)
    first = 100 if learner != "ridge" else 1  # rows of the warm-up
    old = {float(c): half[first:, i] for i, c in enumerate(one.levels)}
    return compared(forecast[first:], y[first:], new[first:], old)


def table(name: str, seed: int, most: int) -> dict[str, Any]:
    """Held-out rows after ``fit``."""
    X, y = rows_of(name, 10**9)
    some = np.random.default_rng(seed).permutation(len(y))[:most]
    X, y, cut = X[some], y[some], len(some) * 4 // 5
    model = KernelRegressor(random_state=seed).fit(X[:cut], y[:cut])
    forecast, new = model.predict(X[cut:]), model.predict_quantiles(X[cut:], ASKED)
    errors = np.abs(y[cut:] - forecast)
    best = {c: np.full(len(errors), np.quantile(errors, c)) for c in (0.5, 0.8, 0.9, 0.95, 0.99)}
    return {"left out": int(model.state_["intervals/o0/size"][0])} | compared(forecast, y[cut:], new, best)


def ahead(name: str, shuffled: bool, most: int) -> dict[str, Any]:
    """The next 500 rows of a stream, eight times: share of the targets in intervals of the table."""
    X, y = rows_of(name, most)
    if shuffled:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
    model, held = KernelRegressor(size="small", random_state=0), {c: [] for c in COVERAGES}
    cuts = np.linspace(len(y) // 3, len(y) - 500, 8).astype(int)
    start = 0
    for cut in cuts:
        model.partial_fit(X[start:cut], y[start:cut])
        start = cut
        for c in COVERAGES:
            low, high = model.predict_interval(X[cut : cut + 500], c)
            held[c].append(float(((low <= y[cut : cut + 500]) & (y[cut : cut + 500] <= high)).mean()))
    return {f"covered {c}": float(np.mean(shares)) for c, shares in held.items()}


TASKS: dict[str, Any] = {"stream": stream, "fit": table, "ahead": ahead}


def worst(found: dict[str, Any], c: float, which: str = "tenths") -> float:
    return 100 * max(abs(share - c) for share in found[f"{which} {c}"])


def line(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def means(done: dict[str, Any], kind: str, name: str) -> list[dict[str, Any]]:
    return [found for key, found in sorted(done.items()) if f"{key}/".startswith(f"{kind}/{name}/")]


def marked(name: str) -> str:
    return f"{name} *" if name in CHOSEN else name


def streams_table(done: dict[str, Any], learner: str, names: tuple[str, ...]) -> str:
    lines = [
        line(["stream", "rows", "one width, 90 %", "50 %", "80 %", "90 %", "width 50 %", "80 %", "90 %", "CRPS"]),
        line(["---"] + ["---:"] * 9),
    ]
    for name in names:
        for found in means(done, "stream", f"{name}/{learner}"):
            now = [f"{worst(found, c):.1f}" for c in COVERAGES]
            width = [f"{found[f'width {c}']:.2f}" for c in COVERAGES]
            before = f"{worst(found, 0.9, 'tenths of one width'):.1f}"
            score = f"{found['crps'] / found['crps of one width']:.3f}"
            lines.append(line([marked(name), f"{found['rows']:,}", before, *now, *width, score]))
    return "\n".join(lines)


def windows_table(done: dict[str, Any]) -> str:
    lines = [line(["stream", "learner", "least", "largest"]), line(["---", "---", "---:", "---:"])]
    for name in (*CHOSEN, *JUDGED, *SIMULATED):
        for learner in ("ridge", "medium"):
            for found in means(done, "stream", f"{name}/{learner}"):
                shares = found["windows 0.9"]
                if shares:
                    lines.append(line([name, learner, f"{min(shares):.3f}", f"{max(shares):.3f}"]))
    return "\n".join(lines)


def fit_table(done: dict[str, Any]) -> str:
    """Shares of the tenths are averaged over the seeds."""
    head = ["set", "rows left out", "chance, 50 %", "one width, 90 %", "50 %", "80 %", "90 %", "width 90 %", "CRPS"]
    lines = [line(head), line(["---"] + ["---:"] * 8)]
    for name in (*CHOSEN, *JUDGED, *SIMULATED[:-1]):
        found = means(done, "fit", name)
        if not found:
            continue
        mean = {
            key: np.mean([one[key] for one in found], axis=0)
            for key in found[0]
            if key.startswith("tenths")
            or key.startswith("width")
            or key in ("left out", "rows", "crps", "crps of one width")
        }
        # deviation of the share in a tenth, by the rows left out and those of the test, times that of the largest
        chance = 100 * 0.5 * np.sqrt(10 / mean["left out"] + 10 / mean["rows"]) / np.sqrt(len(found)) * 1.9
        now = [f"{worst(mean, c):.1f}" for c in COVERAGES]
        before = f"{worst(mean, 0.9, 'tenths of one width'):.1f}"
        score = f"{mean['crps'] / mean['crps of one width']:.3f}"
        lines.append(
            line(
                [marked(name), int(mean["left out"]), f"{chance:.1f}", before, *now, f"{mean['width 0.9']:.2f}", score]
            )
        )
    return "\n".join(lines)


def ahead_table(done: dict[str, Any]) -> str:
    lines = [line(["set", "order", *(f"{100 * c:.0f} %" for c in COVERAGES)]), line(["---", "---"] + ["---:"] * 3)]
    for name in (*CHOSEN, *JUDGED):
        for order in ("file", "random"):
            for found in means(done, "ahead", f"{name}/{order}"):
                lines.append(line([name, order, *(f"{100 * found[f'covered {c}']:.0f}" for c in COVERAGES)]))
    return "\n".join(lines)


PAGE = """# Intervals that know the row

{about}

## Streams

The largest difference, in points, between the share of targets held in a tenth of the forecasts and the share asked
for; mean widths and CRPS are over those of one width. The default learner, "medium":

{medium}

Online ridge regression in `WithIntervals`:

{ridge}

90 % intervals in windows of 5,000 rows:

{windows}

## Held-out rows after `fit`

{fit}

"Chance" is what the largest of ten tenths of the forecasts would be off by on average, were the quantiles estimated
from the rows left out and nothing else. A set without a line was not computed, and there may be fewer seeds.

## The next 500 rows of a stream

Per cent of the targets in the intervals of a table, the default learner, "small":

{ahead}
"""


def write(done: dict[str, Any]) -> None:
    names = (*CHOSEN, *JUDGED, *SIMULATED)
    about = __doc__.split("\n\n", 2)[2].strip()
    page = PAGE.format(
        about=about,
        medium=streams_table(done, "medium", names),
        ridge=streams_table(done, "ridge", names),
        windows=windows_table(done),
        fit=fit_table(done),
        ahead=ahead_table(done),
    )
    here = Path(__file__).parent
    (here / "results" / "intervals.md").write_text(page)
    docs = here.parents[1] / "docs" / "trust.md"
    before, rest = docs.read_text().split(BEGIN)
    docs.write_text(before + BEGIN + "\n" + streams_table(done, "medium", names) + "\n" + END + rest.split(END)[1])


BEGIN, END = "<!-- papers/studies/intervals.py writes this table -->", "<!-- end of the table -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=tuple(TASKS))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    real = (*CHOSEN, *JUDGED)
    tasks: dict[str, tuple[Any, ...]] = {}
    for learner in ("medium", "ridge"):
        tasks |= {f"stream/{name}/{learner}": (stream, name, learner, 25_000) for name in (*real, *SIMULATED)}
    for order in ("file", "random"):
        tasks |= {
            f"ahead/{name}/{order}": (ahead, name, order == "random", 25_000) for name in real if name != "housing"
        }
    for seed in range(3):
        tasks |= {f"fit/{name}/{seed}": (table, name, seed, 12_000) for name in (*real, *SIMULATED[:-1])}
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    with ProcessPoolExecutor(args.jobs) as pool:
        futures = {
            pool.submit(*task): key
            for key, task in tasks.items()
            if key not in done and (args.only is None or key.startswith(args.only))
        }
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            print(futures[future], flush=True)
            args.out.write_text(json.dumps(done, indent=0, sort_keys=True))
    if args.write:
        write(done)


if __name__ == "__main__":
    main()
