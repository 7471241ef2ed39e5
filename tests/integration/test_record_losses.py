"""`stretto record`: lost events are reported in the trace and in the summary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.recorded import record

LOSSES = "select value from stats where name = 'traced_buf_sequence_packet_loss'"
SHORT_THREADS = """
import os, signal, threading, time
import stretto

def live_briefly():
    stretto.instant("short")

recorder = os.getppid()
os.kill(recorder, signal.SIGSTOP)       # nobody frees the memory that threads leave behind
try:
    for _ in range(600):
        thread = threading.Thread(target=live_briefly)
        thread.start()
        thread.join()
    while len(os.listdir("/proc/self/task")) > 2:   # join() doesn't wait for its very end
        time.sleep(0.001)  # sleep: polls in the recorded program
finally:
    os.kill(recorder, signal.SIGCONT)
{end}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_losses_of_exited_threads_are_reported(oracle, trace, end):
    options = ("--no-functions", "--no-counters")
    run = record(trace, "--ring", *options, "-c", SHORT_THREADS.format(end=end))
    loaded = oracle(run.trace)
    ((found,),) = loaded.query("select count(*) from slice where name = 'short'")
    assert 0 < found < 600, "the memory never overflowed: the test shows nothing"
    marks = sum(value for (value,) in loaded.query(LOSSES))
    assert marks == 600 - found
    assert f"lost: {marks} gaps" in run.stderr
    if not end:  # a killed process can't report its lost events
        (said,) = re.findall(r"([\d,]+) events were lost: the shared memory was full", run.stderr)
        assert int(said.replace(",", "")) == marks


FLOOD = """
import os, signal, subprocess
import stretto

recorder = os.getppid()
subprocess.Popen(["sh", "-c", f"cat; kill -CONT {recorder}"], stdin=subprocess.PIPE)
os.kill(recorder, signal.SIGSTOP)       # until this process has ended
for _ in range(1_000_000):
    stretto.instant("flood")
"""


@pytest.mark.once
@pytest.mark.thorough
def test_losses_of_an_idle_thread_are_reported(oracle, trace):
    options = ("--no-functions", "--no-counters")
    run = record(trace, "--ring", *options, "-c", FLOOD)
    loaded = oracle(run.trace)
    ((found,),) = loaded.query("select count(*) from slice where name = 'flood'")
    assert 0 < found < 1_000_000, "the memory never overflowed: the test shows nothing"
    assert sum(value for (value,) in loaded.query(LOSSES)) == 1
    assert "lost: 1 gap:" in run.stderr
    assert f"{1_000_000 - found:,} events were lost" in run.stderr


def test_short_calls_of_a_child_that_ends_by_os_exit_are_reported(trace):
    program = (
        "import os, stretto\ndef short(): pass\n"
        "if not os.fork():\n stretto.instant('connects')\n"
        " for _ in range(1000): short()\n os._exit(0)\nos.wait()"
    )
    run = record(trace, "--full", "--min-duration", "10s", "-c", program)
    counts = re.findall(r"([\d,]+) calls shorter than 1e\+07 us", run.stderr)
    assert max(int(each.replace(",", "")) for each in counts) >= 1000
