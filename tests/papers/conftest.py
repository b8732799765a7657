"""The small experiment that tests of runs and of pages share."""

import pytest
from small_experiment import TEXT

import kernelstream_papers as reproduce


@pytest.fixture
def small():
    return reproduce.parse("small", TEXT)
