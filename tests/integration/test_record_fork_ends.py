"""How forked children of recorded programs end, and what their times are."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import check_trace, record

MODES = ("--auto", "--full", "--ring", "--no-functions")
THREAD = """
import os, threading, time
def target():
    if os.fork() == 0:
        time.sleep({seconds})  # sleep: the child connects meanwhile
        {end}
        return
    assert os.wait()[1] == 0
thread = threading.Thread(target=target)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seconds", [0, 0.1])
def test_child_ends_when_the_thread_that_has_forked_returns(
    tmp_path: Path, mode: str, seconds: float
) -> None:
    script = tmp_path / "program.py"
    script.write_text(THREAD.format(seconds=seconds, end=""))
    run = record(tmp_path / "t", "-q", mode, "--", sys.executable, "-W", "ignore", str(script))
    assert (run.status, run.stderr) == (0, "")


def test_child_ends_after_the_threads_that_it_has_started(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    end = "threading.Thread(target=time.sleep, args=[0.2]).start()"  # sleep: how long it runs
    script.write_text(THREAD.format(seconds=0.1, end=end))
    run = record(tmp_path / "t", "-q", "--", sys.executable, "-W", "ignore", str(script))
    assert (run.status, run.stderr) == (0, "")


@pytest.mark.parametrize("mode", ["--auto", "--full"])
def test_connection_is_not_begun_while_the_interpreter_ends(tmp_path: Path, mode: str) -> None:
    """The time-out of the child passes in the destructor, after the end of the recording."""
    script = tmp_path / "program.py"
    script.write_text("""
import os, sys, time
from stretto.client import postponed
postponed.LONGEST_MS = 50

class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.1)  # sleep: until the time-out has passed

def call():
    pass

for _ in range(10):
    if os.fork() == 0:
        late = Late()
        late.itself = late
        call()
        sys.exit(5)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
""")
    run = record(tmp_path / "t", "-q", mode, str(script))
    assert (run.status, run.stderr) == (0, "")


def test_waits_after_forks_do_not_count_as_running(tmp_path: Path, oracle: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text("""
import os, time
def wait():
    if (pid := os.fork()) == 0:
        time.sleep(0.05)  # sleep: the child waits
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.1)  # sleep: the parent waits
while time.process_time() < 0.2:
    pass
for _ in range(8):
    wait()
""")
    run = record(tmp_path / "t", "-q", "--auto", str(script))
    sql = "select pid, key, int_value from slice join thread_track on track_id = thread_track.id"
    sql += " join thread using (utid) join process using (upid) join args using (arg_set_id)"
    sql += " where slice.name = 'stack samples' and key glob 'debug.threads.*.running_ns'"
    times = check_trace(oracle, run.trace).query(sql)
    assert len(times) >= 2
    assert all(key == f"debug.threads.{pid}.running_ns" for pid, key, _ in times)
    # The program runs for 0.2 s, and then waits for more than a second. The wait after each fork
    # would count as running for as long as the thread had run in all.
    assert sum(running for _, _, running in times) < 600_000_000


def test_open_calls_of_a_child_that_continues_are_in_the_trace(tmp_path: Path, oracle: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text("""
import os, time
def inner():
    time.sleep(30)  # sleep: longer than the recorder waits
def outer():
    inner()
if (pid := os.fork()) == 0:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)  # whoever reads the program's output doesn't wait for the child
    os.dup2(null, 2)
    outer()
    os._exit(0)
time.sleep(0.3)  # sleep: until the child has connected
print(pid)
""")
    run = record(tmp_path / "t", "-q", "--auto", str(script))
    os.kill(int(run.stdout), signal.SIGKILL)
    sql = "select slice.name from slice join thread_track on slice.track_id = thread_track.id"
    sql += f" join thread using (utid) join process using (upid) where pid = {run.stdout}"
    sql += " and (dur > 100000000 or dur = -1) order by depth"  # a busy child may not end them
    found = check_trace(oracle, run.trace, complete=False).query(sql)
    # On CPython 3.11, the module's own call is there, too.
    assert [name for (name,) in found][-3:] == ["outer", "inner", "time.sleep"]
