"""A learner for each key on Ray: an actor for each shard of the keys, whose state is the bytes of its learners.

    pip install kernelstream ray
    python examples/ray_stream.py

Ray restarts an actor that dies, but does not keep its state. So each shard writes its states to a folder after every
batch, with the number of the batch, and skips a batch that is repeated.
"""

from __future__ import annotations

import os
import pickle
import random
import tempfile
from pathlib import Path

import ray

from kernelstream import KernelRegressor
from kernelstream_service.keyed import KeyedLearner


@ray.remote(max_restarts=-1, max_task_retries=-1)
class Shard:
    def __init__(self, path: Path):
        self.path, self.learner = path, KeyedLearner(KernelRegressor(size="small", random_state=0), encode=True)
        self.coming, self.states = pickle.loads(path.read_bytes()) if path.exists() else (0, {})

    def learn(self, number: int, shop: str, rows: list[dict], y: list[float]) -> list[float]:
        """Forecasts for a batch, made before it is learned; none if the batch was learned already."""
        if number < self.coming:
            return []
        self.states[shop], found = self.learner.step(self.states.get(shop), rows, y)
        self.coming = number + 1
        beside = self.path.with_suffix(".new")
        beside.write_bytes(pickle.dumps((self.coming, self.states)))
        os.replace(beside, self.path)
        return found.prediction


def sales(shop: int, n: int = 100) -> tuple[list[dict], list[float]]:
    """Sales of a shop by weekday and weather, generated."""
    rng = random.Random(shop)
    rows = [{"weekday": i % 7, "weather": "rain" if rng.random() < 0.3 else "sun"} for i in range(n)]
    return rows, [20 + 5 * shop + 8 * (r["weekday"] > 4) - 4 * (r["weather"] == "rain") + rng.gauss(0, 1) for r in rows]


if __name__ == "__main__":
    ray.init(num_cpus=2, log_to_driver=False)
    folder = Path(tempfile.mkdtemp(prefix="ray-stream-"))
    shards = [Shard.remote(folder / f"{i}.states") for i in range(2)]
    for number in range(12):  # the shops take turns, three batches each
        shop, (rows, sold) = number % 4, sales(number % 4)
        if number == 8:
            ray.kill(shards[0], no_restart=False)  # it comes back with what it had learned
        said = ray.get(shards[shop % 2].learn.remote(number, f"shop-{shop}", rows, sold))
        error = sum(abs(a - (b or 0.0)) for a, b in zip(sold, said)) / len(said)
        print(f"batch {number}, shop {shop}: mean error {error:.2f}", flush=True)
