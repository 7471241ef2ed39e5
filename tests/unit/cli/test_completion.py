"""`stretto completion`: the scripts complete verbs and options."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from stretto.cli import completion

PROGRAM = """
complete_words() {{
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _stretto; echo "${{COMPREPLY[@]}}"
}}
{script}
complete_words stretto rec
complete_words stretto record --ful
complete_words stretto view --of
complete_words stretto record app
complete_words stretto nothing --x
"""


def test_bash_completes_verbs_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.run(["bash"]) == 0
    program = PROGRAM.format(script=capsys.readouterr().out)
    done = subprocess.run(["bash", "-uc", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["record recover", "--full", "--offline", "", ""]
    assert done.stderr == ""


def test_zsh_script_has_the_options_of_each_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.run(["zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef stretto\n")
    assert "      doctor) found=(--help) ;;" in script
    if shell := shutil.which("zsh"):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_options_in_the_examples_of_a_help_text_are_ignored() -> None:
    text = (
        "  stretto record app.py --its-own\noptions:\n  -o, --output OUT  with --stream\n  --x-y\n"
    )
    assert completion.options_in(text) == ["--output", "--x-y"]


def test_option_that_a_description_breaks_over_two_lines_is_ignored() -> None:
    text = "options:\n  --ring       the default with\n               --min-\n               size\n"
    assert completion.options_in(text) == ["--ring"]
