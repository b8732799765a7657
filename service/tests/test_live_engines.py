"""The worked example of a durable learner inside a stream engine."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("bytewax")

from bytewax.testing import TestingSink, TestingSource, run_main

from kernelstream import OnlineRidge
from kernelstream.columns import Columns, make_stream
from kernelstream_service import DurableLearner

EXAMPLE = Path(__file__).parents[2] / "examples" / "bytewax_stream.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("bytewax_stream", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model():
    return make_stream(Columns(), OnlineRidge(random_state=0))


def test_one_model_for_each_key_and_each_message_once(example, tmp_path):
    """The engine gives the first half twice: the models are those that learned every message once, in order."""
    told, out = example.sales(300), []
    for part in (told[:150], told):  # as after a crash
        run_main(example.make_flow(TestingSource(part, batch_size=10), TestingSink(out), tmp_path, model()))
    assert sorted(forecast.position for _, forecast in out) == list(range(300))
    for key in {one.key for one in told}:
        mine = [one for one in told if one.key == key]
        with DurableLearner(tmp_path / key) as learner:
            assert learner.total == len(mine) == 100 and learner.positions == {key: mine[-1].position + 1}
            late = [(forecast.y, told[forecast.position].y) for k, forecast in out if k == key][50:]
            error = np.array([a - b for a, b in late])
            plain = model()
            plain.learn([one.row for one in mine], np.array([one.y for one in mine]))
            row = [{"weekday": 6, "weather": "sun"}]
            np.testing.assert_allclose(learner.model.predict(row), plain.predict(row), rtol=1e-9)
        assert np.sqrt(np.mean(error**2)) < 3.0  # the noise is 1, the spread of the sales about 4.5
