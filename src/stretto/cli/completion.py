"""The verb `completion`: prints a script that completes commands in bash or zsh."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, StrettoError
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stretto.cli.verbs import Verb

DESCRIPTION = """\
Print a script that completes verbs and options of `stretto`.

  stretto completion bash >> ~/.bashrc
  stretto completion zsh >> ~/.zshrc        after compinit
"""
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_DESCRIBED = re.compile(r"^ {1,8}(-.*?)(?:  |$)", re.MULTILINE)
"""An option at the start of a line; deeper lines continue a description."""

BASH = """\
_stretto() {{
  local words="" word=${{COMP_WORDS[COMP_CWORD]}}
  if [ "$COMP_CWORD" = 1 ]; then
    words="{verbs}"
  elif [[ $word == -* ]]; then
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _stretto stretto
"""
ZSH = """\
#compdef stretto
_stretto() {{
  local -a found
  if (( CURRENT == 2 )); then
    found=({verbs})
  elif [[ $PREFIX == -* ]]; then
    case $words[2] in
{cases}
    esac
  else
    _files
    return
  fi
  compadd -- $found
}}
compdef _stretto stretto
"""
SHELLS = {
    "bash": (BASH, '      {verb}) words="{options}" ;;'),
    "zsh": (ZSH, "      {verb}) found=({options}) ;;"),
}
"""(script, line of a verb) by shell."""


def run(arguments: Sequence[str]) -> int:
    """Run `stretto completion`; return the exit code."""
    parser = VerbParser("completion", DESCRIPTION)
    parser.add_argument("shell", choices=sorted(SHELLS), metavar="bash|zsh", help="the shell")
    print(script(parser.parse_args(arguments).shell, _options_of_verbs()), end="")
    return 0


def script(shell: str, options: Mapping[str, Sequence[str]]) -> str:
    """Return the script for a shell, from the options of each verb."""
    text, line = SHELLS[shell]
    cases = [line.format(verb=verb, options=" ".join(words)) for verb, words in options.items()]
    return text.format(verbs=" ".join(options), cases="\n".join(cases))


def _options_of_verbs() -> dict[str, list[str]]:
    """Return the options in the help text of each verb, also of verbs of other packages."""
    from stretto.cli.verbs import described_verbs, load_verb

    options = {}
    for verb in described_verbs():
        try:
            options[verb] = options_in(_help_of(load_verb(verb)))
        except (CommandError, StrettoError, ImportError):
            continue  # The verb's distribution isn't installed.
    return options


def _help_of(verb: Verb) -> str:
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text), suppress(SystemExit):
        verb(["--help"])
    return text.getvalue()


def options_in(text: str) -> list[str]:
    """Return the long options that a help text describes, in order."""
    described = _DESCRIBED.findall(text)
    return list(dict.fromkeys(option for each in described for option in _OPTION.findall(each)))
