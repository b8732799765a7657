"""Fixtures of the tests of the command line."""

import pytest


@pytest.fixture(scope="module")
def plain_default():
    """The command line with FOGD as its default: for tests of the command line, which is quicker to learn with."""
    patch = pytest.MonkeyPatch()
    patch.setattr("kernelstream.cli._algorithms.DEFAULT", "fogd")
    yield
    patch.undo()
