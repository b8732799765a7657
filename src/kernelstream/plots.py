"""Plots of results; they need matplotlib (``pip install "kernelstream[plots]"``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .extras import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .evaluate import Result

Draw = TypeVar("Draw", bound=Callable[..., Any])

__all__ = [
    "bars",
    "calibration",
    "curves",
    "figure",
    "forecast",
    "kernel_weights",
    "members",
    "relevance",
    "relevance_over_time",
    "save",
]

# colours that most colour-blind readers can distinguish, also in grey (Okabe and Ito 2008), and one more
_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#555555",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#f0e442",
    "#8c564b",
)

_PICTURE = """path : str or Path, optional
        File to write; its ending decides the format (png, svg, pdf).
    ax : matplotlib axes, optional
        Where to draw, for example several models on the same axes; by default a new figure.

    Returns
    -------
    matplotlib Figure"""


def _documented(draw: Draw) -> Draw:
    """The parameters that all plots share, in place of ``{picture}`` in the docstring."""
    draw.__doc__ = (draw.__doc__ or "").replace("{picture}", _PICTURE)
    return draw


def figure(columns: int = 1, width: float = 6.4, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """An empty figure with axes side by side; no window is opened and no backend is chosen."""
    with needs("plots"):
        from matplotlib.figure import Figure
    made = Figure(figsize=(width * columns, height), layout="constrained")
    return made, list(made.subplots(1, columns, squeeze=False)[0])


@_documented
def curves(
    results: Result | Mapping[str, Result] | Iterable[Result],
    path: str | Path | None = None,
    *,
    metric: str | None = None,
    windows: int | None = None,
    over: str = "rows",
    ax: Axes | None = None,
) -> Figure:
    """Draw a metric over the rows of the stream, or over the time spent, one line per result.

    Parameters
    ----------
    results : Result, mapping of label to Result, or iterable of Results
        Labels default to the names of the results.
    metric : str, optional
        The first metric of the first result by default.
    windows : int, optional
        Show the metric over this many consecutive stretches, which makes changes visible; by default, the running
        metric over all rows so far.
    over : {"rows", "seconds"}
        What is drawn along x: rows, or the seconds spent inside the learner up to them.
    {picture}

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from kernelstream import drift, evaluate, plots
    >>> blocks = drift.generate(2000, block=100)
    >>> result = evaluate.prequential(SGDClassifier(), blocks, classes=[-1, 1], name="linear")
    >>> len(plots.curves(result, windows=20).axes)
    1
    """
    labelled = _labelled(results)
    if not labelled:
        raise ValueError("there are no results to draw")
    if over not in ("rows", "seconds"):
        raise ValueError(f"over must be 'rows' or 'seconds', got {over!r}")
    metric = metric or next(iter(labelled[0][1].metrics))
    ax = ax or figure()[1][0]
    for number, (label, result) in enumerate(labelled):
        if metric not in result.curves:
            raise ValueError(f"result {label!r} has no metric {metric!r}; it has {', '.join(result.curves)}")
        curve = result.curves[metric]
        rows, value = (curve.rows, curve.value) if windows is None else curve.windowed(windows)
        if over == "seconds":
            rows = result.time.total[np.searchsorted(result.time.rows, rows)]
        colour = _line(ax, rows, value, label, number)
        for i, mark in enumerate(result.marks if over == "rows" else ()):  # changes that a monitor has found
            ax.axvline(mark.row, color=colour, linestyle=":", linewidth=1, label=None if i else f"{label}: change")
    _dress(ax, metric.replace("_", " ") + (" so far" if windows is None else " over the last stretch"))
    if over == "seconds":
        ax.set_xlabel("seconds")
        ax.xaxis.set_major_formatter(lambda seconds, _: f"{seconds:g}")
    return _finished(ax, path)


@_documented
def relevance(est: Any, path: str | Path | None = None, *, top: int = 30, ax: Axes | None = None) -> Figure:
    """Draw how much every input matters, ``est.relevance_``: the longer the bar, the more.

    Parameters
    ----------
    est : estimator with ``relevance_``
        Such as :class:`~kernelstream.RRFClassifier`, fitted, whose widths are drawn, with a dashed line at the one all
        inputs started with; or a :class:`~kernelstream.trust.Explained`, with the share of each input.
    top : int, default=30
        Draw at most this many inputs, those with the largest widths, largest first.
    {picture}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import RRFClassifier, plots
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 4))
    >>> len(plots.relevance(RRFClassifier(random_state=0).fit(X, X[:, 0] > 0)).axes[0].patches)
    4
    """
    if not hasattr(est, "relevance_"):
        raise ValueError(f"{type(est).__name__} has no relevance_: it has learned no row, or no kernel")
    widths = est.relevance_
    names = getattr(widths, "names", None) or getattr(est, "feature_names_in_", None)
    learned = "inverse_length" in est.state_
    start = est.state_["inverse_length"] if learned else None
    label = "learned width" if learned else "share of the squared gradient"
    return bars(widths, names, path, top=top, ax=ax, label=label, start=start)


@_documented
def bars(
    values: Any,
    names: Any = None,
    path: str | Path | None = None,
    *,
    top: int = 30,
    ax: Axes | None = None,
    label: str = "contribution",
    start: float | None = None,
) -> Figure:
    """Draw a bar for each of some inputs, the largest first.

    Parameters
    ----------
    values : (d,) array
    names : (d,) sequence of str, optional
        By default x0, x1, ...
    top : int, default=30
        Draw at most this many inputs, those with the largest values.
    label : str
        What the values are.
    start : float, optional
        A value to compare with, drawn as a dashed line.
    {picture}
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    values = [float(value) for value in values]
    names = [f"x{i}" for i in range(len(values))] if names is None else names
    shown = sorted(range(len(values)), key=lambda i: -abs(values[i]))[:top]
    ax = ax or figure(height=max(2.2, 0.9 + 0.24 * len(shown)))[1][0]
    ax.barh(range(len(shown)), [values[i] for i in shown], color=_COLOURS[0], height=0.7)
    ax.set_yticks(range(len(shown)), [str(names[i]) for i in shown])
    ax.invert_yaxis()
    if start is not None:
        ax.axvline(start, color=_COLOURS[4], linestyle="--", linewidth=1, label="start")
        ax.legend(frameon=False, loc="lower right")
    rest = len(values) - len(shown)
    ax.set_xlabel(label + (f" (the other {rest} inputs are below)" if rest else ""))
    return _finished(ax, path)


@_documented
def relevance_over_time(
    history: Iterable[tuple[int, Any]],
    path: str | Path | None = None,
    *,
    top: int = 6,
    ax: Axes | None = None,
) -> Figure:
    """Draw how much the inputs mattered as a stream went on.

    Parameters
    ----------
    history : iterable of (rows seen, relevance (d,))
        Values of ``relevance_`` at several times; those with names of the inputs bring them along.
    top : int, default=6
        Draw this many inputs, those that mattered most at any time.
    {picture}

    Examples
    --------
    >>> from kernelstream import plots
    >>> len(plots.relevance_over_time([(100, [0.9, 0.1]), (200, [0.2, 0.8])]).axes[0].lines)
    2
    """
    rows, shares = zip(*history, strict=True)
    ax = ax or figure()[1][0]
    names = getattr(shares[-1], "names", None) or [f"x{j}" for j in range(len(shares[-1]))]
    most = [max(share[j] for share in shares) for j in range(len(shares[0]))]
    for number, j in enumerate(sorted(range(len(most)), key=lambda j: -most[j])[:top]):
        _line(ax, rows, [share[j] for share in shares], names[j], number)
    _dress(ax, "share of the squared gradient")
    return _finished(ax, path)


@_documented
def calibration(
    y: Any,
    p: Any,
    path: str | Path | None = None,
    *,
    bins: int = 15,
    least: int = 1,
    label: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw how often events happened against the probabilities they were given: on the diagonal both agree.

    Parameters
    ----------
    y : (n,) array
        Whether the event happened: True or 1 where it did.
    p : (n,) array
        The probability it was given. Of several classes, take ``p.max(axis=1)`` and whether that class was right.
    bins : int, default=15
        Number of bins, of equal width. The legend has the expected calibration error: the mean distance from the
        diagonal over rows.
    least : int, default=1
        Bins with fewer rows are not drawn.
    label : str, optional
    {picture}

    Examples
    --------
    >>> from kernelstream import plots
    >>> made = plots.calibration([0, 1, 1, 1], [0.2, 0.3, 0.9, 0.9], bins=4)
    >>> [round(float(x), 2) for x in made.axes[0].lines[1].get_xdata()]
    [0.2, 0.3, 0.9]
    """
    y, p = np.asarray(y, np.float64), np.asarray(p, np.float64)
    if y.shape != p.shape or y.ndim != 1 or not len(y) or ((p < 0) | (p > 1)).any() or not np.isin(y, (0, 1)).all():
        raise ValueError("y must be 0 or 1 and p a probability, one of each for every row")
    at = np.minimum((p * bins).astype(int), bins - 1)
    count, given, happened = (np.bincount(at, weights, bins) for weights in (None, p, y))
    some = count >= max(least, 1)
    error = np.abs(given - happened).sum() / len(y)
    ax = ax or figure(width=4.8)[1][0]
    if not ax.lines:
        ax.plot([0, 1], [0, 1], color=_COLOURS[4], linestyle="--", linewidth=1)
    name = f"{label}: error {error:.3f}" if label else f"error {error:.3f}"
    colour = _COLOURS[(len(ax.lines) - 1) % len(_COLOURS)]
    ax.plot(given[some] / count[some], happened[some] / count[some], marker="o", markersize=4, color=colour, label=name)
    ax.set_xlabel("probability given")
    ax.set_ylabel("share that happened")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.legend(frameon=False, loc="upper left")
    return _finished(ax, path)


@_documented
def forecast(
    history: Any,
    ahead: Any,
    path: str | Path | None = None,
    *,
    target: str | None = None,
    steps: int = 168,
    ax: Axes | None = None,
) -> Figure:
    """The latest rows of a series, what is forecast, and the band of the intervals.

    Parameters
    ----------
    history : data frame or dictionary of columns
        Rows with times, of one series; what came later is drawn beside the forecast.
    ahead : data frame or dictionary of columns
        What :meth:`KernelForecaster.forecast <kernelstream.KernelForecaster.forecast>` returned.
    target : str, optional
        By default, the first one.
    steps : int, default=168
        Rows of the history before the forecast.
    {picture}
    """
    from .forecast.frames import columns_of

    past, made = columns_of(history), columns_of(ahead)
    low = next((name for name in made if name.endswith("_low")), "") if target is None else f"{target}_low"
    if low not in made:
        raise ValueError("ahead must be what KernelForecaster.forecast returned, with this target")
    name, ends = low.removesuffix("_low"), [np.asarray(made[low]), np.asarray(made[low.removesuffix("low") + "high"])]
    time = next(column for column in made if column in past and column != name) if len(past) > 1 else None
    y = np.asarray(past[name], np.float64)
    x = np.arange(len(y)) if time is None else np.asarray(past[time], "datetime64[us]")
    then = np.asarray(made["step" if time is None else time], None if time is None else "datetime64[us]")
    first, last = int(np.searchsorted(x, then[0])), int(np.searchsorted(x, then[-1], side="right"))
    if ax is None:
        ax = figure(width=8.4)[1][0]
    ax.plot(x[max(first - steps, 0) : last], y[max(first - steps, 0) : last], color=_COLOURS[7], lw=1, label=name)
    ax.plot(then, np.asarray(made[name]), color=_COLOURS[0], lw=1.6, label="forecast")
    ax.fill_between(then, *ends, color=_COLOURS[0], alpha=0.2, lw=0, label="interval")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, loc="upper left", ncols=3)
    if time is not None:
        ax.tick_params(axis="x", rotation=20)
    return _finished(ax, path)


@_documented
def members(est: Any, path: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
    """Draw the weights of the members of a :class:`~kernelstream.KernelClassifier` over the rows.

    Parameters
    ----------
    est : KernelClassifier or KernelRegressor
        Fitted. Weights need not add up to one, and may be below 0: a member may correct the others.
    {picture}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import KernelClassifier, plots
    >>> est = KernelClassifier(random_state=0).partial_fit(*make_moons(500, noise=0.1, random_state=0))
    >>> len(plots.members(est).axes)
    1
    """
    if not hasattr(est, "members_"):
        raise ValueError(f"{type(est).__name__} has no members_: it has learned no row yet, or has no members")
    rows, weights = est.weights_history_
    names = [member["name"] for member in est.members_]
    ax = ax or figure(width=7.6)[1][0]
    last = [abs(weight) for weight in (weights[-1] if len(weights) else [0.0] * len(names))]
    for place, i in enumerate(sorted(range(len(names)), key=lambda i: -last[i])):
        _line(ax, rows, weights[:, i], names[i], place)
    ax.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    _over_rows(ax, "weight")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return _finished(ax, path)


@_documented
def kernel_weights(
    est: Any,
    path: str | Path | None = None,
    *,
    least: float = 0.05,
    ax: Axes | None = None,
) -> Figure:
    """Draw the weights of the learners of a :class:`~kernelstream.MultiKernelClassifier` over the rows it has seen.

    Parameters
    ----------
    est : estimator with ``weights_history_``
        Fitted. The bands, one on top of the other, add up to one.
    least : float, default=0.05
        Learners that never had this much weight share one grey band.
    {picture}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import MultiKernelClassifier, plots
    >>> est = MultiKernelClassifier(random_state=0).fit(*make_moons(500, noise=0.1, random_state=0))
    >>> len(plots.kernel_weights(est).axes)
    1
    """
    if not hasattr(est, "weights_history_"):
        raise ValueError(f"{type(est).__name__} has no weights_history_: it has learned no row, or has one kernel")
    if not 0 <= least < 1:
        raise ValueError(f"least must be in [0, 1), got {least}")
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    rows, weights = est.weights_history_
    shown = [i for i in range(weights.shape[1]) if weights[:, i].max() >= least]
    labels = [member_label(est.learners_[i]) for i in shown]
    bands = [weights[:, i] for i in shown]
    colours = [
        colormaps["viridis"](i / (weights.shape[1] - 1 or 1)) for i in shown
    ]  # a learner's colour is always the same
    if len(shown) < weights.shape[1]:
        bands.append(1.0 - sum(bands))
        labels.append(f"the other {weights.shape[1] - len(shown)}")
        colours.append((0.85, 0.85, 0.85, 1.0))
    ax = ax or figure(width=7.6)[1][0]
    ax.stackplot(rows, bands, labels=labels, colors=colours, linewidth=0)
    _over_rows(ax, "weight")
    ax.set_xlim(rows[0], rows[-1])
    ax.set_ylim(0, 1)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], names[::-1], frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _finished(ax, path)


def member_label(learner: Any) -> str:
    """What distinguishes a member among others: its kernel, or else its class."""
    holder = learner if hasattr(learner, "kernel") else getattr(learner, "features", None)
    kernel = getattr(holder, "kernel", None)
    gamma = getattr(kernel, "gamma", getattr(holder, "gamma", None))
    name = kernel if isinstance(kernel, str) else getattr(kernel, "name", type(learner).__name__)
    name = name.replace("_", " ")
    degree = getattr(kernel, "degree", None)
    if degree is not None:
        return f"{name}, degree {degree}"
    if name == "gaussian" and isinstance(gamma, (int, float)):
        return f"gaussian, sigma {(0.5 / gamma) ** 0.5:.3g}"
    return name if gamma is None else f"{name}, gamma {gamma if isinstance(gamma, str) else format(gamma, '.3g')}"


def save(made: Figure, path: str | Path) -> Path:
    """Write a figure to a file, making its folder if needed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, dpi=150)
    return path


def _labelled(results: Any) -> list[tuple[str, Any]]:
    if isinstance(results, Mapping):
        return list(results.items())
    if hasattr(results, "curves"):
        results = [results]
    return [(result.name, result) for result in results]


def _line(ax: Any, x: Any, y: Any, label: str, number: int) -> str:
    """Draw a line in the colour of its number; returns the colour."""
    colour = _COLOURS[number % len(_COLOURS)]
    ax.plot(x, y, label=label, color=colour, linewidth=1.6)
    return colour


def _over_rows(ax: Any, values: str) -> None:
    """Labels of axes whose x are rows of a stream."""
    ax.set_xlabel("rows seen")
    ax.set_ylabel(values)
    ax.xaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")


def _dress(ax: Any, values: str) -> None:
    _over_rows(ax, values)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.25)
    # below the axes: inside, it would sooner or later cover a peak
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)


def _finished(ax: Any, path: str | Path | None) -> Any:
    """The figure of axes that are complete: two sides open, and in a file if there is a path."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    made = ax.get_figure()
    if path is not None:
        save(made, path)
    return made
