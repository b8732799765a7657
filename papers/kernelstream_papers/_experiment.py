"""Experiments as data: what is run, how often, and what the paper printed."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from kernelstream.registry.names import unknown

#: Runs that make their own rows: a game against the greedy adversary, a known function, a Gaussian process.
SYNTHETIC = ("adversary", "function", "posterior")

#: One pass in a random order; fit and test; one pass in the stream's own order; or rows of their own.
KINDS = ("online", "holdout", "arena", *SYNTHETIC)

#: A quick run has at most so many rows and repetitions.
QUICK_ROWS, QUICK_REPEATS = 1000, 2

#: Measures: the metric's name, the factor it is printed with, and whether more is better.
MEASURES = {
    "mistakes": ("mistake_rate", 100.0, False),
    "accuracy": ("mistake_rate", 100.0, True),
    "score": ("score", 100.0, True),  # accuracy of labels, R² of numbers, held-out runs only
    "mse": ("mse", 1.0, False),
    "rmse": ("mse", 1.0, False),
    "regret": ("regret", 1.0, False),
    "relative": ("relative", 1.0, False),
    "seconds": ("seconds", 1.0, False),
    "arena": ("arena", 1.0, False),  # log-loss of labels, RMSE of numbers
}


@dataclass(frozen=True)
class Data:
    """A data set as an experiment uses it.

    Attributes
    ----------
    name : str
        Of :mod:`kernelstream.datasets`.
    scale : str or None
        How columns are scaled; see :func:`kernelstream.datasets.load`.
    split : {"all", "train", "test"}
        Rows of an online run: everything, or a part of the original file. A held-out run trains on the original
        training part, where there is one.
    scaled : {"split"} or None
        "split" scales columns by the rows of the split alone, as a program does that is given this file only.
    hands : int or None
        So many poker hands dealt at random, with columns and labels as in the file, which has an eighth of the
        paper's.
    train_share : float or None
        Otherwise a held-out run trains on this share of the rows (None: 4/5), and tests on the others.
    rows, test_rows : int or None
        At most so many rows, drawn at random; the first ones of a stream in its own order.
    order : {"file"} or None
        "file" keeps the rows of an online run in the order of the file, the first of them where there are more: for
        streams, whose order means something. Repetitions then differ in the seeds of the learners only.
    river : str or None
        A generator of ``river.datasets.synth`` that makes the rows; ``values`` are its arguments.
    positive : int or None
        This class against the rest.
    above : float or None
        Labels instead of numbers: whether the target is larger.
    classes : list of int
        Rows of these classes only.
    also : list of str
        Further arrays of the file that are columns too, scaled like the others.
    bends : int or None
        Rows are square images: so many elastic deformations of each training row are training rows too.
    blur : float or None
        Rows are square images of values in [0, 1]: blurred by a Gaussian of so many pixels, then brought to [-1, 1].
    dtype : {"float64"} or None
        Rows in double precision; None leaves them as they are loaded.
    pca : int or None
        Columns are the leading principal components of (10,000) training rows, after ``scale``.
    target : {"minmax", "minmax-sym"} or None
        Targets of a regression brought to [0, 1] or [-1, 1].
    values : dict
        What ``"$name"`` in an algorithm's parameters stands for, or a generator's arguments.
    """

    name: str
    scale: str | None = None
    split: str = "all"
    scaled: str | None = None
    hands: int | None = None
    train_share: float | None = None
    rows: int | None = None
    test_rows: int | None = None
    order: str | None = None
    positive: int | None = None
    above: float | None = None
    classes: tuple[int, ...] = ()
    also: tuple[str, ...] = ()
    bends: int | None = None
    blur: float | None = None
    dtype: str | None = None
    pca: int | None = None
    target: str | None = None
    river: str | None = None
    values: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Algorithm:
    """A line of a table: an algorithm of the zoo or a peer, its parameters, what is searched and what is swept.

    Attributes
    ----------
    label : str
    zoo, peer : str or None
        One of them.
    parameters : dict
    grid : dict of lists
        Searched on one order of the rows that is not among the repetitions.
    sweep : dict of lists
        Every value is a point of a curve; lists of the same length are taken together.
    only, skip : data sets, by name
    block : int or None
        Rows per call; None is the library's own choice.
    rows : dict
        A data set's name to the number of its first rows that this algorithm gets, where all of them take too long.
    tune_rows : int or None
        Rows on which its grid is searched, where they are not those of the experiment.
    instead : str or None
        Label of a line that this one explains: the same algorithm by the rules of the author's own program, which is
        what the paper measured.
    """

    label: str
    zoo: str | None = None
    peer: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    sweep: dict[str, list[Any]] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    block: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    tune_rows: int | None = None
    instead: str | None = None

    def points(self) -> list[dict[str, Any]]:
        """The settings of the sweep: one for a table."""
        if not self.sweep:
            return [{}]
        return [dict(zip(self.sweep, values)) for values in zip(*self.sweep.values(), strict=True)]

    def candidates(self) -> list[dict[str, Any]]:
        """The settings of the grid; a single empty one when nothing is searched."""
        return [dict(zip(self.grid, values)) for values in product(*self.grid.values())]

    def serves(self, data: str) -> bool:
        return data not in self.skip and (not self.only or data in self.only)


@dataclass(frozen=True)
class Printed:
    """A figure of the paper."""

    value: float
    std: float = 0.0
    seconds: float | None = None
    size: float | None = None


@dataclass(frozen=True)
class Experiment:
    """All that a file in ``experiments/`` says.

    Attributes
    ----------
    repeats : int
        Random orders of the rows.
    tune_rows : int or None
        Rows on which grids are searched.
    isolate : bool
        Each run has a process of its own, so that its memory and its processor time can be measured.
    alone : bool
        One run at a time, where threads or seconds are measured.
    axis : str
        What the pictures of a sweep have along x: the seconds, or one of the swept parameters.
    why : dict
        ``"data/label"`` to the reason why a cell is behind the paper or ahead of it; ``"data/"`` or ``"/label"`` to why
        all of a data set or a line are ahead.
    reduced : dict
        A data set's name to what it has of the paper's rows, where that is less.
    """

    name: str
    title: str
    source: str
    place: str
    kind: str
    measure: str
    data: tuple[Data, ...]
    algorithms: tuple[Algorithm, ...]
    printed: dict[str, dict[str, Printed]]
    repeats: int = 10
    tune_rows: int | None = None
    isolate: bool = False
    alone: bool = False
    axis: str = "seconds"
    text: str = ""
    why: dict[str, str] = field(default_factory=dict)
    reduced: dict[str, str] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The text, and in which type the rows are: learners compute in it."""
        usual = "float64" if self.kind == "adversary" else "float32"
        others = [d.name for d in self.data if (d.dtype or usual) != usual]
        more = f", of {', '.join(others)} in float64" if others else ""
        less = "; ".join(f"{name}: {rows}" for name, rows in self.reduced.items())
        return " ".join([*self.text.split(), f"Rows in {usual}{more}.", *([f"Reduced data: {less}."] if less else [])])

    def reason(self, data: str, label: str, found: str) -> str:
        """Why a cell is "ahead" or "behind", if known."""
        places = (f"{data}/{label}", *((f"/{label}", f"{data}/") if found == "ahead" else ()))
        return next((self.why[place] for place in places if place in self.why), "")

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value of the measure is the better one."""
        return MEASURES[self.measure][2]

    def quick(self, rows: int = QUICK_ROWS, repeats: int = QUICK_REPEATS) -> Experiment:
        """The same with few rows and repetitions: shows that it runs, not what it finds."""
        few = tuple(replace(d, rows=min(d.rows or rows, rows), test_rows=rows, bends=None) for d in self.data)
        short = tuple(
            replace(
                a,
                grid={k: v[:: len(v) - 1 or 1] for k, v in a.grid.items()},
                sweep={k: v[:2] for k, v in a.sweep.items()},
                tune_rows=None,
            )
            for a in self.algorithms
        )
        tune = min(self.tune_rows or rows, rows)
        # no process of its own for each run: starting it takes longer than the run
        return replace(
            self, data=few, algorithms=short, repeats=min(self.repeats, repeats), tune_rows=tune, isolate=False
        )

    def lines(self) -> list[tuple[Data, Algorithm]]:
        """Every data set with every algorithm that serves it, cut to the rows that the algorithm can take."""
        return [(_cut(d, a.rows.get(d.name)), a) for d in self.data for a in self.algorithms if a.serves(d.name)]

    def tuned_on(self, algorithm: Algorithm) -> int | None:
        """Rows on which a grid is searched."""
        return self.tune_rows if algorithm.tune_rows is None else algorithm.tune_rows

    def settings(self, data: Data, algorithm: Algorithm, point: dict[str, Any]) -> dict[str, Any]:
        """Parameters of a run, with ``"$name"`` replaced by the data set's value; a parameter of the grid stays."""
        merged = algorithm.parameters | point
        return {key: v if str(v)[1:] in algorithm.grid else _filled(v, data, self.name) for key, v in merged.items()}


def _cut(data: Data, rows: int | None) -> Data:
    return data if rows is None else replace(data, rows=min(data.rows or rows, rows))


def _filled(value: Any, data: Data, experiment: str) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in data.values:
            raise ValueError(f"{experiment}: {data.name} has no value for {value}")
        return data.values[value[1:]]
    return value


def digest(*parts: Any) -> str:
    """Short fingerprint of settings: a changed declaration is run again, an entry that is not used changes nothing."""
    plain = [_used(part) if hasattr(part, "__dataclass_fields__") else part for part in parts]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _used(part: Any) -> dict[str, Any]:
    return {key: value for key, value in vars(part).items() if value not in (None, (), {}, "")}


def _folder() -> Any:
    return resources.files(__package__).joinpath("experiments")


def names() -> list[str]:
    """Names of all experiments.

    >>> import kernelstream_papers as papers
    >>> "thesis-table-3-2" in papers.names()
    True
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def load(name: str) -> Experiment:
    """The experiment of a name, or of a file of one's own: a path that ends in ``.toml``."""
    if name.endswith(".toml"):
        path = Path(name)
        return parse(path.stem, path.read_text(encoding="utf-8"))
    known = names()
    if name not in known:
        raise unknown("experiment", name, known)
    return parse(name, _folder().joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Experiment:
    """An experiment from its file's text; ValueError names what is wrong with it."""
    raw = tomllib.loads(text)
    data = tuple(_entry(Data, item, name) for item in raw.pop("data", []))
    algorithms = tuple(_entry(Algorithm, item, name) for item in raw.pop("algorithm", []))
    printed = {
        d: {label: Printed(*([v] if isinstance(v, int | float) else v)) for label, v in lines.items()}
        for d, lines in raw.pop("printed", {}).items()
    }
    found = _entry(Experiment, raw | {"name": name, "data": data, "algorithms": algorithms, "printed": printed}, name)
    if found.kind not in KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(KINDS)}, got {found.kind!r}")
    if found.measure not in MEASURES:
        raise ValueError(f"{name}: measure must be one of {', '.join(MEASURES)}, got {found.measure!r}")
    for d in data:
        if d.order is not None and (d.order != "file" or found.kind != "online"):
            raise ValueError(
                f"{name}: order of {d.name} must be 'file', in an online run, or left out; got {d.order!r}"
            )
    labels, sets = {a.label for a in algorithms}, {d.name for d in data}
    if found.axis != "seconds" and not any(found.axis in a.sweep for a in algorithms):
        raise ValueError(f"{name}: the axis {found.axis!r} is swept by no algorithm")
    for algorithm in algorithms:
        if (algorithm.zoo is None) == (algorithm.peer is None):
            raise ValueError(f"{name}: {algorithm.label!r} needs either zoo or peer")
        if algorithm.instead is not None and algorithm.instead not in labels:
            raise ValueError(f"{name}: {algorithm.label!r} is instead of {algorithm.instead!r}, which is no line")
    for d, lines in printed.items():
        if d not in sets or not set(lines) <= labels:
            raise ValueError(
                f"{name}: printed figures of {d} name something that is not run: {sorted(set(lines) - labels)}"
            )
    for place in found.why:
        d, _, label = place.partition("/")
        if d not in sets | {""} or label not in labels | {""}:
            raise ValueError(f"{name}: the explanation of {place!r} belongs to no cell")
    if strange := set(found.reduced) - sets:
        raise ValueError(f"{name}: reduced data sets that are not run: {', '.join(sorted(strange))}")
    return found


def _entry(kind: Any, raw: dict[str, Any], name: str) -> Any:
    known = {f.name for f in fields(kind)}
    strange = sorted(set(raw) - known)
    if strange:
        raise ValueError(f"{name}: {kind.__name__.lower()} has no entry {', '.join(strange)}")
    plain = {key: tuple(v) if key in ("only", "skip", "classes", "also") else v for key, v in raw.items()}
    try:
        return kind(**plain)
    except TypeError as error:
        raise ValueError(f"{name}: {kind.__name__.lower()} {raw.get('label', raw.get('name', ''))}: {error}") from None
