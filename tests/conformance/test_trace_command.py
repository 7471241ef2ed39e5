"""With the same service, `stretto trace` behaves as the command `perfetto` v56.

Both commands run each command line; exit status, standard output and files must be equal.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from stretto.protos.config import TraceConfig
from stretto.protos.trace import Trace, TracingServiceState
from stretto.protozero.filter.schema import DENY, SchemaFilter
from stretto.protozero.text_format import parse_text
from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.trace_commands import BRIEF, FILES, FULL, SOURCE, Effects, TraceCommand, end
from tests.support.traced import TIMEOUT_S, Daemon

pytestmark = [pytest.mark.thorough, pytest.mark.once]

LINES = """

--nope
-x
-c
--nope --version
--nope --reset-guardrails
--reset-guardrails
--version
--txt
-o out
--txt -o out
-t 50ms -- sched
-t 50ms -o out ''
--txt -c brief
--txt -c brief -o out
--txt -c brief -o -
--txt -c brief -o out -o out2
--txt --config brief --out out
--txt --config=brief --out=out
--txt -cbrief -oout
-c brief -o out
-c brief --txt -o out -c binary
-c binary -o out
-c broken_binary -o out
-c empty -o out
-c empty --txt -o out
-c missing -o out
-c . -o out
-c unknown_field --txt -o out
-c broken_syntax --txt -o out
-c no_buffer --txt -o out
-c too_long --txt -o out
-c brief --txt --txt-lossy -o out
-c into_file --txt -o out
-c into_file --txt -o -
-c fires --txt
-c fires --txt -o out
-c fires --txt -d
-c fires --txt -D
-c fires_and_writes --txt
-c fires_and_writes --txt --detach k
-c to_path --txt
-c to_path --txt -o out
-c to_taken_path --txt
-c to_path_by_nobody --txt
-c half_a_delay --txt -o out
-c delay --txt -o out
-c incident --txt -o out
-c no_incident --txt -o out
-c report --txt -o out
-c no_report --txt -o out
-c logging --txt -o out
-c brief --txt -o out < brief
-c - --txt -o out < brief
-c - -o out < binary
-c - -o out
-c - -t 50ms -o out
-c - -t 50ms -o out < brief
-c empty -t 50ms -o out
-c brief --txt -t 50ms -o out
-c brief --txt -o out sched
-t 50ms
-t 50ms -o out
-t 50ms -b 1mb -o out
-t 50ms -b 1x -o out
-t 50ms -b '' -o out
-t 50ms -b 0 -o out
-t 50ms -s 1mb -o out
-t 50ms -s 1zb -o out
-t 50ms -a app -o out
-t 50ms sched -o out
-o out -t 50ms -- sched
-t 50MS -o out
-t 50 -o out
-t 1.5s -o out
-t x -o out
-c brief --txt -o old
-c brief --txt -o old --no-clobber
-c brief --txt -o /nonexistent/out
-c brief --txt -o .
-c brief --txt -o ''
-c brief --txt -o /dev/null
--query
--query --long
--long
--query-raw
--query-raw --long
--query -c brief
--query -c empty
--query -c missing
--query -t 1s
--query -o out
--query -d
--query -D
--query --attach k
--query --detach k
--query --is_detached k
--query sched
--query --txt
--query --clone 1
--query --save-for-bugreport
--query --stop
--query --no-clobber
--detach k
--detach k -c brief --txt -o out
--detach k -c into_file --txt
--detach k --attach k
--detach k -d -c into_file --txt -o out
--detach k -D -c into_file --txt -o out
--attach none
--attach none --stop
--attach none -o out
--attach none -c brief
--attach none -t 1s
--attach none -d
--stop
--stop -c brief --txt -o out
--is_detached none
--is_detached=none
--is_detached none --stop
--is_detached none -o out
--is_detached none -c brief
--is_detached none -d
--clone 999
--clone 999 -o out
--clone 0 -o out
--clone -1 -o out
--clone=-1 -o out
--clone 999 -o -
--clone 999 -o old
--clone 999 -o old --no-clobber
--clone 999 --attach k
--clone 999 --detach k -o out
--clone 999 --txt -o out
--clone 999 -c brief --txt -o out
--clone 999 -c brief -o out
--clone 999 -t 1s -o out
--clone 999 --clone-for-bugreport -o out
--clone 1 --clone-by-name n -o out
--clone-by-name none
--clone-by-name none -o out
--clone-by-name '' -o out
--clone-for-bugreport -o out
--save-for-bugreport
--save-for-bugreport -o out
--save-for-bugreport -t 1s
--save-for-bugreport -c brief --txt
--save-for-bugreport -c empty
--save-for-bugreport -d
--save-for-bugreport -D
--save-for-bugreport --attach k
--save-for-bugreport --clone 1
--save-for-bugreport --save-all-for-bugreport
--save-for-bugreport --stop
--save-all-for-bugreport
--save-all-for-bugreport -o out
--save-all-for-bugreport -c brief --txt
--save-all-for-bugreport -d
--save-all-for-bugreport -D
--save-all-for-bugreport --clone 4
--save-all-for-bugreport --clone-for-bugreport
--save-all-for-bugreport --stop
--upload -c brief --txt
--dropbox
--dropbox x -c brief --txt
--no-guardrails -c brief --txt -o out
--add-attribute '' -c brief --txt -o out
--add-attribute =x -c brief --txt -o out
--alert-id 12 --config-id -5 --config-uid 7 --subscription-id 8 -c brief --txt -o out
--notify-fd 1 -c brief --txt -o out
--notify-fd 1 -c too_long --txt -o out
--notify-fd 1 -c fires --txt
--notify-fd 1 --clone 999 -o out
-d -c brief --txt -o out
-D -c brief --txt -o out
-dD -c brief --txt -o out
-d -c brief --txt -o -
-d -c unknown_field --txt -o out
--background -c brief --txt -o out
--background-wait -c brief --txt -o out
""".strip("\n").split("\n")

REFUSED_NUMBER = "a word that is no number, which perfetto takes for 0, is refused"


class Difference(NamedTuple):
    """A command line whose effect differs between the commands; docs/trace.md lists it."""

    line: str
    why: str
    perfetto: Effects
    stretto: Effects


NONE = "b''"
WRITTEN = {"out": "some"}
NEWER = "the flag is newer than v56"
DIFFERENCES = [
    Difference("--help", "help was asked for", Effects(1, NONE, {}), Effects(0, "some", {})),
    Difference(
        "--version --nope", "a wrong command line", Effects(0, "some", {}), Effects(1, NONE, {})
    ),
    Difference(
        "-c brief --txt-lossy -o out", NEWER, Effects(1, NONE, {}), Effects(0, NONE, WRITTEN)
    ),
    Difference(
        "--add-attribute k=v -c brief --txt -o out",
        NEWER,
        Effects(1, NONE, {}),
        Effects(0, NONE, WRITTEN),
    ),
    Difference(
        "--is-detached none", "a second spelling", Effects(1, NONE, {}), Effects(2, NONE, {})
    ),
    Difference(
        f"-c brief --txt -o {FULL}", "a full disk", Effects(0, NONE, {}), Effects(1, NONE, {})
    ),
    Difference("--clone x -o out", REFUSED_NUMBER, Effects(0, NONE, {}), Effects(1, NONE, {})),
    Difference(
        "--alert-id x -c brief --txt -o out",
        REFUSED_NUMBER,
        Effects(0, NONE, WRITTEN),
        Effects(1, NONE, {}),
    ),
    Difference(
        "-D --attach none",
        "no pid of a process that has failed",
        Effects(1, "a pid", {}),
        Effects(1, NONE, {}),
    ),
    Difference(
        "-d -c too_long --txt -o out",
        "no empty file is left",
        Effects(0, "a pid", {"out": "nothing"}),
        Effects(0, "a pid", {}),
    ),
    Difference(
        "--notify-fd 1 --is_detached none",
        "the descriptor gets its byte whatever happens",
        Effects(2, NONE, {}),
        Effects(2, r"b'\x01'", {}),
    ),
    Difference(
        "--notify-fd 1 --attach none",
        "the descriptor gets its byte whatever happens",
        Effects(2, NONE, {}),
        Effects(2, r"b'\x01'", {}),
    ),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    reason = newer_debian.missing()
    if reason:
        pytest.skip(reason)
    daemon = Daemon(tmp_path_factory.mktemp("daemon"))
    yield daemon
    daemon.close()


@pytest.fixture
def commands(daemon: Daemon, tmp_path: Path) -> tuple[TraceCommand, TraceCommand]:
    """The commands `perfetto` and `stretto trace`, in this order."""
    return _commands(tmp_path, daemon.environment)


def _commands(folder: Path, environment: dict[str, str]) -> tuple[TraceCommand, TraceCommand]:
    perfetto = TraceCommand("perfetto", folder / "perfetto", environment)
    return perfetto, TraceCommand("stretto", folder / "stretto", environment)


def _run(command: TraceCommand, line: str) -> Effects:
    line, _, stdin = line.partition(" < ")
    return command.run(*shlex.split(line), stdin=FILES[stdin] if stdin else b"")


@pytest.mark.parametrize("line", LINES)
def test_command_line_has_the_same_effect_with_stretto_and_perfetto(
    commands: tuple[TraceCommand, TraceCommand], line: str
) -> None:
    perfetto, stretto = commands
    assert _run(stretto, line) == _run(perfetto, line)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.line)
def test_difference_listed_in_the_documentation_exists(
    commands: tuple[TraceCommand, TraceCommand], difference: Difference
) -> None:
    perfetto, stretto = commands
    assert _run(perfetto, difference.line) == difference.perfetto
    assert _run(stretto, difference.line) == difference.stretto


@pytest.mark.parametrize(
    "line",
    [
        "-c brief --txt",
        "-c fires --txt",
        "-c fires --txt -d",
        "--query",
        "--query-raw",
        "--attach none",
        "--is_detached none",
        "--save-all-for-bugreport",
        "--notify-fd 1 --query",
        "--notify-fd 1 -c brief --txt -o /dev/null",
        "-c brief --txt -o -",
        "--clone 1 -o -",
    ],
)
def test_exit_status_without_a_service_equals_that_of_perfetto(
    daemon: Daemon, tmp_path: Path, line: str
) -> None:
    nowhere = str(tmp_path / "none")
    environment = {
        **daemon.environment,
        "PERFETTO_PRODUCER_SOCK_NAME": nowhere,
        "PERFETTO_CONSUMER_SOCK_NAME": nowhere,
    }
    perfetto, stretto = _commands(tmp_path, environment)
    assert _run(stretto, line) == _run(perfetto, line)


def _sessions(command: TraceCommand) -> int:
    return len(_state(command).tracing_sessions)


def _state(command: TraceCommand) -> TracingServiceState:
    with command.popen("--query-raw", stdout=subprocess.PIPE) as process:
        return TracingServiceState.decode(process.communicate(timeout=TIMEOUT_S)[0])


def _detaching(command: TraceCommand) -> list[object]:
    """Scenario: detach a session, look it up, and attach to it."""
    return [
        command.run("--detach", "k", "-c", "endless_into_file", "--txt", "-o", "out").status,
        command.run("--detach", "k", "-c", "endless_into_file", "--txt", "-o", "/dev/null").status,
        _sessions(command),
        command.run("--is_detached", "k").status,
        command.run("--is_detached", "k", "--stop").status,
        command.run("--is_detached", "other").status,
        command.run("--attach", "k", "--stop"),
        bool(_config_in(command.folder / "out")),
        command.run("--is_detached", "k").status,
        _sessions(command),
    ]


def _filtered() -> bytes:
    """Return a config whose trace filter removes the config from the trace."""
    bytecode, overlay = SchemaFilter(Trace, {"TracePacket.trace_config": DENY}).generate()
    config = parse_text(f'{SOURCE} unique_session_name: "mine" bugreport_score: 5', TraceConfig)
    config.trace_filter = TraceConfig.TraceFilter(
        bytecode_v2=bytecode, bytecode_overlay_v54=overlay
    )
    return config.encode()


def _copying(command: TraceCommand) -> list[object]:
    """Scenario: clone a session with and without its trace filter."""
    with command.popen("-c", "-", "-o", "original", stdin=subprocess.PIPE) as session:
        assert session.stdin is not None
        session.stdin.write(_filtered())
        session.stdin.close()
        wait_until(lambda: _sessions(command) == 1, "the session")
        number = str(_state(command).tracing_sessions[0].id)
        results: list[object] = [
            command.run("--clone", number, "-o", "by_number"),
            command.run("-d", "--clone", number, "-o", "behind"),
            command.run("--clone-by-name", "mine", "-o", "by_name"),
            command.run("--clone", number, "--clone-for-bugreport", "-o", "report"),
            command.run("--clone-by-name", "mine", "--clone-for-bugreport", "-o", "named_report"),
            command.run("--clone", "-1", "-o", "best"),
        ]
        files = ["by_number", "behind", "by_name", "report", "named_report", "best", "original"]
        end(session)
        results.append(session.wait(TIMEOUT_S))
    assert _config_in(command.folder / "report")
    assert not _config_in(command.folder / "by_number")
    results += [bool(_config_in(command.folder / name)) for name in files]
    return results


def _config_in(trace: Path) -> TraceConfig | None:
    """Return the config in a trace, or None if the trace filter has removed it."""
    packets = Trace.decode(trace.read_bytes()).packet
    return next((each.trace_config for each in packets if each.trace_config), None)


def _invalid(command: TraceCommand) -> list[object]:
    """Scenario: pass an incomplete config on standard input."""
    return [command.run("-c", "-", "--txt", "-o", "out", stdin=BRIEF[:-1])]


@pytest.mark.parametrize("scenario", [_detaching, _copying, _invalid])
def test_scenario_has_the_same_results_with_stretto_and_perfetto(
    commands: tuple[TraceCommand, TraceCommand],
    scenario: Callable[[TraceCommand], list[object]],
) -> None:
    perfetto, stretto = commands
    assert scenario(stretto) == scenario(perfetto)
