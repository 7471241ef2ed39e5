"""The notes in the summary of `stretto record`: an early end, names that match nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded import record

CHILD = "import stretto; stretto.Category('shop.cart', tags=['slow']).instant('x')"
PROGRAM = f"""
import os, subprocess, sys
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
os._exit(0)
"""


def notes(folder: Path, *options: str) -> list[str]:
    run = record(folder / "trace", "--no-functions", *options)
    assert run.status == 0, run.stderr
    lines = map(str.strip, run.stderr.splitlines())
    return [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]


def test_category_that_no_process_has_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    assert notes(tmp_path, "--category", "shop.crt", "-c", PROGRAM) == [
        "no connected process has the category 'shop.crt'; did you mean 'shop.cart'?"
    ]


def test_category_of_a_child_that_has_ended_is_not_reported_missing(tmp_path: Path) -> None:
    assert notes(tmp_path, "--category", "shop.*", "-c", PROGRAM) == []


def test_trace_without_events_is_noted(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, "--no-counters", "--no-gc", "-c", "pass")
    assert note.startswith("the trace has no events")


def test_activated_trigger_is_noted_once(tmp_path: Path) -> None:
    program = "import stretto\nfor _ in range(3): stretto.activate_triggers(['slow'])"
    assert notes(tmp_path, "-c", program) == [
        "the program activated the trigger 'slow', which only `stretto trace` can wait for"
    ]


def test_include_pattern_that_matches_no_function_is_noted(tmp_path: Path) -> None:
    child = "import sys, subprocess; subprocess.run([sys.executable, '-c', 'import json; {}'])"
    program = child.format("json.dumps(1)")
    # On CPython 3.11 auto detail doesn't find every call.
    options = ("--full", "--include", "json", "--include", "jsn")
    run = record(tmp_path / "trace", *options, "-c", program)
    assert "  note: no recorded function matches --include jsn\n" in run.stderr
    assert "--include json" not in run.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--ring", "--duration", "100ms"), "its --duration was over"),
        (("--full", "--max-size", "100k"), "the trace reached its --max-size"),
    ],
)
def test_recording_that_ended_before_its_program_has_a_note(
    tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    trace = str(tmp_path / "trace")  # The file has this name when the recording has ended.
    program = (
        "import os, stretto\n"
        f"while not os.path.exists({trace!r}): stretto.Category('shop').instant('x' * 1000)"
    )
    note, *_ = notes(tmp_path, *options, "-c", program)  # A slow start leaves a trace empty.
    assert note.startswith("the recording ended after ")
    assert note.endswith(f" s, before the program: {reason}")
