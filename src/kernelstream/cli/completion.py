"""``completion``: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from typing import NoReturn

from .base import COMMANDS, Run, UsageError, command

EXAMPLES = """examples:
  source <(kernelstream completion bash)                      in ~/.bashrc
  source <(kernelstream completion zsh)                       in ~/.zshrc, after compinit
  kernelstream completion fish > ~/.config/fish/completions/kernelstream.fish
"""

BASH = """_kernelstream() {{
  local words= word=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  case "$COMP_CWORD ${{COMP_WORDS[1]}}" in
  "1 "*) words="{commands}" ;;
{cases}
  esac
  if [[ $COMP_CWORD == 1 || $word == -* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
}}
complete -o default -F _kernelstream kernelstream
"""  # an empty answer completes files


@command("completion", "print a script that completes commands and options in a shell", "{bash,zsh,fish}", EXAMPLES)
def _completion(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="what the script is for")

    def run(args: argparse.Namespace) -> None:
        options = dict(_options())
        if args.shell == "fish":
            for name, found in options.items():
                print(f"complete -c kernelstream -n __fish_use_subcommand -a {name} -d '{COMMANDS[name].help}'")
                words = " ".join(f"-l {option[2:]}" for option in found)
                print(f"complete -c kernelstream -n '__fish_seen_subcommand_from {name}' {words}")
            return
        cases = "\n".join(f'  *" {name}") words="{" ".join(found)}" ;;' for name, found in options.items())
        print("autoload -U +X bashcompinit && bashcompinit\n" * (args.shell == "zsh"), end="")
        print(BASH.format(commands=" ".join(options), cases=cases), end="")

    return run


def _options() -> Iterator[tuple[str, list[str]]]:
    """Every command that is installed, and its long options."""
    from . import MODULES, packages

    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
    for name in packages.names():
        packages.load(name)
    for name, about in COMMANDS.items():
        parser = _Raising(prog=name)
        try:
            about.setup(parser, [name])
        except UsageError:  # it comes with another package
            continue
        yield name, [option for option in parser._option_string_actions if option.startswith("--")]


class _Raising(argparse.ArgumentParser):
    """A parser whose errors do not end the program."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)
