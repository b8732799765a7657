"""``python -m kernelstream_papers._alone``: one run in a process of its own, described on standard input."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from ._experiment import Algorithm, Data, Experiment
from ._job import run_job


def main() -> None:
    job: dict[str, Any] = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    algorithm = Algorithm(**job["algorithm"])
    data = Data(**job["data"])
    experiment = Experiment(
        job["experiment"], "", "", "", job["kind"], job["measure"], (data,), (algorithm,), {}, isolate=True
    )
    print(json.dumps(run_job(experiment, data, algorithm, job["settings"], job["order"], job["search"])))


if __name__ == "__main__":
    main()
