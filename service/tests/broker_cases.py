"""A source in memory, and the messages and the model of the tests of brokers."""

import json

import numpy as np

from kernelstream import FeatureRegressor
from kernelstream.features import RandomFourier
from kernelstream_service.sources import Message, Unavailable


def model():
    return FeatureRegressor(RandomFourier(n_components=10), random_state=0)


def content(i, key="a"):
    x = np.random.default_rng(i).normal(size=2)
    return json.dumps({"u": x[0], "v": x[1], "y": x[0] - x[1], "key": key}).encode()


class Listed:
    """A source in memory: parts with messages, which may be delivered again."""

    def __init__(self, parts, again=0):
        self.parts, self.again = parts, again
        self.places, self.answers, self.finished = {}, [], False

    def seek(self, positions):
        self.places = {part: max(0, int(positions.get(part, 0)) - self.again) for part in self.parts}

    def read(self, most, seconds):
        found = []
        for part, messages in self.parts.items():
            at = self.places[part]
            found += [Message(part, i, i + 1, messages[i]) for i in range(at, min(at + most, len(messages)))]
            self.places[part] = min(at + most, len(messages))
        self.finished = not found
        return found

    def answer(self, answers):
        self.answers += answers

    def settled(self, positions):
        self.told = positions

    def close(self):
        pass


class Flaky(Listed):
    """A source whose calls fail now and then, before they do anything or after it."""

    def __init__(self, parts, after):
        super().__init__(parts)
        self.after, self.calls = after, 0

    def fails(self, then):
        self.calls += 1
        if self.calls % 3 == 0 and not self.after:
            raise Unavailable("no answer")
        found = then()
        if self.calls % 3 == 0:
            raise Unavailable("no answer")
        return found

    def read(self, most, seconds):
        return self.fails(lambda: super(Flaky, self).read(most, seconds))

    def answer(self, answers):
        self.fails(lambda: super(Flaky, self).answer(answers))
