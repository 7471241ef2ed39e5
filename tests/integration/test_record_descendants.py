"""`stretto record`: descendants that outlive the program or run as another user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.polling import wait_until
from tests.support.recorded import Run, check_trace, names, pids, record

NOBODY = 65534

DAEMON = """
import os, time

def grandchild(): time.sleep(0.3)  # sleep: it outlives the program

if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
grandchild()
"""
BELOW_A_SHELL = """
import os, sys
os.environ["CODE"] = "def late(): pass\\nlate()"
os.system(f"(sleep 0.5; '{sys.executable}' -c \\"$CODE\\") &")
"""
UNPRIVILEGED = f"""
import os
os.setgid({NOBODY})
os.setuid({NOBODY})

def below(): pass

for _ in range(2):
    if (pid := os.fork()) == 0:
        below()
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


def record_code(trace: Path, text: str) -> Run:
    run = record(trace, "-c", text)
    assert (run.status, "not followed" in run.stderr) == (0, False), run.stderr
    return run


def test_daemon_is_recorded_after_its_parents_have_ended(oracle, trace):
    loaded = check_trace(oracle, record_code(trace, DAEMON).trace, complete=False)
    assert "grandchild" in names(loaded)


def test_python_started_after_the_end_of_the_program_is_recorded(oracle, trace):
    loaded = check_trace(oracle, record(trace, "--ring", "-c", BELOW_A_SHELL).trace, complete=False)
    assert "late" in names(loaded)


@pytest.mark.skipif(os.getuid() != 0, reason="only root has privileges to give up")
def test_forks_of_an_unprivileged_process_are_recorded(oracle, trace):
    loaded = check_trace(oracle, record(trace, "--ring", "-c", UNPRIVILEGED).trace, complete=False)
    assert loaded.query("select count(*) from slice where name = 'below'") == [(2,)]
    assert len(pids(loaded)) == 3


PATIENT = """
import sys
from stretto.cli.main import main
from stretto.recorder.host import recorder
recorder.LINGER_MS = 60_000
sys.exit(main(sys.argv[1:]))
"""
ENDS = """
import os, time
if (pid := os.fork()) == 0: time.sleep(60)  # sleep: the test kills the child
print(os.getpid(), pid, flush=True)
"""


def test_ctrl_c_ends_the_wait_for_daemons(oracle, trace):
    command = [sys.executable, "-c", PATIENT, "record", "-o", str(trace), "-c", ENDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        assert recorder.stdout is not None
        program, daemon = map(int, recorder.stdout.readline().split())
        try:
            wait_until(lambda: not os.path.exists(f"/proc/{program}"), "the end of the program")
            assert recorder.poll() is None
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(30) == 0
        finally:
            os.kill(daemon, signal.SIGKILL)
    check_trace(oracle, trace.read_bytes(), complete=False)
