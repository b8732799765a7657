"""Result files of the StreamArena board, one for each stream and learner of ours; docs/reproduce.md has the format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import zoo

from ._experiment import Algorithm, Experiment

# What the board calls its streams; those made by a generator here, and those of an earlier board, have no file.
KEYS = {name: f"real/{name}" for name in ("electricity", "nomao", "adult", "airlines", "ailerons", "fifa")}
KEYS |= {"covtype": "real/forest_cover", "california": "real/california_housing", "fried": "synth/fried"}
AUTHOR, HOME = "The kernelstream developers", "https://github.com/kernelstream/kernelstream"


def label_metrics(guess: np.ndarray, y: np.ndarray, n_classes: int) -> dict[str, float]:
    """Accuracy and the kappas in per cent: gains over chance, over the last label, over the most frequent one so far.

    Parameters
    ----------
    guess, y : (n,) arrays of codes
    n_classes : int
    """
    right = float(np.mean(guess == y))
    shares = [np.bincount(codes, minlength=n_classes) / len(y) for codes in (guess, y)]
    last = np.concatenate([[0], y[:-1]])  # before the first row, class 0
    seen = np.cumsum(y[:, None] == np.arange(n_classes), axis=0)  # the row itself counts
    chances = {
        "kappa": float(shares[0] @ shares[1]),
        "kappa_t": float(np.mean(last == y)),
        "kappa_m": float(np.mean(seen.argmax(axis=1) == y)),
    }
    over = {name: 100.0 * (right - p) / (1.0 - p) if p < 1 else 0.0 for name, p in chances.items()}
    return {"accuracy": 100.0 * right} | over


def number_metrics(forecast: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The mean absolute error; arrays (n,)."""
    return {"mae": float(np.mean(np.abs(forecast - y)))}


def write_files(
    experiment: Experiment, records: Iterable[dict[str, Any]], folder: str | Path
) -> tuple[list[Path], int]:
    """Write the files of all runs of our learners on whole streams of the board.

    Returns
    -------
    paths : list
    without : int
        Runs that were made before records had the figures that the board asks for.
    """
    ours = {algorithm.label: algorithm for algorithm in experiment.algorithms if algorithm.zoo is not None}
    whole = {data.name for data in experiment.data if data.rows is None and data.name in KEYS}
    written, without = [], 0
    for record in records:
        algorithm, name = ours.get(record.get("algorithm", "")), record.get("data", "")
        if algorithm is None or name not in whole or name in algorithm.rows or record.get("value") is None:
            continue
        if "board" not in record:
            without += 1
            continue
        key = KEYS[name]
        line = _line(record, algorithm, key)
        path = Path(folder) / line["algorithm"] / f"{key.replace('/', '__')}__seed{line['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(line, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return sorted(written), without


def _line(record: dict[str, Any], algorithm: Algorithm, key: str) -> dict[str, Any]:
    task = "classification" if "log_loss" in record["figures"] else "regression"
    figures = {name: value for name, value in record["figures"].items() if name != "mistakes"}
    made = zoo.make(
        str(algorithm.zoo), task=record["task"], **({"random_state": record["order"] + 1} | record["settings"])
    )
    environment = record.get("environment", {})
    return {
        "task": task,
        "algorithm": re.sub(r"[^A-Za-z0-9]+", "_", algorithm.label).strip("_"),
        "dataset": key,
        "seed": record["order"] + 1,
        "status": "ok",
        "metrics": record["board"] | figures,
        "wallclock_s": record["seconds"],
        "cpu_time_s": record["cpu_seconds"],
        "peak_rss_mb": record["process_mb"],
        "hyperparameters": {name: _plain(value) for name, value in made.get_params(deep=False).items()},
        "submission": {
            "author": AUTHOR,
            "contact_or_repo": HOME,
            "library_versions": environment.get("versions", {}),
            "notes": f"{record['rows']} rows, {environment.get('machine', 'unknown machine')}",
        },
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it; what it does not have, as it is written in Python."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
