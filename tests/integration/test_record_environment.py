"""`stretto record` works without variables, HOME, standard descriptors or a working folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recorded import check_trace, names, record_command

PROGRAM = """
import os, sys
def f(): return sorted(name for name in os.environ if name not in {ours!r})
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
with open({said!r}, "w") as file:
    print(f(), [is_open(fd) for fd in range(3)], file=file)
"""
OURS = ("STRETTO_RECORD", "PYTHONPATH")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    text = PROGRAM.format(ours=OURS, said=str(tmp_path / "said"))
    return ["-c", text]


def bare_environment() -> dict[str, str]:
    """Return an environment with PYTHONPATH, if it is set, and without other variables."""
    return {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


def run(command: list[str], close: str = "", **options: object) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$@" {close}', "sh", *command] if close else command
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, **options
    )  # type: ignore[call-overload, no-any-return]


def same(program: list[str], trace: Path, close: str = "", **options: object) -> str:
    """Check that the recorder doesn't change a program's output; return the recorder's summary."""
    said = trace.parent / "said"
    run([sys.executable, *program], close, **options)
    expected = said.read_text()
    said.unlink()
    done = run(record_command(trace, "--ring", *program), close, **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert said.read_text() == expected
    return done.stderr


def test_program_runs_without_an_environment(oracle, trace, program):
    same(program, trace, env=bare_environment())
    assert "f" in names(check_trace(oracle, trace.read_bytes()))


def test_program_runs_without_home(oracle, trace, program):
    environment = {name: text for name, text in os.environ.items() if name != "HOME"}
    same(program, trace, env=environment)
    assert "f" in names(check_trace(oracle, trace.read_bytes()))


@pytest.mark.parametrize("close", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_program_runs_with_closed_standard_descriptors(oracle, trace, program, close):
    summary = same(program, trace, close)
    assert ("events" in summary) == ("2>&-" not in close)
    assert "f" in names(check_trace(oracle, trace.read_bytes()))


def test_messages_are_not_written_into_a_trace_on_standard_output(oracle, program):
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *record_command(Path("-"), "--ring", *program)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "f" in names(check_trace(oracle, done.stdout))


def test_trace_to_a_closed_standard_output_is_refused(program):
    done = run(record_command(Path("-"), *program), ">&-")
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr


class TestDeletedWorkingFolder:
    def run(self, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "gone"
        folder.mkdir()
        script = f"import os, sys; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r})"
        script += "; os.execv(sys.argv[1], sys.argv[1:])"
        return run([sys.executable, "-c", script, *arguments])

    def test_module_runs_in_a_deleted_folder(self, oracle, trace, tmp_path):
        command = record_command(trace, "--ring", "-c", "def f(): print('said')\nf()")
        done = self.run(tmp_path, *command)
        assert (done.returncode, done.stdout) == (0, "said\n")
        assert "f" in names(check_trace(oracle, trace.read_bytes()))

    def test_missing_script_in_a_deleted_folder_is_refused(self, trace, tmp_path):
        done = self.run(tmp_path, *record_command(trace, "x.py"))
        assert done.returncode == 2
        assert "this folder has been deleted" in done.stderr

    def test_output_into_a_deleted_folder_is_refused(self, tmp_path):
        done = self.run(tmp_path, *record_command(Path("trace.pftrace"), "-c", ""))
        assert done.returncode == 2
        assert "can't write the trace" in done.stderr


HEAVY = "argparse asyncio dataclasses inspect logging sqlite3 stretto.recorder.host stretto.service"


def test_no_expensive_module_is_loaded_into_the_program(trace: Path) -> None:
    """The recorder loads none of the modules in HEAVY into a recorded process."""
    code = f"import sys; print(*[name for name in {HEAVY.split()!r} if name in sys.modules])"
    done = run(record_command(trace, "-c", code))
    assert (done.returncode, done.stdout) == (0, "\n")
