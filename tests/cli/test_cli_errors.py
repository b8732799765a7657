"""What is wrong is said in a sentence."""

import os
from unittest.mock import Mock

import pytest
from command_line import err, out, run

import kernelstream
from kernelstream import FeatureClassifier

pytestmark = pytest.mark.usefixtures("plain_default")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["train"], 2, "--model"),
        (["train", "-m", "m.ks"], 2, "no data: name a file"),
        (["train", "flats.csv", "-m", "m.ks"], 2, "--target: name the column of flats.csv that is to be learned"),
        (["train", "flats.csv", "--target", "prise", "-m", "m.ks"], 1, "did you mean 'price'"),
        (
            ["train", "flats.csv", "--target", "price", "--missing", "0", "-m", "m.ks"],
            1,
            "flats.csv, line 2: column 'city': ",
        ),
        (["train", "missing.csv", "-m", "m.ks"], 1, "missing.csv: No such file"),
        (["train", "flats.svm", "-m", "no/such/folder/m.ks"], 2, "no folder no/such/folder"),
        (["train", "flats.svm", "-m", "."], 2, "is a folder"),
        (["train", "flats.svm", "-m", "./flats.svm"], 2, "--model: ./flats.svm is read by this command"),
        (["predict", "ok.ks", "flats.svm", "--out", "flats.svm"], 2, "--out: flats.svm is read by this command"),
        (["predict", "ok.ks", "flats.svm", "--out", "ok.ks"], 2, "--out: ok.ks is read by this command"),
        (["train", "flats.svm", "-m", "m.ks", "--checkpoint", "flats.csv"], 2, "--checkpoint: flats.csv is a file"),
        (["predict", "numbers.ks", "lacks.csv", "--id", "id"], 2, "lacks.csv has no column 'rooms': it has id, size"),
        (["evaluate", "flats.svm", "-a", "falkon_logistic"], 1, "error: FalkonClassifier cannot learn from a stream"),
        (["predict", "ok.ks", "flats.svm", "--proba"], 2, "unknown argument --proba\n"),
        (["train", "flats.svm", "-m", "m.ks", "--resume"], 2, "--resume needs --checkpoint"),
        (["train", "flats.svm", "-m", "m.ks", "--budget", "3"], 2, "unknown argument --budget"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--gama", "3"], 2, "did you mean --gamma?"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fodg"], 2, "did you mean 'fogd'"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gausian"], 2, "did you mean 'gaussian'"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gaussian(3"], 2, "unknown kernel"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--kernel", "gaussian(nope=3)"], 2, "nope"),
        (["train", "flats.svm", "-m", "m.ks", "-a", "fogd", "--n-components", "many"], 1, "n_components"),
        (["train", "flats.svm", "-m", "m.ks", "--set", "nothing=3"], 2, "nothing"),
        (
            ["train", "flats.csv", "--target", "kind", "--drop", "city", "-m", "m.ks", "--task", "regression"],
            1,
            "is not a number",
        ),
        (
            ["train", "flats.csv", "--target", "price", "--drop", "city,kind", "-m", "m.ks", "--task", "binary"],
            1,
            "is not a label",
        ),
        (["train", "flats.svm", "-m", "m.ks", "--shuffle", "3"], 2, "--shuffle"),
        (["train", "flats.svm", "-m", "m.ks", "--target", "price"], 2, "--target is not an option of libsvm files"),
        (["train", "flats.svm", "-m", "m.ks", "--block", "ten"], 2, "argument --block: 'ten' is not a whole number"),
        (["train", "flats.csv", "-m", "m.ks", "--debug", "--blok", "9"], 2, "did you mean --block"),
        (["predict", "flats.svm", "ok.ks"], 2, "the model comes first"),
        (["predict", "flats.svm", "flats.svm"], 1, "flats.svm: this is not a kernelstream model file"),
        (["predict", "ok.ks"], 2, "a model file and data"),
        (["predict", "numbers.ks", "flats.csv", "--what", "probability"], 2, "has none"),
        (["train", "ok.ks", "-m", "m.ks"], 1, "is a model, not data"),
        (["evaluate", "flats.csv", "-m", "ok.ks"], 2, "--target"),
        (
            ["bench", "flats.svm", "--algorithms", "nothing"],
            2,
            "'nothing': 'kernelstream list algorithms' shows all",
        ),
        (["info", "missing.ks"], 1, "missing.ks: No such file"),
        (["info", "flats.csv"], 1, "not a kernelstream model file"),
        (["train", "dataset:nothing", "-m", "m.ks"], 1, "unknown data set 'nothing'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(argv, code, message, home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    if not (home / "ok.ks").exists():
        run("train", "flats.svm", "-m", "ok.ks", "-q")
        run("train", "flats.csv", "--target", "price", "--drop", "city,kind", "-m", "numbers.ks", "-q")
        (home / "lacks.csv").write_text("id,size\n1,50\n")
    shown = err(capsys, code, *argv)
    assert message in shown
    assert "Traceback" not in shown
    assert not (home / "m.ks").exists()


def test_bad_rows(tmp_path, capsys):
    (tmp_path / "bad.svm").write_text("1 1:1\noops\n-1 2:1\n1 1:x\n")
    train = ("train", tmp_path / "bad.svm", "-m", tmp_path / "m.ks")
    assert "bad.svm, line 2: the label is not a number" in err(capsys, 1, *train)
    assert "2 bad rows left out" in out(capsys, *train, "--on-error", "skip")
    assert run("predict", tmp_path / "m.ks", tmp_path / "bad.svm", "--on-error", "skip") == 0
    got = capsys.readouterr()
    assert got.out == "1\n\n-1\n\n"  # a line for every row, empty for those that cannot be read
    assert "2 bad rows have no prediction" in got.err


def test_where_a_model_goes(home, tmp_path, capsys):
    link = tmp_path / "link.ks"
    link.symlink_to(tmp_path / "m.ks")
    assert "link.ks (" in out(capsys, "train", home / "flats.svm", "--model", link)
    assert link.is_symlink()
    kernelstream.load(tmp_path / "m.ks")
    assert out(capsys, "train", home / "flats.svm", "--model", os.devnull).endswith(f"; {os.devnull}\n")
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    assert "--model" in err(capsys, 2, "train", home / "flats.svm", "--model", ring)  # before anything is read


def test_out_of_memory_is_an_error_message(home, tmp_path, capsys, monkeypatch):
    kernelstream.save(FeatureClassifier(random_state=0).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]), tmp_path / "m.ks")
    full = Mock(side_effect=MemoryError("Unable to allocate 5.82 TiB"))
    monkeypatch.setattr(FeatureClassifier, "predict", full)
    said = err(capsys, 1, "predict", tmp_path / "m.ks", home / "flats.svm")
    assert said == "kernelstream: error: there is not enough memory: Unable to allocate 5.82 TiB\n"


def test_what_may_have_been_meant(home, tmp_path, capsys):
    assert "did you mean 'train'?" in err(capsys, 2, "trian", home / "flats.svm")
    train = ["train", home / "flats.svm", "-m", tmp_path / "m.ks"]
    for options, meant in (
        (["-a", "auto", "--set", "sise=small"], "size"),
        (["-a", "nogd", "--loss", "log_loss"], "logistic"),
        (["-a", "ridge", "--set", "C=1"], "lam"),
    ):
        assert f"did you mean {meant!r}?" in err(capsys, 2, *train, *options)
