"""`stretto record --attach PID`: records a program that runs already, and leaves nothing in it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.base import proc_files
from tests.support.polling import wait_until
from tests.support.recorded import TIMEOUT_S, Run, check_trace, names, record, record_command

needs_remote_exec = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="sys.remote_exec is new in CPython 3.14"
)

NOBODY = 65534

PROGRAM = """
import asyncio, atexit, gc, logging, os, signal, sys, threading, time

running, kind = sys.argv[1:]
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")

def state():
    return {
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "variables": dict(os.environ),
        "globals": sorted(globals()),
        "path": list(sys.path),
        "finders": [list(sys.meta_path), list(sys.path_hooks)],
        "collector": list(gc.callbacks),
        "hooks": [sys.excepthook, threading.excepthook, sys.getprofile(), sys.gettrace()],
        "tools": [getattr(sys, "monitoring").get_tool(number) for number in range(6)]
            if sys.version_info >= (3, 12) else [],
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "patched": [asyncio.events.Handle._run, logging.Logger.callHandlers],
    }

def leaf(number):
    return number + 1

def work():
    number = 0
    for _ in range(20):
        number = leaf(number)
    time.sleep(0.002)  # sleep: what a running program does

async def step():
    work()
    await asyncio.sleep(0)

async def two_steps():
    await asyncio.gather(step(), step())

def in_threads():
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def generates():
    list(leaf(number) for number in range(3))
    time.sleep(0.002)  # sleep: what a running program does

def fails():
    try:
        work()
        {}["key"]
    except KeyError:
        leaf(1)

def forks():
    if (pid := os.fork()) == 0:
        leaf(1)
        left = sorted(os.listdir("/proc/self/fd"))
        os._exit(before is not None and left != before["descriptors"])
    if os.waitpid(pid, 0)[1]:
        print("the child has other descriptors")
    time.sleep(0.002)  # sleep: what a running program does

def monitors():
    for number in range(6):
        if not sys.monitoring.get_tool(number):
            sys.monitoring.use_tool_id(number, "own")
    work()

quiet = logging.getLogger("quiet")
quiet.propagate = False
quiet.addHandler(logging.NullHandler())

def logs():
    quiet.info("logged %s", "text")
    work()

ROUND = {
    "work": work, "tasks": lambda: asyncio.run(two_steps()), "threads": in_threads,
    "generators": generates, "exceptions": fails, "forks": forks, "logs": logs,
    "monitors": monitors,
}[kind]
rounds = 1
before = None
ROUND()
before = after = remaining = None
while len(os.listdir("/proc/self/task")) > threading.active_count():
    time.sleep(0.001)  # sleep: a thread that has ended is listed a little longer
before = state()
open(running + ".ready", "w").close()
while os.path.exists(running):
    ROUND()
    rounds += 1
for remaining in range(300):  # a thread that ends is listed a little longer
    after = state()
    if after == before: break
    time.sleep(0.01)  # sleep: the program is a string without imports
print("left behind:", {key: after[key] for key in before if before[key] != after[key]})
"""


class Running:
    """A running program to attach to; `finish` ends it."""

    def __init__(self, folder: Path, kind: str = "work", *options: str, **environment: str) -> None:
        self._running = folder / "running"
        self._running.touch()
        script = folder / "program.py"
        script.write_text(PROGRAM)
        self._process = subprocess.Popen(
            [sys.executable, "-W", "always", *options, script, self._running, kind],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.pid = self._process.pid
        ready = folder / "running.ready"
        wait_until(lambda: ready.exists() or self._process.poll() is not None)
        if not ready.exists():
            pytest.fail(f"the program ended before it was ready: {self.finish()}")
        ready.unlink()

    def finish(self) -> tuple[int, str, str]:
        """End the program; return its exit status, standard output and standard error."""
        self._running.unlink(missing_ok=True)
        out, err = self._process.communicate(timeout=TIMEOUT_S)
        return self._process.returncode, out, err

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


UNCHANGED = (0, "left behind: {}\n", "")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    program = Running(tmp_path)
    yield program
    program.kill()


def attach(path: Path, pid: int, *options: str) -> Run:
    return record(path, "--attach", str(pid), *options)


def start_recorder(path: Path, pid: int) -> subprocess.Popen[str]:
    """Start a recorder and wait until it is attached; return its process."""
    command = record_command(path, "--attach", str(pid))
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    maps = Path(f"/proc/{pid}/maps")
    wait_until(lambda: "_pyhooks" in maps.read_text(), "the program to load the hooks")
    time.sleep(0.3)  # sleep: the recorder records calls in this time
    return recorder


@needs_remote_exec
class TestAttachedRecording:
    def test_calls_are_recorded_and_nothing_is_left_in_the_program(self, oracle, running, tmp_path):
        with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as folder:
            run = record(
                tmp_path / "trace",
                *("--attach", str(running.pid), "--duration", "500ms"),
                XDG_RUNTIME_DIR=folder,
            )
            assert os.listdir(folder) == []
        assert (run.status, run.stdout) == (0, "")
        assert running.finish() == UNCHANGED
        loaded = check_trace(oracle, run.trace, complete=False)
        assert {"work", "leaf"} <= names(loaded)
        named = loaded.query("select distinct pid from process where name is not null and pid > 0")
        assert named == [(running.pid,)]

    @pytest.mark.parametrize("kind", ["tasks", "threads", "generators", "exceptions", "forks"])
    def test_tasks_threads_generators_exceptions_and_forks_are_recorded(
        self, oracle, tmp_path, kind
    ):
        program = Running(tmp_path, kind)
        run = attach(tmp_path / "trace", program.pid, "--duration", "300ms")
        assert program.finish() == UNCHANGED
        assert run.status == 0
        loaded = check_trace(oracle, run.trace, complete=False)
        expected = {
            "tasks": "step",
            "threads": "in_threads",
            "generators": "generates",
            "exceptions": "fails",
        }
        assert expected.get(kind, kind) in names(loaded)

    def test_log_records_are_recorded(self, oracle, tmp_path):
        program = Running(tmp_path, "logs")
        run = attach(tmp_path / "trace", program.pid, "--duration", "300ms")
        assert program.finish() == UNCHANGED
        loaded = check_trace(oracle, run.trace, complete=False)
        assert "logged text" in names(loaded)

    def test_exclude_option_applies_to_attached_programs(self, oracle, running, tmp_path):
        run = attach(tmp_path / "trace", running.pid, "-t", "300ms", "--exclude", "__main__")
        assert running.finish() == UNCHANGED
        assert "leaf" not in names(check_trace(oracle, run.trace, complete=False))

    def test_program_that_holds_all_monitoring_tools_is_reported(self, oracle, tmp_path):
        program = Running(tmp_path, "monitors")
        run = attach(tmp_path / "trace", program.pid, "--duration", "100ms")
        program.finish()
        assert run.status == 0
        assert "function calls can't be traced: other tools of this program hold" in run.stderr

    def test_own_code_of_stretto_is_not_recorded(self, oracle, running, tmp_path):
        run = attach(tmp_path / "trace", running.pid, "--full", "--duration", "200ms")
        assert running.finish() == UNCHANGED
        found = names(check_trace(oracle, run.trace, complete=False))
        assert "leaf" in found
        assert not [name for name in found if "ForkGuard" in name]

    def test_program_can_be_attached_to_several_times(self, oracle, running, tmp_path):
        for number in range(3):
            run = attach(tmp_path / f"trace{number}", running.pid, "--duration", "200ms")
            assert run.status == 0
            assert "leaf" in names(check_trace(oracle, run.trace, complete=False))
        assert running.finish() == UNCHANGED

    def test_interrupt_ends_the_recording_and_not_the_program(self, oracle, running, tmp_path):
        recorder = start_recorder(tmp_path / "trace", running.pid)
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=TIMEOUT_S)
        assert recorder.returncode == 0
        assert "1 process" in said
        assert running.finish() == UNCHANGED
        trace = (tmp_path / "trace").read_bytes()
        assert "leaf" in names(check_trace(oracle, trace, complete=False))

    def test_killed_recorder_leaves_nothing_in_the_program(self, running, tmp_path):
        recorder = start_recorder(tmp_path / "trace", running.pid)
        recorder.kill()
        recorder.communicate(timeout=TIMEOUT_S)
        assert running.finish() == UNCHANGED

    def test_recording_ends_with_the_program(self, oracle, running, tmp_path):
        recorder = start_recorder(tmp_path / "trace", running.pid)
        status, out, err = running.finish()
        assert (status, err) == (0, "")
        assert "left behind" in out
        recorder.communicate(timeout=TIMEOUT_S)
        assert recorder.returncode == 0
        trace = (tmp_path / "trace").read_bytes()
        assert "leaf" in names(check_trace(oracle, trace, complete=False))

    @pytest.mark.thorough
    def test_attaching_to_a_hundred_programs_leaves_each_program_unchanged(self, tmp_path):
        kinds = ("work", "tasks", "threads", "generators", "exceptions")
        for number in range(100):
            folder = tmp_path / str(number)
            folder.mkdir()
            program = Running(folder, kinds[number % len(kinds)])
            run = attach(folder / "trace", program.pid, "--duration", "50ms", "--buffer", "1mb")
            assert (number, run.status, program.finish()) == (number, 0, UNCHANGED), run.stderr


UNREACHABLE = """
import _interpreters, os, resource, signal, sys, threading, time

folder, preparation = sys.argv[1:]

def in_sub_interpreter():
    # sleep: what a running program does
    code = "import os, time; open(begun, 'w')\\nwhile not os.path.exists(end): time.sleep(0.002)"
    shared = {"begun": folder + "/begun", "end": folder + "/end"}
    run = lambda: _interpreters.exec(_interpreters.create(), code, shared)
    threading.Thread(target=run).start()
    while not os.path.exists(folder + "/begun"):
        time.sleep(0.002)  # sleep: the program is a string without imports

if "SIGSTOP" in preparation: print("ready")
exec(preparation)
print("ready")
while not os.path.exists(folder + "/end"):
    time.sleep(0.002)  # sleep: what a running program does
for thread in threading.enumerate()[1:]: thread.join()
for number, _ in _interpreters.list_all()[1:]: _interpreters.destroy(number)
"""


def refused(pid: int, folder: Path) -> str:
    """Attach to a process that the recorder refuses; return the printed reason."""
    run = attach(folder / "trace", pid, "--duration", "100ms")
    assert run.status == 125
    assert not (folder / "trace").exists()
    (line,) = run.stderr.splitlines()
    assert f"can't attach to process {pid}: " in line
    return line.partition(f"process {pid}: ")[2]


class TestRefusedAttach:
    def test_attach_to_a_missing_process_is_refused(self, tmp_path):
        assert refused(2**31 - 1, tmp_path) == "there is no such process."

    def test_attach_to_a_program_other_than_python_is_refused(self, tmp_path):
        program = subprocess.Popen(["tail", "-f", "/dev/null"])
        try:
            reason = refused(program.pid, tmp_path)
        finally:
            program.kill()
            program.wait()
        assert re.match("it is no CPython 3.14 or newer|this Stretto runs on CPython", reason)

    @pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python can be attached to")
    def test_attach_to_python_before_3_14_is_refused(self, running, tmp_path):
        assert "and attaching needs 3.14 or newer" in refused(running.pid, tmp_path)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs of other users")
    def test_attach_to_a_program_of_another_user_is_refused(self, tmp_path):
        program = subprocess.Popen(["tail", "-f", "/dev/null"], user=NOBODY)
        try:
            reason = refused(program.pid, tmp_path)
        finally:
            program.kill()
            program.wait()
        assert reason == f"it runs as user {NOBODY}: run `stretto record` as that user."

    @needs_remote_exec
    def test_attach_to_a_program_with_remote_debugging_disabled_is_refused(self, tmp_path):
        for options, environment, reason in (
            (["-X", "disable-remote-debug"], {}, "it was started with -X disable-remote-debug."),
            (
                [],
                {"PYTHON_DISABLE_REMOTE_DEBUG": "1"},
                "its environment has PYTHON_DISABLE_REMOTE_DEBUG.",
            ),
        ):
            program = Running(tmp_path, "work", *options, **environment)
            try:
                assert refused(program.pid, tmp_path) == reason
                assert program.finish() == UNCHANGED
            finally:
                program.kill()

    @needs_remote_exec
    def test_second_recorder_of_an_attached_program_is_refused(self, running, tmp_path):
        recorder = start_recorder(tmp_path / "first", running.pid)
        try:
            assert "recorded by another `stretto record` already" in refused(running.pid, tmp_path)
        finally:
            recorder.send_signal(signal.SIGTERM)
            recorder.communicate(timeout=TIMEOUT_S)
        assert running.finish() == UNCHANGED

    @needs_remote_exec
    @pytest.mark.parametrize(
        ("preparation", "reason"),
        [
            ("sys.path[:] = []", "ModuleNotFoundError: "),
            ("sys.path.insert(0, folder)", "ZeroDivisionError: division by zero"),
            ("resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))", r"it has \d open files, and"),
            ("_interpreters.create()", "its main thread has ended, or it has sub-interpreters"),
            ("in_sub_interpreter()", "the program runs sub-interpreters, and"),
            ("os.kill(os.getpid(), signal.SIGSTOP)", "it is stopped: continue it by"),
        ],
    )
    def test_program_that_cannot_run_the_script_is_refused_and_prints_nothing(
        self, tmp_path, preparation, reason
    ):
        (tmp_path / "__future__.py").write_text("1 / 0")
        with subprocess.Popen(
            [sys.executable, "-I", "-u", "-c", UNREACHABLE, tmp_path, preparation],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            try:
                assert program.stdout is not None
                program.stdout.readline()
                if "SIGSTOP" in preparation:
                    wait_until(lambda: proc_files.stat(program.pid)[0] == b"T", "the stop")
                assert re.match(reason, refused(program.pid, tmp_path))
                program.send_signal(signal.SIGCONT)
                (tmp_path / "end").touch()
                assert program.communicate(timeout=TIMEOUT_S)[0].strip() in {"", "ready"}
            finally:
                program.kill()
        assert program.returncode == 0

    @needs_remote_exec
    def test_message_says_that_the_program_ended_before_running_the_script(self, tmp_path):
        code = "import os, sys; print(1, flush=True); sys.stdin.read(); os._exit(0)"
        pipe = subprocess.PIPE
        with (
            tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as folder,
            subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as program,
        ):
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdout.readline()
            command = record_command(tmp_path / "trace", "--attach", str(program.pid))
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
            with subprocess.Popen(command, stderr=pipe, text=True, env=environment) as recorder:
                wait_until(lambda: [*Path(folder).glob("*/attach.py")], "the script")
                program.stdin.close()
                _, said = recorder.communicate(timeout=TIMEOUT_S)
        assert said.endswith("it has ended.\n")

    @needs_remote_exec
    def test_recorder_with_remote_debugging_disabled_names_the_variable(self, running, tmp_path):
        run = record(
            tmp_path / "trace",
            *("--attach", str(running.pid)),
            PYTHON_DISABLE_REMOTE_DEBUG="1",
        )
        assert run.status == 125
        assert "PYTHON_DISABLE_REMOTE_DEBUG is set for the recorder" in run.stderr

    @needs_remote_exec
    @pytest.mark.thorough
    def test_attach_fails_if_the_main_thread_runs_no_python_code(self, tmp_path):
        """The recorder cancels its request to the program, which continues unchanged."""
        code = "import sys; print(1, flush=True); sys.stdin.read(); print(2)"
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe
        ) as program:
            assert program.stdout is not None
            program.stdout.readline()
            reason = refused(program.pid, tmp_path)
            assert "its main thread ran no Python code for 10 s" in reason
            assert program.communicate(timeout=TIMEOUT_S) == (b"2\n", b"")

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["-c", "pass"], "don't name another one"),
            (["--system"], "--attach doesn't go with --system"),
            (["--auto"], "--auto doesn't go with --attach"),
        ],
    )
    def test_options_that_contradict_attach_are_refused(self, tmp_path, arguments, reason):
        run = record(tmp_path / "trace", "--attach", "1", *arguments)
        assert run.status == 2
        assert reason in run.stderr
