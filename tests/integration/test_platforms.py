"""Recordings on systems that refuse some system calls work as docs/platforms.md describes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support import seccomp
from tests.support.recorded import alone, record_command

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not seccomp.available(), reason="this kernel takes no seccomp filter"),
]

PROGRAM = """
def shown(): pass
for _ in range(20000): shown()
print("end")
"""
ALONE = """
import sys, stretto
with stretto.recording(sys.argv[1], children=sys.argv[2:] == ["children"]):
    stretto.instant("mark")
"""
EXTRAS = "process_vm_readv,ptrace,perf_event_open,userfaultfd,pidfd_open,io_uring_setup"
MEMORY = "memfd_create"


@pytest.fixture(params=["EPERM", "ENOSYS"])
def error(request: pytest.FixtureRequest) -> str:
    """The error of a refused system call: EPERM in containers, ENOSYS on old kernels and gVisor."""
    return request.param


def refused(calls: str, error: str, *command: str) -> list[str]:
    return [sys.executable, str(Path(seccomp.__file__)), error, calls, *command]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize("options", [("--full",), ()], ids=["full", "default"])
def test_recording_works_if_optional_system_calls_are_refused(
    tmp_path, program, error, options
) -> None:
    trace = tmp_path / "t.pftrace"
    run = alone(*refused(EXTRAS, error, *record_command(trace, *options, program)))
    assert (run.status, run.stdout) == (0, "end\n")
    assert b"program.py" in trace.read_bytes()
    assert "not followed" not in run.stderr


def test_program_without_shared_memory_runs_and_the_summary_gives_the_reason(
    tmp_path, program, error
) -> None:
    run = alone(*refused(MEMORY, error, *record_command(tmp_path / "t.pftrace", program)))
    assert (run.status, run.stdout) == (0, "end\n")
    assert "not followed" in run.stderr
    assert "this system refuses memfd_create" in run.stderr


def test_process_records_itself_without_shared_memory(tmp_path, error) -> None:
    trace = tmp_path / "t.pftrace"
    run = alone(*refused(MEMORY, error, sys.executable, "-c", ALONE, str(trace)))
    assert (run.status, run.stderr) == (0, "")
    assert b"mark" in trace.read_bytes()


def test_recording_of_children_without_shared_memory_is_refused(tmp_path, error) -> None:
    trace = tmp_path / "t.pftrace"
    run = alone(*refused(MEMORY, error, sys.executable, "-c", ALONE, str(trace), "children"))
    assert run.status == 1
    assert "this system refuses memfd_create" in run.stderr
    assert not trace.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("folder", ["/proc", "/dev/shm"])
def test_recording_works_if_proc_or_dev_shm_is_empty_and_read_only(
    tmp_path, program, folder
) -> None:
    """In some containers, /proc shows no other processes or /dev/shm is read-only."""
    trace = tmp_path / "t.pftrace"
    mount = f'mount -t tmpfs -o ro,size=4k none {folder} && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mount, "sh", *record_command(trace, program)]
    run = alone(*command)
    if "unshare: " in run.stderr or "permission denied" in run.stderr:
        pytest.skip(run.stderr.strip())
    assert (run.status, run.stdout) == (0, "end\n")
    assert b"program.py" in trace.read_bytes()
