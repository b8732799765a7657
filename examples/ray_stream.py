"""Learners by key on Ray: an actor for each shard of the keys, whose state is the bytes of its learners.

    pip install kernelstream ray
    python examples/ray_stream.py

Ray restarts an actor that dies, but does not keep its state: each shard writes its states to a folder when it has
learned a batch, together with the number of the batch, and leaves out what it has when a batch comes again.
"""

from __future__ import annotations

import os
import pickle
import random
import tempfile
from pathlib import Path
from typing import Any

import ray

from kernelstream import KernelRegressor
from kernelstream.keyed import KeyedLearner

Sale = tuple[str, dict[str, Any], float]  # shop, row, sold


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Shard:
    """Learners of some of the keys."""

    def __init__(self, path: Path):
        self.path, self.learner = path, KeyedLearner(KernelRegressor(size="small", random_state=0), encode=True)
        self.coming, self.states = pickle.loads(path.read_bytes()) if path.exists() else (0, {})

    def learn(self, number: int, sales: list[Sale]) -> dict[str, list[float]]:
        """Forecasts of a batch, made before it was learned; nothing of a batch that was learned before."""
        if number < self.coming:
            return {}
        said = {}
        for shop in sorted({shop for shop, _, _ in sales}):
            rows, y = zip(*((row, sold) for key, row, sold in sales if key == shop))
            self.states[shop], found = self.learner.step(self.states.get(shop), list(rows), list(y))
            said[shop] = found.prediction
        self.coming = number + 1
        beside = self.path.with_suffix(".new")
        beside.write_bytes(pickle.dumps((self.coming, self.states)))
        os.replace(beside, self.path)
        return said


def sales(n: int = 1_200, shops: int = 4) -> list[Sale]:
    """Sales of some shops by weekday and weather, generated."""
    rng, found = random.Random(0), []
    for i in range(n):
        shop, day, rain = i % shops, i // shops % 7, rng.random() < 0.3
        sold = 20.0 + 5 * shop + (8 if day >= 5 else 0) - 4 * rain + rng.gauss(0, 1)
        found.append((f"shop-{shop}", {"weekday": day, "weather": "rain" if rain else "sun"}, sold))
    return found


def main() -> None:
    ray.init(num_cpus=2, log_to_driver=False)
    folder, stream = Path(tempfile.mkdtemp(prefix="ray-stream-")), sales()
    shards = [Shard.remote(folder / f"{i}.states") for i in range(2)]
    for number, start in enumerate(range(0, len(stream), 300)):
        batch = stream[start : start + 300]
        if number == 2:
            ray.kill(shards[0], no_restart=False)  # it comes back with what it had learned
        parts = [[sale for sale in batch if int(sale[0][-1]) % 2 == i] for i in range(2)]
        said: dict[str, list[float]] = {}
        for found in ray.get([shard.learn.remote(number, part) for shard, part in zip(shards, parts)]):
            said |= found
        for shop, expected in said.items():
            truth = [sold for key, _, sold in batch if key == shop]
            error = sum(abs(a - b) for a, b in zip(truth, expected)) / len(truth)
            print(f"batch {number}, {shop}: mean error {error:.2f}", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
