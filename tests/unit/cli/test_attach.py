"""`stretto attach`: a trace of samples of a running process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from stretto.analysis import TraceProcessor
from stretto.cli.attach import duration, print_summary, rate
from stretto.cli.main import main
from stretto.profilers.sampling.process import CPU, GIL, WALL
from stretto.profilers.sampling.profile import Profile
from stretto.profilers.sampling.settings import Settings
from tests.support.commands import Command
from tests.support.oracle import ERRORS, Oracle, missing
from tests.support.python_targets import BUSY, running


@pytest.mark.parametrize(
    ("text", "ns"), [("1000hz", 1_000_000), ("100HZ", 10_000_000), ("7hz", 142857142)]
)
def test_rate_is_parsed_into_a_period_in_nanoseconds(text: str, ns: int) -> None:
    assert rate(text) == ns


@pytest.mark.parametrize("text", ["0hz", "fast", "-1hz", "30000hz", "1khz", "7", ""])
def test_malformed_rate_or_rate_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="no rate from 1hz to 20000hz"):
        rate(text)


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("500ms", 0.5), ("2m", 120)])
def test_duration_is_parsed_into_seconds(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0s", "soon", "-1s", "1d", "3"])
def test_malformed_duration_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="isn't a time"):
        duration(text)


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_trace_processor_reads_samples_stacks_and_names(tmp_path: Path) -> None:
    path = tmp_path / "out.pftrace"
    options = ("--wall", "-t", "2s", "-o", str(path))
    with running(BUSY) as program, Command("attach", str(program.pid), *options) as command:
        assert command.wait() == 0
    said = re.search(r"([0-9,]+) samples of 1 process; each is 1 ms of wall time", command.said)
    assert said
    count = int(said[1].replace(",", ""))
    oracle = Oracle(path.read_bytes())
    rows = oracle.query(
        "select tid, count(*) from perf_sample join thread using(utid) "
        "where callsite_id is not null group by tid"
    )
    assert sum(number for _, number in rows) == count
    assert {tid for tid, _ in rows} > {program.pid}
    errors = [row for row in oracle.query(ERRORS) if row[0] != "perf_samples_skipped"]
    assert errors == []
    tree = oracle.query(
        "include perfetto module linux.perf.samples; "
        "select name, sum(cumulative_count) from linux_perf_samples_summary_tree group by name"
    )
    assert {"leaf", "outer", "waits", "<module>"} <= {name for name, _ in tree}
    (start, end, gap) = oracle.query(
        "select min(ts), max(ts), max(gap) from "
        "(select ts, ts - lag(ts) over (order by ts) as gap from perf_sample)"
    )[0]
    assert 0 <= gap <= end - start < 60 * 10**9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_the_recording_with_a_trace(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "out.pftrace"
    with running(BUSY) as program:
        with Command("attach", str(program.pid), "-o", str(path)) as command:
            assert command.line_with("sampling") != ""
            os.kill(command.pid, number)
            assert command.wait() == 0
        assert program.poll() is None
    assert path.stat().st_size > 0
    assert f"The trace is in {path}." in command.said


@pytest.mark.parametrize(("mode", "named"), [(CPU, True), (GIL, True), (WALL, False)])
def test_summary_without_samples_names_the_option_for_waiting_threads(
    mode: int, named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(mode, 1_000_000)
    print_summary(Profile(settings, lambda _packets: None), settings, "x.pftrace")
    said = capsys.readouterr().err
    assert "0 samples" in said
    assert ("with --wall, waiting threads are sampled" in said) == named


def test_script_names_its_process_and_its_functions_have_no_module(tmp_path: Path) -> None:
    script, path = tmp_path / "shop.py", tmp_path / "out.pftrace"
    script.write_text(
        "import threading, time\n"
        "def burn():\n while True: pass\n"
        "threading.Thread(target=burn, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "time.sleep(1000)  # sleep: what is not sampled\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline()
            command = Command("attach", str(program.pid), "-t", "1s", "-o", str(path))
            with command:
                assert command.wait() == 0
        finally:
            program.kill()
    assert re.search(r" burn +/", command.said)
    assert "shop.burn" not in command.said
    with TraceProcessor(str(path), engine="sqlite") as processor:
        (row,) = processor.query(f"select name, cmdline from process where pid = {program.pid}")
    assert (row.name, row.cmdline.strip()) == ("shop.py", "shop.py")


def test_trace_on_the_standard_output_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(CPU, 1_000_000)
    print_summary(Profile(settings, lambda _packets: None), settings, "-")
    assert capsys.readouterr().err.endswith("The trace is on the standard output.\n")


def test_cost_of_c_functions_is_said(tmp_path: Path) -> None:
    options = ("--native", "-t", "1s", "-o", str(tmp_path / "out.pftrace"))
    with running(BUSY) as program, Command("attach", str(program.pid), *options) as command:
        assert command.wait() == 0
        assert program.poll() is None
    assert re.search(r"\d samples have C functions; the process was stopped for \d", command.said)


def test_missing_process_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.pftrace"
    assert main(["attach", "4194305", "-o", str(path)]) == 1
    assert "There is no process 4194305." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_json_file_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    assert main(["attach", "4194305", "-o", str(path)]) == 2
    assert f"`stretto convert {tmp_path}/out.pftrace {path}` makes" in capsys.readouterr().err
