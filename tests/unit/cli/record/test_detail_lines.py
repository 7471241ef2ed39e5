"""The lines of the summary about the use of time."""

from __future__ import annotations

from collections.abc import Sequence

from stretto.cli.record.detail_lines import detail_lines
from stretto.protos.trace import TraceStats
from stretto.recorder.host.detail import Rise
from stretto.recorder.host.result import RecordingResult
from stretto.recorder.host.totals import FunctionTotals, ProcessTotals

MS = 10**6
STDLIB, OWN = "/usr/lib/python3.12/queue.py", "/app/job.py"
PROCESS = ProcessTotals(
    7,
    {"running_ns": 9 * MS, "waiting_ns": 90 * MS, "counted": 0},
    [
        FunctionTotals("queue.Queue.get", STDLIB, 154, 2, 1 * MS, 9 * MS, 90 * MS),
        FunctionTotals("job.py", OWN, 1, 1, 0, 9 * MS, 0),
        FunctionTotals("import job", OWN, 1, 1, 0, 9 * MS, 0),
        FunctionTotals("main", OWN, 30, 1, 0, 8 * MS, 0),
        FunctionTotals("count", OWN, 7, None, 5 * MS, 5 * MS, 0),
    ],
)


def lines_of(*totals: ProcessTotals, rises: Sequence[Rise] = ()) -> dict[str, str]:
    result = RecordingResult(
        None,
        TraceStats(),
        (),
        streamed=False,
        path="",
        size=None,
        seconds=1.0,
        end_ns=0,
        totals=totals,
        rises=rises,
    )
    return dict(line.strip().partition(": ")[::2] for line in detail_lines(result))


def test_running_functions_and_waiting_functions_have_separate_lines() -> None:
    lines = lines_of(PROCESS)
    assert lines["threads"] == "9 ms running, 90 ms waiting, 1 process"
    assert lines["running in"] == (
        "count (job.py:7) 5 ms, calls not counted; queue.Queue.get (queue.py:154) 1 ms, 2 calls"
    )
    assert lines["waiting in"] == "queue.Queue.get (queue.py:154) 90 ms, 2 calls"


def test_garbage_collector_has_a_line_if_it_takes_a_tenth_of_the_time() -> None:
    (said, nothing, none) = (
        lines_of(ProcessTotals(7, {**PROCESS.numbers, **numbers}, []))
        for numbers in (
            {"collections": 30, "collecting_ns": 2 * MS},
            {"collections": 30, "collecting_ns": MS // 2},
            {"running_ns": 0},
        )
    )
    assert said["garbage collector"] == "2 ms in 30 runs, part of the times above"
    assert "garbage collector" not in nothing.keys() | none.keys()


def test_waiting_for_a_cpu_is_told_from_being_blocked_if_the_kernel_tells_it() -> None:
    numbers = {**PROCESS.numbers, "knows_ready": 1}
    (said, nothing) = (
        lines_of(ProcessTotals(7, {**numbers, "ready_ns": ready}, []))["threads"]
        for ready in (30 * MS, 0)
    )
    assert said == "9 ms running, 30 ms waiting for a CPU, 60 ms blocked, 1 process"
    assert nothing == "9 ms running, 0 ns waiting for a CPU, 90 ms blocked, 1 process"


def test_functions_that_waited_for_a_cpu_are_not_taken_for_blocked_ones() -> None:
    for ready, included in ((8 * MS, False), (10 * MS, True)):
        numbers = {**PROCESS.numbers, "knows_ready": 1, "ready_ns": ready}
        line = lines_of(ProcessTotals(7, numbers, PROCESS.functions))["waiting in"]
        assert line.endswith(" (waiting for a CPU included)") == included


def test_line_with_what_they_call_has_only_functions_of_the_program_and_no_module_bodies() -> None:
    assert lines_of(PROCESS)["with what they call"] == (
        "main (job.py:30) 8 ms, 1 call; count (job.py:7) 5 ms, calls not counted"
    )


def test_installed_functions_are_named_if_the_program_has_none_of_its_own() -> None:
    installed = ProcessTotals(7, PROCESS.numbers, PROCESS.functions[:3])
    assert lines_of(installed)["with what they call, all installed"] == (
        "queue.Queue.get (queue.py:154) 9 ms, 2 calls"
    )


def test_functions_after_c_are_named_and_not_called_installed() -> None:
    typed = FunctionTotals("work", "<string>", 2, 1, 0, 3 * MS, 0)
    found = lines_of(ProcessTotals(7, PROCESS.numbers, [*PROCESS.functions[:3], typed]))
    assert found["with what they call"] == "work (<string>:2) 3 ms, 1 call"


def imports(*times: tuple[str, int]) -> dict[str, str]:
    functions = [
        FunctionTotals(f"import {module}", STDLIB, 1, 1, 0, time, 0) for module, time in times
    ]
    return lines_of(ProcessTotals(7, {"running_ns": 90 * MS}, functions))


def test_longest_imports_of_packages_have_a_line_if_they_take_a_tenth_of_the_time() -> None:
    found = imports(("pandas", 9 * MS), ("pandas.core", 8 * MS), ("numpy.random", 2 * MS))
    assert found["imports, with what they import"] == (
        "import pandas (queue.py:1) 9 ms, 1 call; import numpy.random (queue.py:1) 2 ms, 1 call"
    )
    assert "imports, with what they import" not in imports(("pandas", 8 * MS))


def test_function_without_a_complete_call_has_no_number_of_calls() -> None:
    loops = ProcessTotals(7, {}, [FunctionTotals("loop", "job.py", 3, 0, MS, MS, 0)])
    assert lines_of(loops)["running in"] == "loop (job.py:3) 1 ms, no call has ended"


def test_line_of_stack_samples_has_the_longest_period_and_the_longest_gap_of_all() -> None:
    rare = ProcessTotals(8, {"period_ns": 3 * MS, "longest_gap_ns": 5 * MS}, [])
    often = ProcessTotals(9, {"period_ns": 2 * MS, "longest_gap_ns": 12 * MS}, [])
    assert lines_of(PROCESS, often, rare)["stack samples"].startswith(
        "every 3 ms, at most 12 ms apart; "
    )
    assert "stack samples" not in lines_of(PROCESS)


def test_running_time_in_stacks_that_are_too_deep_has_a_line() -> None:
    deep = ProcessTotals(8, {"too_deep_ns": 4 * MS}, [])
    assert lines_of(deep, deep)["stacks deeper than 1,024 calls"].startswith("8 ms running")
    assert "stacks deeper than 1,024 calls" not in lines_of(PROCESS)


def test_rise_of_the_threshold_has_a_line_though_no_process_has_totals() -> None:
    assert list(lines_of(rises=[Rise(0.5, MS, 2048)])) == ["less detail"]
