"""Which update needs no tuning? Every rule as it comes, over many data sets, one pass each.

    python papers/studies/default_update.py [--questions] [--rows 15000] [--sets german,mg] [--write FILE]

Needs the data folder (KERNELSTREAM_DATA). ``--questions`` adds the experiments behind the constants in
``kernelstream/updates/``: step scales, the learners that start in the kernel expansion, the bandwidth.
"""

from __future__ import annotations

import argparse
import functools
import os
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import rankdata

from kernelstream import datasets, drift, zoo
from kernelstream.kernels.bandwidth import gaussian_gamma
from kernelstream.updates import NORMA, OGD, AdaGrad, Averaged, CoinBetting, NormAdaGrad, PassiveAggressive, Pegasos

BINARY = ["german", "spambase", "svmguide3", "a9a", "w7a", "ijcnn1", "cod-rna", "elec2", "susy_11k", "madelon"]
MULTICLASS = ["dna", "satimage", "usps", "letter", "poker", "mnist", "covtype"]
REGRESSION = ["abalone", "cadata", "casp", "housing", "mg", "parkinsons", "airlines2008_excerpt"]
DRIFT = "moving hills"  # the drifting stream of the demonstration
CAP = 1.0  # relative excess that counts at most, so that one divergence does not decide a mean


@dataclass(frozen=True)
class Data:
    """A stream: rows in the order in which they are learned."""

    X: Any
    y: np.ndarray
    task: str
    gamma: float | None = None  # None: the default bandwidth

    @property
    def unit(self) -> float:
        """What a step of "size one" is: 1 for labels, the deviation of the target in regression."""
        return float(self.y.std()) if self.task == "regression" else 1.0


@functools.lru_cache(maxsize=1)  # data sets are the outer loop
def load(name: str, rows: int) -> Data:
    """At most ``rows`` rows, columns standardised, shuffled unless the order means something."""
    if name == DRIFT:
        blocks = list(drift.generate(rows, kind="abrupt", random_state=0))
        X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return Data(X, y, "binary", gamma=0.5)
    data = datasets.load(name, scale="standard")
    n = len(data.y)
    order = np.arange(n) if name == "elec2" else np.random.default_rng(0).permutation(n)
    return Data(data.X[order[:rows]], data.y[order[:rows]], data.task)


def score(est: Any, data: Data) -> float:
    """Mistake rate, or mean squared error over the variance of the target, of the predictions before each update."""
    classes = {} if data.task == "regression" else {"classes": np.unique(data.y)}
    with np.errstate(all="ignore"):
        f = est.learn(data.X, data.y, **classes)
    if data.task == "regression":
        return float(np.mean((f - data.y) ** 2) / np.var(data.y))
    guess = (f >= 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)
    return float(np.mean(est.classes_[guess] != data.y))


def learner(name: str, data: Data, update: Any, **params: Any) -> Any:
    """A recipe of the zoo with another update; passive-aggressive steps need the absolute loss in regression."""
    est = zoo.make(name, task=data.task, random_state=0, **{"gamma": data.gamma, **params}).set_params(update=update)
    if data.task == "regression":
        est.set_params(center=True, loss="absolute" if isinstance(update, PassiveAggressive) else "squared")
    return est


# -------------------------------------------------------------------- tables
Rule = Callable[[Data], Any]  # what to run on a stream


@dataclass
class Results:
    """Scores (sets × rules), and what is said about them."""

    title: str
    text: str
    sets: list[str]
    rules: list[str]
    scores: np.ndarray
    tasks: list[str]

    def rows(self) -> list[list[str]]:
        cells = []
        for name, row in zip(self.sets, self.scores, strict=True):
            best = np.nanmin(row)
            cells.append([name] + [self._cell(value, value <= best) for value in row])
        for label, chosen in self._groups():
            scores = np.where(np.isfinite(self.scores[chosen]), self.scores[chosen], np.inf)
            ranks = rankdata(scores, axis=1).mean(axis=0)
            excess = np.minimum(scores / scores.min(axis=1, keepdims=True) - 1, CAP).mean(axis=0)
            cells.append([f"average rank, {label}"] + [_marked(f"{r:.1f}", r == ranks.min()) for r in ranks])
            cells.append([f"mean excess, {label}"] + [_marked(f"{e:.1%}", e == excess.min()) for e in excess])
        return cells

    def _groups(self) -> list[tuple[str, np.ndarray]]:
        regression = np.array([task == "regression" for task in self.tasks])
        groups = [("labels", ~regression), ("regression", regression), ("all", np.ones_like(regression))]
        return [(label, chosen) for label, chosen in groups if chosen.any() and (label != "all" or len(groups) > 1)]

    @staticmethod
    def _cell(value: float, best: bool) -> str:
        return _marked(f"{value:.4f}" if value < 10 else "diverged", best) if np.isfinite(value) else "diverged"

    def show(self, console: Console) -> None:
        table = Table(title=self.title, title_justify="left")
        table.add_column("")
        for rule in self.rules:
            table.add_column(rule, justify="right")
        for row in self.rows():
            cells = [f"[bold]{cell.strip('*')}[/bold]" if cell.startswith("**") else cell for cell in row]
            table.add_row(*cells, end_section=row[0] == self.sets[-1])
        console.print(table)

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", self.text, ""]
        lines += ["| | " + " | ".join(self.rules) + " |", "|---|" + "---:|" * len(self.rules)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows()]
        return "\n".join(lines) + "\n"


def _marked(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def measure(title: str, text: str, sets: list[str], rows: int, rules: dict[str, Rule], console: Console) -> Results:
    scores, tasks = [], []
    for name in track(sets, description=title, console=console, transient=True):
        data = load(name, rows)
        tasks.append(data.task)
        scores.append([score(rule(data), data) for rule in rules.values()])
    found = Results(title, text, sets, list(rules), np.array(scores), tasks)
    found.show(console)
    return found


# -------------------------------------------------------------------- the comparison
def compare(sets: list[str], rows: int, console: Console) -> Results:
    """Every update as it comes, on the same random features."""
    updates = {
        "AdaGrad": AdaGrad(),
        "NormAdaGrad": NormAdaGrad(),
        "coin betting": CoinBetting(),
        "OGD, 1": OGD(1.0),
        "OGD, 1/sqrt(t)": OGD(1.0, "sqrt"),
        "averaged OGD, 1": Averaged(OGD(1.0)),
        "PA-I, C = 1": PassiveAggressive(1.0),
        "Pegasos, 1e-4": Pegasos(1e-4),
        "NORMA": NORMA(),
    }
    rules = {
        name: lambda data, update=update: learner("fogd", data, update, n_components=200)
        for name, update in updates.items()
    }
    text = (
        "`fogd` with 200 frequencies (400 features), bandwidth from the median distance, every rule with its default "
        "parameters. The best of a row is bold."
    )
    return measure("The rules, untuned", text, sets, rows, rules, console)


# -------------------------------------------------------------------- questions about the constants
def ask_scale(sets: list[str], rows: int, console: Console) -> list[Results]:
    """AdaGrad's step, for few and for many features."""
    found = []
    for D in (50, 200, 1000):
        P = 2 * D
        rules: dict[str, Rule] = {
            f"{c}/sqrt(P)": lambda data, c=c, D=D, P=P: learner(
                "fogd", data, AdaGrad(c / P**0.5 * _part(data)), n_components=D
            )
            for c in (5, 10, 14, 20, 28)
        }
        for eta in (0.5, 1.0, 2.0):
            rules[f"eta {eta:g}"] = lambda data, eta=eta, D=D: learner(
                "fogd", data, AdaGrad(eta * _part(data)), n_components=D
            )
        text = (
            f"{D} frequencies, P = {P} features. In regression every step is multiplied by 0.3 × the deviation of the "
            "target. A step that does not know P is too long for many features; `auto` is 14/sqrt(P)."
        )
        found.append(measure(f"AdaGrad's step, {D} frequencies", text, sets, rows, rules, console))
    return found


def ask_target(sets: list[str], rows: int, console: Console) -> Results:
    """AdaGrad's step in regression, in units of the target's deviation."""
    sets = [name for name in sets if name in REGRESSION]
    rules = {
        f"{part:g} std(y)": lambda data, part=part: learner(
            "fogd", data, AdaGrad(14 / 20 * part * data.unit), n_components=200
        )
        for part in (0.1, 0.2, 0.3, 0.5, 1.0)
    }
    text = "200 frequencies; eta = 14/sqrt(P) × the number above, with the deviation of the whole target."
    return measure("AdaGrad's step in regression", text, sets, rows, rules, console)


def ask_expansion(sets: list[str], rows: int, console: Console) -> Results:
    """NOGD: the update where the model starts as a kernel expansion and ends on Nyström features."""

    def nogd(data: Data, update: Any) -> Any:
        return learner("nogd", data, update, budget=100, rank=50)

    rules: dict[str, Rule] = {"auto": lambda data: nogd(data, "auto")}
    for eta in (1, 2, 4, 8, 16):
        rules[f"NormAdaGrad {eta}"] = lambda data, eta=eta: nogd(data, NormAdaGrad(eta * _part(data)))
    rules |= {
        "coin betting": lambda data: nogd(data, CoinBetting()),
        "OGD 0.2": lambda data: nogd(data, OGD(0.2)),
        "OGD 0.5": lambda data: nogd(data, OGD(0.5)),
        "OGD 1/sqrt(t)": lambda data: nogd(data, OGD(1.0, "sqrt")),
        "PA-I, C = 1": lambda data: nogd(data, PassiveAggressive(1.0)),
    }
    text = (
        "`nogd` with 100 landmarks and rank 50. `auto` is NormAdaGrad (eta = 8) in the kernel expansion and AdaGrad on "
        "the Nyström features after the switch; the others keep one rule throughout. In regression NormAdaGrad's eta "
        "is multiplied by 0.3 × the deviation of the target, and PA-I learns the absolute loss."
    )
    return measure("Updates for NOGD", text, sets, rows, rules, console)


def ask_bandwidth(sets: list[str], rows: int, console: Console) -> Results:
    """The bandwidth of the Gaussian kernel from the first 100 rows."""
    sets = [name for name in sets if name != DRIFT]

    def rule(kind: str, width: float) -> Rule:
        def make(data: Data) -> Any:
            gamma = gaussian_gamma(kind, data.X[:100]) / width**2
            return learner("fogd", data, "auto", n_components=200, gamma=gamma)

        return make

    widths = (1.4, 1, 0.7, 0.5, 0.35, 0.25)
    rules = {"scale": rule("scale", 1.0)} | {f"{w:g} × median": rule("median", w) for w in widths}
    text = (
        "`fogd` with 200 frequencies. gamma = 1/(d var) (`scale`) or 1/(2 (w m)²) with m the median distance of the "
        "first 100 rows and w the factor above; the default is w = 1."
    )
    return measure("Bandwidth", text, sets, rows, rules, console)


def _part(data: Data) -> float:
    """Factor of a step: 0.3 × the deviation in regression."""
    return 0.3 * data.unit if data.task == "regression" else 1.0


# -------------------------------------------------------------------- the report
def report(results: list[Results], rows: int, command: str) -> str:
    main = results[0]
    head = f"""# The default update

Written by `{command}`; the figures are those of that run.

Every data set is learned in one pass, row by row: at most {rows:,} rows (half of that in the questions after the first
table), columns standardised, in one random order (elec2 in its own), one seed. Figures are the mistake rate of the
predictions made before each update, or in regression the mean squared error over the variance of the target.
"moving hills" is the drifting stream of the demonstration. The *excess* of a rule is its figure over the best of the
row, minus one, at most {CAP:.0%}.

{_conclusion(main)}
"""
    return head + "\n" + "\n".join(result.markdown() for result in results)


def _conclusion(main: Results) -> str:
    """What the first table says, in the figures of the run."""
    scores = np.where(np.isfinite(main.scores), main.scores, np.inf)
    excess = np.minimum(scores / scores.min(axis=1, keepdims=True) - 1, CAP).mean(axis=0)
    ranks = rankdata(scores, axis=1).mean(axis=0)
    column = {rule: j for j, rule in enumerate(main.rules)}
    ada, mean = column["AdaGrad"], column["averaged OGD, 1"]
    moving = [i for i, name in enumerate(main.sets) if name in ("elec2", DRIFT)]
    still = [i for i in range(len(main.sets)) if i not in moving]
    wins = int(np.sum(scores[still, mean] < scores[still, ada]))
    against = "; ".join(f"{main.sets[i]} {scores[i, mean]:.1%} against {scores[i, ada]:.1%}" for i in moving)
    text = f"""**Decision.** AdaGrad is the default: mean excess {excess[ada]:.1%}, average rank {ranks[ada]:.1f}.
        Averaged OGD has excess {excess[mean]:.1%} and rank {ranks[mean]:.1f}: it is better than AdaGrad on {wins} of
        the {len(still)} sets whose rows come in random order, but a mean of all iterates cannot follow a stream that
        changes: {against}. Where nothing changes, `update=Averaged(OGD())` is worth trying first. NormAdaGrad, which
        also works in the kernel expansion, has excess {excess[column["NormAdaGrad"]]:.1%} and is the default there."""
    return textwrap.fill(" ".join(text.split()), 120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    parser.add_argument("--questions", action="store_true", help="also the experiments behind the constants")
    parser.add_argument("--write", type=Path, metavar="FILE", help="file for the report")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # warm-up rows of few classes
    sets = args.sets.split(",") if args.sets else [*BINARY, DRIFT, *MULTICLASS, *REGRESSION]
    console = Console(width=190)
    results = [compare(sets, args.rows, console)]
    command = f"python papers/studies/default_update.py{' --questions' * args.questions} --write {args.write}"
    if args.questions:
        half = args.rows // 2
        results += ask_scale(sets, half, console)
        if set(sets) & set(REGRESSION):
            results.append(ask_target(sets, half, console))
        results.append(ask_expansion(sets, half, console))
        results.append(ask_bandwidth(sets, half, console))
    if args.write:
        args.write.write_text(report(results, args.rows, command))
        console.print(f"written: {args.write}")


if __name__ == "__main__":
    main()
