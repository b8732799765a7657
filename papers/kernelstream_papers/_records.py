"""Raw results: one JSON line per finished run, appended the moment it is known; and their compact form, to be kept."""

from __future__ import annotations

import json
import lzma
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = (
    "kernelstream", "numpy", "scipy", "scikit-learn", "river", "lightgbm", "vowpalwabbit", "thundersvm-cpu", "capymoa",
)  # fmt: skip


def environment() -> dict[str, Any]:
    """Machine and versions, for the reader of a figure."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if "capymoa" in versions and (java := _java()):
        versions["java"] = java
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _java() -> str | None:
    """Version of the Java machine, which tells it on its error stream, in quotes."""
    try:
        said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return None
    return said.split('"')[1] if said.count('"') > 1 else None


def _processor() -> str:
    """Name of the processor, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    parts = [line.partition(":")[2].strip() for line in lines if line.startswith("CPU part")]
    arm = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd4f": "Neoverse V2"}
    return named[0] if named else arm.get(parts[0], parts[0]) if parts else platform.processor()


class Records:
    """The runs of one experiment in a folder.

    Parameters
    ----------
    folder : path
        Holds ``NAME.jsonl.xz``, the runs that are kept, and ``NAME.jsonl``, those since; either may be missing. A line
        that a crash cut short, or that is not a record, is skipped.
    name : str
    """

    def __init__(self, folder: str | Path, name: str) -> None:
        self.path = Path(folder) / f"{name}.jsonl"
        self.kept = self.path.with_suffix(".jsonl.xz")
        self._found: dict[str, dict[str, Any]] = {}
        self._cut = False  # the last line lacks its end: the next record starts a new one
        if self.kept.exists():
            self._take(lzma.decompress(self.kept.read_bytes()).decode())
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
            self._cut = bool(text) and not text.endswith("\n")
            self._take(text)

    def _take(self, text: str) -> None:
        """The records among the lines of a text."""
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict) and isinstance(record.get("key"), str):
                self._found[record["key"]] = record

    def settled(self, key: str, trace: list[float] | None = None) -> bool:
        """Whether a run is done: with the same trace of its defaults, and not one that only lacked a package."""
        record = self._found.get(key, {"error": "ImportError"})
        before = record.get("trace")
        same = trace is None or before is None or np.allclose(before, trace, 0.01, 1e-4, equal_nan=True)
        return same and "ImportError" not in str(record.get("error"))

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._found[key]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._found.values())

    def environments(self) -> list[dict[str, Any]]:
        """Machines and versions that the runs name, each once."""
        found = [record.get("environment", {}) for record in self._found.values()]
        return list({json.dumps(one): one for one in found}.values())

    def get(self, key: str) -> dict[str, Any] | None:
        return self._found.get(key)

    def add(self, record: dict[str, Any]) -> None:
        """Append a run and force it to the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = ("\n" if self._cut else "") + json.dumps(record) + "\n"
        with open(self.path, "ab", buffering=0) as file:
            file.write(line.encode())  # in one piece: another process may be adding a run of its own
            os.fsync(file.fileno())
        self._cut = False
        self._found[record["key"]] = record

    def keep(self) -> None:
        """Move all runs to the compact file: curves with four digits, everything else as it is."""
        lines = "".join(json.dumps(_compact(record)) + "\n" for record in self)
        before = self.kept.with_suffix(".tmp")
        before.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
        before.replace(self.kept)
        self.path.unlink(missing_ok=True)


def _compact(record: dict[str, Any]) -> dict[str, Any]:
    """A record whose curves have the digits that a picture needs."""
    record = dict(record)
    if record.get("curve"):
        at, values = record["curve"]
        record["curve"] = [at, _rounded(values)]
    if record.get("curves"):
        record["curves"] = {name: _rounded(values) for name, values in record["curves"].items()}
    return record


def _rounded(values: list[Any]) -> list[Any]:
    return [float(f"{value:.4g}") if isinstance(value, float) else value for value in values]
