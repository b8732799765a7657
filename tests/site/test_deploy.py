"""The texts in deploy/: what they start is what the program takes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelstream import cli

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMAND = re.compile(r"kernelstream (serve .*)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["Dockerfile", "kernelstream.service"])
def test_the_command_is_one_of_the_program(name):
    (line,) = COMMAND.findall((DEPLOY / name).read_text())
    words = line.split()
    parsed = cli._parser(words).parse_args(words)
    assert parsed.token_file and parsed.store and parsed.models == [words[1]]


def test_the_proxy_reads_its_text(tmp_path):
    if shutil.which("nginx") is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed")
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=models", "-keyout", "key", "-out", "pem"]
    subprocess.run(["openssl", *made], cwd=tmp_path, check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("/etc/ssl/certs/models.pem", str(tmp_path / "pem"))
    text = text.replace("/etc/ssl/private/models.key", str(tmp_path / "key"))
    (tmp_path / "all.conf").write_text(f"pid {tmp_path}/pid; events {{}} http {{ {text} }}")
    found = subprocess.run(["nginx", "-t", "-c", tmp_path / "all.conf"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
