"""Completion in a shell: bash itself is asked what it would offer."""

import shutil
import subprocess

import pytest
from command_line import err, out

from kernelstream.cli import packages
from kernelstream.cli.base import COMMANDS

ASK = """
asked() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kernelstream; echo "${COMPREPLY[*]}"; }
asked kernelstream tr
asked kernelstream train --targe
asked kernelstream predict --wha
asked kernelstream train fla
asked kernelstream reproduce --li
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_offers_commands_and_their_options(capsys):
    script = out(capsys, "completion", "bash")
    told = subprocess.run(["bash", "-c", script + ASK], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:4] == ["train", "--target", "--what", ""]  # the last one is a file: bash's own
    assert told.stderr == ""


def test_other_shells(capsys):
    assert out(capsys, "completion", "zsh").endswith("bashcompinit\n" + out(capsys, "completion", "bash"))
    lines = out(capsys, "completion", "fish").splitlines()
    assert any(line.endswith("-a train -d 'learn a model from files or standard input, in one pass'") for line in lines)
    (bench,) = (line for line in lines if "seen_subcommand_from bench" in line)
    assert {"algorithms", "table", "target"} <= set(bench.split(" -l ")[1:])
    assert "argument" in err(capsys, 2, "completion", "tcsh")


def test_a_command_of_a_package_that_is_not_installed_is_left_out(capsys, monkeypatch):
    monkeypatch.setattr("kernelstream.cli.packages._points", lambda **which: ())
    for name in packages.OTHERS:
        monkeypatch.delitem(COMMANDS, name, raising=False)
    script = out(capsys, "completion", "bash")
    assert "reproduce" not in script and "serve" not in script and "train" in script
