"""What `stretto doctor` concludes from the state of a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stretto.cli.doctor import command, findings
from stretto.cli.doctor.findings import LIMITED, MISSING, OK, Finding
from stretto.cli.doctor.state import MachineState, gather

BEST = MachineState(python=(3, 14), perf_event_paranoid=0, tracefs="readable", service="v1")

CASES: list[tuple[Callable[[MachineState], Finding], dict[str, Any], str, str]] = [
    (findings.native_part, {"native": False, "system": "Darwin arm64"}, MISSING, "on Darwin arm64"),
    (findings.python, {"python": (3, 11)}, LIMITED, "also with `--auto`; `--attach` doesn't work"),
    (findings.python, {"python": (3, 13)}, LIMITED, "--attach PID` doesn't work"),
    (findings.python, {"free_threaded": True}, LIMITED, "with PYTHON_GIL=0 nothing is recorded"),
    (findings.shared_memory, {"memfd_error": "no memfd"}, MISSING, "no memfd. `stretto record`"),
    (findings.dev_shm, {"shm_free": None}, OK, "Stretto doesn't use it"),
    (findings.seccomp, {"seccomp": 2}, OK, "a filter is active"),
    (
        findings.seccomp,
        {"seccomp": 2, "reads_memory": False},
        LIMITED,
        "seccomp forbids process_vm",
    ),
    (findings.seccomp, {"reads_memory": False}, LIMITED, "the kernel lacks or forbids"),
    (findings.ptrace, {"ptrace_scope": 1}, LIMITED, "sysctl kernel.yama.ptrace_scope=0"),
    (findings.ptrace, {"ptrace_scope": 1, "root": True}, OK, "processes of all users"),
    (findings.ptrace, {"ptrace_scope": 2}, LIMITED, "only root may attach"),
    (findings.ptrace, {"ptrace_scope": 2, "root": True}, OK, "processes of all users"),
    (findings.ptrace, {"ptrace_scope": 3, "root": True}, LIMITED, "until the next boot"),
    (findings.ptrace, {"ptrace_scope": None}, OK, "processes of this user"),
    (findings.perf_events, {"perf_event_paranoid": 1}, LIMITED, "needs root"),
    (findings.perf_events, {"perf_event_paranoid": 3, "root": True}, OK, "allowed"),
    (findings.perf_events, {"perf_event_paranoid": None}, LIMITED, "this kernel has none"),
    (findings.gil_waits, {"gil_waits": "no slot"}, LIMITED, "no slot: `--gil-waits` records none"),
    (findings.tracefs, {"tracefs": "denied"}, LIMITED, "readable by root only"),
    (findings.tracefs, {"tracefs": "missing"}, LIMITED, "not mounted"),
    (findings.tracefs, {"tracefs": "other ids"}, LIMITED, "this is a PID namespace"),
    (findings.clock, {"clock_source": "kvm-clock"}, LIMITED, "kvm-clock: each event costs"),
    (findings.clock, {"clock_source": ""}, LIMITED, "unknown"),
    (findings.descriptors, {"descriptors": 20}, LIMITED, "20 are allowed"),
    (findings.descriptors, {"descriptors": -1}, OK, "suffices"),
    (findings.other_tracers, {"tracers": ("coverage",)}, LIMITED, "coverage: both work"),
    (findings.other_tracers, {"recorded": True}, LIMITED, "`stretto record` records this process"),
    (findings.service, {"service": ""}, OK, "`stretto traced --background` starts one"),
    (findings.service, {"service_error": "refused"}, LIMITED, "refused"),
    (findings.service, {"data_sources": frozenset("ab")}, OK, "v1; its producers offer a, b"),
]


@pytest.mark.parametrize(("fact", "state", "level", "text"), CASES)
def test_fact_has_level_and_consequence(
    fact: Callable[[MachineState], Finding], state: dict[str, Any], level: str, text: str
) -> None:
    found = fact(BEST._replace(**state))
    assert (found.level, text in found.text) == (level, True), found


def test_each_fact_has_a_case_here_and_the_best_machine_has_no_limits() -> None:
    assert {fact for fact, *_ in CASES} == set(findings.FACTS)
    assert [each for each in findings.findings(BEST) if each.level != OK] == []


def test_state_of_this_machine_is_gathered_and_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", str(tmp_path / "none"))
    state = gather()
    assert (state.native, state.interpreter, state.service) == (True, "cpython", "")
    assert command.run([]) == int(bool(state.memfd_error))
    lines = capsys.readouterr().out.splitlines()
    assert sum(not line.startswith(" ") for line in lines) == len(findings.FACTS)
    assert max(map(len, lines)) <= command.WIDTH
