"""Python processes that can't be recorded are detected by their command line."""

from __future__ import annotations

import pytest

from stretto.recorder.python_command import isolating_option, short_command


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("python x.py -I", ""),
        ("python -I x.py", "-I"),
        ("python -uE x.py", "-E"),
        ("python -W Ignore -X Imp -S", "-S"),
        ("python -m mod -I", ""),
        ("python -c code -I", ""),
        ("python --help", ""),
        ("python", ""),
    ],
)
def test_options_that_disable_sitecustomize_are_detected(arguments, option):
    assert isolating_option(arguments.split()) == option


def test_short_command_is_one_line_without_the_folder_of_its_program():
    folder = "/" + "x" * 150
    assert short_command([f"{folder}/python3", "-c", "if 1:\n  2"]) == "python3 -c if 1: 2"
    assert len(short_command(["python3", *map(str, range(100))])) == 60
    assert short_command([]) == ""
