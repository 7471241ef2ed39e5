from __future__ import annotations

import pytest

from stretto.base.errors import CommandError
from stretto.cli.trace.options import parse


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-c x",
        "-c x --txt --txt-lossy -o y",
        "--query --attach k",
        "--query -o y",
        "--query -t 5s",
        "--attach k -o y",
        "--attach k sched",
        "--attach=",
        "--detach= -c x -o y",
        "--is_detached=",
        "--clone 1 --detach k -o y",
        "--clone-by-name= -o y",
        "--save-for-bugreport -o y",
        "--save-all-for-bugreport -t 5s",
        "--add-attribute =x --query",
        "--nonsense --version",
        "--nonsense --reset-guardrails",
        "--query -d",
        "--long",
        "--attach k --detach k",
        "-c x -o y --detach k -d",
        "--stop",
        "--save-for-bugreport --attach k",
        "--clone 1 --clone-by-name n -o y",
        "--clone 1",
        "--clone-for-bugreport -c x -o y",
        "--clone x -o y",
        "--clone 18446744073709551650 -o y",
        "--upload -c x",
        "--nonsense",
    ],
)
def test_contradictory_options_exit_with_1(words: str) -> None:
    if words == "-c x":
        return_value = parse(words.split())
        assert return_value.out is None  # Without -o, the config may have an output_path.
        return
    with pytest.raises(CommandError, match="--help") as caught:
        parse(words.split())
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        "-c - -t 5s -o y",  # The config on standard input may be empty.
        "--query-raw --long",
        "--query --clone 1",
        "--is_detached k --stop",
        "--clone 1 -o y -c x",
        "--save-for-bugreport --clone 1",
    ],
)
def test_option_combinations_accepted_by_perfetto_are_accepted(words: str) -> None:
    parse(words.split())


def test_empty_light_mode_option_selects_the_light_mode() -> None:
    assert parse(["-t", "", "-o", "y"]).light


def test_event_names_may_be_between_options() -> None:
    options = parse("sched/sched_switch -t 5s gfx -b 1mb -a one -a two -o -".split())
    assert options.events == ["sched/sched_switch", "gfx"]
    assert (options.time, options.buffer, options.app) == ("5s", "1mb", ["one", "two"])
    assert options.out == "-"
    assert options.light


def test_category_option_selects_the_light_mode_and_its_default_output_file() -> None:
    options = parse("--category shop -t 5s".split())
    assert (options.light, options.category, options.out) == (True, ["shop"], "trace.pftrace")
    assert parse("--category shop -o -".split()).out == "-"


def test_clone_option_accepts_session_minus_1() -> None:
    assert parse("--clone -1 -o y".split()).clone == -1
