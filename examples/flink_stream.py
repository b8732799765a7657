"""A learner for each key on Flink. The state of a key, stored in Flink's checkpoints, is a model file.

    pip install kernelstream apache-flink        # Python up to 3.12, Java 11 or 17
    python examples/flink_stream.py

The learner of a shop predicts every sale and then learns it. Flink stores states and source positions together: after a
failure it returns to the last checkpoint, and every sale is learned once.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

from kernelstream import FeatureRegressor
from kernelstream_service.keyed import KeyedLearner

SALE = Types.ROW([Types.STRING(), Types.STRING()])  # shop, message
ANSWER = Types.ROW([Types.STRING(), Types.DOUBLE(), Types.DOUBLE()])  # shop, forecast, sold


class Learn(KeyedProcessFunction):
    def open(self, context: Any) -> None:
        self.learner = KeyedLearner(FeatureRegressor(random_state=0), encode=True)
        self.model = context.get_state(ValueStateDescriptor("model", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, sale: Any, context: Any) -> Iterator[Any]:
        state, found = self.learner.messages(self.model.value(), [sale[1]], "sold")
        self.model.update(state)
        yield Row(sale[0], found.prediction[0] or 0.0, json.loads(sale[1])["sold"])


def sales(n: int = 1_200, shops: int = 4) -> list[Any]:
    """Sales of some shops by weekday and weather, generated."""
    rng, found = random.Random(0), []
    for i in range(n):
        shop, day, rain = i % shops, i // shops % 7, rng.random() < 0.3
        sold = 20.0 + 5 * shop + (8 if day >= 5 else 0) - 4 * rain + rng.gauss(0, 1)
        row = {"weekday": day, "weather": "rain" if rain else "sun", "sold": sold}
        found.append(Row(f"shop-{shop}", json.dumps(row)))
    return found


if __name__ == "__main__":
    flink = StreamExecutionEnvironment.get_execution_environment()
    flink.set_parallelism(2).enable_checkpointing(1000).set_python_executable(sys.executable)
    answers = flink.from_collection(sales(), SALE).key_by(lambda sale: sale[0]).process(Learn(), ANSWER)
    errors: dict[str, list[float]] = {}
    for shop, forecast, sold in answers.execute_and_collect():
        errors.setdefault(shop, []).append(abs(forecast - sold))
    for shop, found in sorted(errors.items()):
        print(f"{shop}: {len(found)} sales, mean error of the last 100 {sum(found[-100:]) / 100:.2f}")
