"""The command, called as the shell would call it."""

from kernelstream import cli


def run(*argv):
    """Exit code of a command."""
    return cli.main([str(word) for word in argv])


def out(capsys, *argv):
    """Standard output of a command that succeeds."""
    capsys.readouterr()
    assert run(*argv) == 0, capsys.readouterr().err
    return capsys.readouterr().out
