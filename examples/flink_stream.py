"""Learners by key in Flink: a KeyedProcessFunction whose state, in Flink's checkpoints, is a model file.

    pip install kernelstream apache-flink
    python examples/flink_stream.py

For Kafka put a ``KafkaSource`` in the place of the collection. With checkpoints enabled, Flink goes on after a failure
from the states and the offsets of the last one: every row is learned once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

from kernelstream import KernelRegressor
from kernelstream.keyed import KeyedLearner

Sale = tuple[str, int, str, float]  # shop, weekday, weather, sold


class Learning(KeyedProcessFunction):
    """The operator: a learner for each key, in bytes."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.learner = KeyedLearner(KernelRegressor(size="small", random_state=0), encode=True)
        self.model = runtime_context.get_state(ValueStateDescriptor("model", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Sale, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        shop, weekday, weather, sold = value
        state, found = self.learner.step(self.model.value(), [{"weekday": weekday, "weather": weather}], [sold])
        self.model.update(state)
        yield f"{shop}: {found.prediction[0]:.1f} expected, {sold:.1f} sold"


def sales(n: int = 300, shops: int = 3) -> list[Sale]:
    """Sales of some shops by weekday and weather, generated."""
    rng, found = random.Random(0), []
    for i in range(n):
        shop, day, rain = i % shops, i // shops % 7, rng.random() < 0.3
        sold = 20.0 + 5 * shop + (8 if day >= 5 else 0) - 4 * rain + rng.gauss(0, 1)
        found.append((f"shop-{shop}", day, "rain" if rain else "sun", sold))
    return found


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    kinds = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING(), Types.DOUBLE()])
    stream = env.from_collection(sales(), type_info=kinds)
    stream.key_by(lambda sale: sale[0]).process(Learning(), Types.STRING()).print()
    env.execute("learning")


if __name__ == "__main__":
    main()
