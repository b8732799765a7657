"""A learner for each key in Quix Streams. The state of a key, stored in RocksDB and a changelog topic, is a model file.

    pip install kernelstream quixstreams
    python examples/quix_stream.py localhost:9092

Messages of the topic "sales" are JSON objects ``{"weekday": 5, "weather": "rain", "sold": 24.5}`` with the shop as key.
Forecasts, made before a message is learned, go to the topic "forecasts". With ``processing_guarantee="exactly-once"``
state, answers and offsets are committed together, so every message is learned once.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from quixstreams import Application, State

from kernelstream import KernelRegressor
from kernelstream_service.keyed import KeyedLearner

learner = KeyedLearner(KernelRegressor(size="small", random_state=0), encode=True)


def answered(sale: dict[str, Any], state: State) -> dict[str, Any]:
    """Predict a message, then learn it."""
    kept = state.get("model")  # Quix stores strings and numbers
    row = {name: value for name, value in sale.items() if name != "sold"}
    model, found = learner.step(None if kept is None else base64.b64decode(kept), [row], [sale.get("sold")])
    state.set("model", base64.b64encode(model).decode())
    return {"forecast": found.prediction[0], "sold": sale.get("sold"), "problem": found.problem[0]}


def make_app(broker: str, **options: Any) -> Application:
    """Messages in, forecasts out."""
    app = Application(broker, consumer_group="learning", auto_offset_reset="earliest", **options)
    frame = app.dataframe(app.topic("sales", value_deserializer="json"))
    frame.apply(answered, stateful=True).to_topic(app.topic("forecasts", value_serializer="json"))
    return app


if __name__ == "__main__":
    make_app(sys.argv[1], processing_guarantee="exactly-once").run()
