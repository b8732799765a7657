"""The command, called as the shell would call it."""

from kernelstream import cli


def run(*argv):
    """Exit code of a command."""
    try:
        return cli.main([str(word) for word in argv])
    except SystemExit as stop:
        return stop.code


def out(capsys, *argv):
    """Standard output of a command that succeeds."""
    capsys.readouterr()
    assert run(*argv) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def err(capsys, code, *argv):
    """Standard error of a command that ends with a code."""
    capsys.readouterr()
    found = run(*argv)
    said = capsys.readouterr().err
    assert found == code, said
    return said
