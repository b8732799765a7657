"""Options of algorithms, from the registry."""

import json
import re

import numpy as np
import pytest
from command_line import out
from recipes import first_of_each_class

from kernelstream import zoo
from kernelstream.cli import algorithms
from kernelstream.cli.algorithms import options_of
from kernelstream.cli.targets import find_task
from kernelstream.cli.values import parameter, value
from kernelstream.kernels import Polynomial
from kernelstream.losses import Huber

pytestmark = pytest.mark.usefixtures("plain_default", "short_searches")


def test_a_word_about_every_option():
    options = {option for name in zoo.names() for option in options_of(zoo.get(name))}
    assert options == algorithms.OPTION_WORDS.keys()


NAMES = [name for name in zoo.names() if name not in zoo.names("novelty")]


def test_every_algorithm_has_its_options(capsys):
    for name in NAMES:
        shown = out(capsys, "train", "--algorithm", name, "--help")
        for option in options_of(zoo.get(name)):
            assert f"--{option.replace('_', '-')}" in shown, (name, option)


@pytest.mark.parametrize("name", first_of_each_class(NAMES))
def test_every_kind_of_algorithm_learns(name, home, tmp_path, capsys):
    task = zoo.get(name).tasks[0]
    data = home / "flats.svm"
    if task == "regression":
        data = tmp_path / "r.csv"
        data.write_text("a,y\n" + "".join(f"{i % 17},{(i % 17) ** 2 / 7}\n" for i in range(300)))
    options = ["--target", "y"] if task == "regression" else []
    if name.startswith("doubly"):  # they choose by trials, of this size
        options += ["--batch-size", "16", "--block-size", "8"]
    model = tmp_path / "m.ks"
    text = out(capsys, "train", data, *options, "--task", task, "-a", name, "-m", model, "--limit", 60, "--json")
    assert json.loads(text)["rows"] == 60
    assert len(out(capsys, "predict", model, data, "--limit", 20).split()) == 20


def test_values_of_options():
    assert [value(t) for t in ("3", "-2", "1_000", "0.5", "1e-3", "none", "True", "inf", "median", "a b")] == [
        3, -2, 1000, 0.5, 0.001, None, True, float("inf"), "median", "a b"]  # fmt: skip
    assert repr(parameter("polynomial(degree=3, c=2.0)")) == repr(Polynomial(degree=3, c=2.0))
    assert repr(parameter("huber(2)")) == repr(Huber(2))
    assert repr(parameter("averaged(ogd(eta=0.5))")) == "Averaged(update=OGD(eta=0.5))"


@pytest.mark.parametrize(
    "name, option", [("random_binning_svm", {"C": "abc"}), ("omkl_u", {"kernels": -1}), ("bogd", {"eta": [1, 2]})]
)
def test_options_that_a_recipe_cannot_reckon_with(name, option):
    [(given, value)] = option.items()
    with pytest.raises(ValueError, match=re.escape(f"{name!r} cannot use {given}={value!r}: ")):
        zoo.make(name, **option)
    with pytest.raises(ValueError, match=re.escape(f"{given}={value!r}")):
        algorithms.made(zoo.get(name), "binary", option)


def test_tasks():
    assert find_task(np.array([1.0, 2, 3])) == "multiclass"
    assert find_task(np.arange(100.0)) == "regression"
    assert find_task(np.array([0.5])) == "regression"
    assert find_task(np.array([1e200, 2e200])) == "regression"  # whole numbers, but no labels
    assert find_task(np.array([1, 1])) == "binary"
    assert find_task(np.array(["a", "b"])) == "binary"
