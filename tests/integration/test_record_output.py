"""Output of `stretto record`: rings, streams, pipes, snapshots, and files of killed recorders."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.polling import wait_until
from tests.support.recorded import Run, alone, check_trace, names, record, record_command

WORKS = """
import time
def work(): time.sleep(0.001)  # sleep: a call long enough to be seen
end = time.monotonic() + {seconds}
while time.monotonic() < end: work()
print('end')
"""

SLOW = """
import time
def slow_step(): time.sleep(0.5)  # sleep: few calls, which fill no chunk
while True: slow_step()
"""


def works_for(seconds: float) -> tuple[str, str]:
    return "-c", WORKS.format(seconds=seconds)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


@pytest.fixture
def start(trace):
    """Return a function that starts a recorder, which is killed at the end of the test."""
    running = []

    def start(*arguments: str, **options) -> subprocess.Popen[str]:
        command = record_command(trace, *arguments)
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, **options
        )
        running.append(process)
        return process

    yield start
    for process in running:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def listing(folder: Path) -> set[str]:
    return set(os.listdir(folder))


class TestTraceFile:
    @pytest.mark.parametrize("options", [(), ("--ring",), ("--stream",)])
    def test_trace_is_readable_by_its_owner_only(self, trace, options):
        os.umask(0)
        record(trace, *options, "-c", "pass")
        assert stat.S_IMODE(trace.stat().st_mode) == 0o600
        assert listing(trace.parent) == {"trace.pftrace"}

    def test_older_trace_is_replaced(self, oracle, trace):
        trace.write_bytes(b"x" * 10_000_000)
        trace.chmod(0o644)
        run = record(trace, "-c", "pass")
        check_trace(oracle, run.trace)
        assert stat.S_IMODE(trace.stat().st_mode) == 0o600

    def test_symbolic_link_is_replaced(self, trace):
        victim = trace.parent / "victim"
        victim.write_bytes(b"precious")
        (trace.parent / "trace.pftrace.part").symlink_to(victim)
        assert record(trace, "--stream", "-c", "pass").status == 0
        assert victim.read_bytes() == b"precious"

    def test_second_recorder_with_the_same_output_file_is_refused(self, trace, start):
        start("--full", *works_for(10))
        wait_until(lambda: Path(f"{trace}.part").exists())
        run = record(trace, "--full", "-c", "pass")
        assert run.status == 2
        assert "another recording" in run.stderr


class TestRefusedRecording:
    @pytest.mark.parametrize(
        ("arguments", "status", "says"),
        [
            (("nosuch.py",), 2, "no file 'nosuch.py'"),
            (("nosuchcommand",), 127, "neither a script here nor a command on PATH"),
            (("/",), 126, "can't be executed"),
            ((), 2, "name the program"),
            (("-m",), 2, "-m needs a module"),
            (("--buffer", "many", "-c", ""), 2, "size 'many': give a size like 64mb"),
            (("--duration", "soon", "-c", ""), 2, "'soon' isn't a time"),
            (("--max-depth", "0", "-c", ""), 2, "from 1 to"),
            (("--max-size", "1mb", "-c", ""), 2, "--max-size goes with --full"),
            (("--frobnicate", "-c", ""), 2, "unrecognized"),
        ],
    )
    def test_program_that_cannot_be_started_is_refused_with_a_reason(
        self, trace, arguments, status, says
    ):
        run = record(trace, *arguments)
        assert (run.status, run.stdout) == (status, "")
        assert says in run.stderr
        assert "Traceback" not in run.stderr
        assert listing(trace.parent) == set()

    @pytest.mark.parametrize("name", ["nowhere/trace", ".", "/proc/trace"])
    def test_unwritable_output_is_refused(self, trace, name):
        run = record(trace.parent / name, "-c", "print('ran')")
        assert (run.status, run.stdout) == (2, "")
        assert "can't write the trace" in run.stderr
        assert "-o" in run.stderr

    def test_trace_to_a_terminal_is_refused(self, trace):
        script = f"{sys.executable} -m stretto record -o - -c pass"
        run = alone("script", "-qec", script, "/dev/null")
        assert run.status == 2
        assert "redirect it" in run.stdout


class TestTraceIntoPipe:
    @pytest.mark.parametrize("options", [("--ring",), ("--stream",)])
    def test_trace_can_be_written_to_standard_output(self, oracle, options):
        command = record_command(Path("-"), *options, "-c", "def f(): print('said')\nf()")
        run = subprocess.run(command, capture_output=True, check=True)
        assert "f" in names(check_trace(oracle, run.stdout))
        assert b"said" in run.stderr

    @pytest.mark.parametrize("options", [("--ring",), ("--stream",)])
    def test_trace_can_be_written_into_a_fifo(self, oracle, trace, options):
        os.mkfifo(trace)
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append(trace.read_bytes()))
        reader.start()
        run = record(trace, *options, "-c", "def f(): print('said')\nf()")
        reader.join()
        assert run.stdout == "said\n"
        assert "f" in names(check_trace(oracle, read[0]))
        assert stat.S_ISFIFO(trace.stat().st_mode)

    @pytest.mark.parametrize("options", [("--ring",), ("--stream",)])
    def test_program_continues_after_the_reader_of_the_trace_has_ended(self, options):
        command = record_command(Path("-"), *options, *works_for(2))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(100 if options == ("--stream",) else 0)
        process.stdout.close()
        _, said = process.communicate()
        assert process.returncode == 0
        assert b"end\n" in said, "the program went on"
        assert b"Broken pipe, its reader has ended" in said
        assert b"no complete trace was written" in said
        assert b"  trace: " not in said

    @pytest.mark.parametrize("options", [("--ring",), ("--stream",), ("--sample", "100hz")])
    def test_full_device_is_named_as_the_reason_why_there_is_no_trace(self, options):
        run = record(Path("/dev/full"), *options, "-c", "print('end')")
        assert (run.status, run.stdout) == (0, "end\n")
        assert "No space left on device. 0 bytes are in it" in run.stderr
        assert "stretto: no complete trace was written\n" in run.stderr
        assert not re.search("written to the pipe|private|  note: ", run.stderr)


LIMITED = """
import ctypes, os, resource, sys
ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)  # never again CAP_SYS_RESOURCE, of root neither
resource.setrlimit(resource.RLIMIT_FSIZE, [{size}] * 2)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.thorough
class TestRecordingLimits:
    def test_duration_ends_the_recording_and_not_the_program(self, oracle, trace, start):
        process = start("--ring", "--duration", "2s", *works_for(6))
        wait_until(trace.exists)
        assert process.poll() is None
        out, _ = process.communicate()
        assert (process.returncode, out) == (0, "end\n")
        loaded = check_trace(oracle, trace.read_bytes(), complete=False)
        ((spent,),) = loaded.query("select (max(ts) - min(ts)) / 1e9 from slice")
        assert 0 < spent < 4

    def test_max_size_ends_the_recording_and_not_the_program(self, oracle, trace):
        text = "def f(): pass\nfor _ in range(100_000): f()\nprint('end')"
        run = record(trace, "--stream", "--max-size", "100k", "-c", text)
        assert (run.status, run.stdout) == (0, "end\n")
        assert 50 << 10 < trace.stat().st_size <= 100 << 10
        assert "f" in names(check_trace(oracle, run.trace, complete=False))

    def on_a_small_disk(
        self, trace: Path, *options: str, size: int = 9 << 20, calls: int = 600_000
    ) -> Run:
        """Record under the file size limit RLIMIT_FSIZE: writes fail as on a full disk."""
        text = f"def f(): pass\nfor _ in range({calls}): f()\nprint('end')"
        command = record_command(trace, *options, "-c", text)
        return alone(sys.executable, "-c", LIMITED.format(size=size), *command)

    def test_full_disk_ends_a_streamed_recording_but_not_the_program(self, oracle, trace):
        run = self.on_a_small_disk(trace, "--stream")
        assert (run.status, run.stdout) == (0, "end\n")
        assert "File too large" in run.stderr
        assert "lost" in run.stderr
        assert "f" in names(check_trace(oracle, trace.read_bytes(), complete=False))

    def test_ring_file_on_a_full_disk_can_be_recovered(self, oracle, trace):
        run = self.on_a_small_disk(trace, "--buffer", "8mb")
        assert (run.status, run.stdout) == (0, "end\n")
        assert "File too large" in run.stderr
        assert "stretto recover" in run.stderr
        assert "  trace: " not in run.stderr
        assert listing(trace.parent) == {"trace.pftrace.ring"}
        assert alone(sys.executable, "-m", "stretto", "recover", f"{trace}.ring").status == 0
        assert "f" in names(check_trace(oracle, trace.read_bytes(), complete=False))

    def test_ring_file_above_the_file_size_limit_is_refused(self, trace):
        run = self.on_a_small_disk(trace, "--buffer", "64mb")
        assert (run.status, run.stdout) == (125, "")
        assert "can't be made" in run.stderr
        assert "ulimit -f" in run.stderr
        assert listing(trace.parent) == set()

    @pytest.mark.parametrize("options", [("--buffer", "1mb"), ("--stream",)])
    def test_file_size_limit_does_not_apply_to_shared_memory(self, oracle, trace, options):
        """The kernel applies RLIMIT_FSIZE also to memfds. The recorder doesn't raise the limit."""
        run = self.on_a_small_disk(trace, *options, size=2 << 20, calls=1000)
        assert (run.status, run.stdout) == (0, "end\n")
        loaded = check_trace(oracle, trace.read_bytes())
        assert loaded.query("select count(*) from slice where name = 'f'") == [(1000,)]
        assert "not followed" not in run.stderr

    def test_process_is_not_recorded_if_its_shared_memory_exceeds_the_file_size_limit(self):
        run = self.on_a_small_disk(Path(os.devnull), "--stream", size=4000, calls=10)
        assert (run.status, run.stdout) == (0, "end\n")
        assert "not followed" in run.stderr
        assert "`ulimit -f` is too low" in run.stderr

    @pytest.mark.parametrize("options", [("--ring",), ("--stream",)])
    def test_recorder_fails_if_no_file_can_be_written(self, trace, options):
        run = self.on_a_small_disk(trace, *options, size=0)
        assert (run.status, run.stdout) == (125, "")
        assert run.stderr.startswith("stretto: record: ")
        assert listing(trace.parent) == set()

    def test_ring_file_is_kept_if_the_trace_cannot_be_created(self, oracle, trace):
        program = f"import os; os.mkdir({f'{trace}.part'!r}); print('end')"
        run = record(trace, "--ring", "-c", f"def f(): pass\nf()\n{program}")
        assert (run.status, run.stdout) == (0, "end\n")
        assert f"`stretto recover {trace}.ring -o ELSEWHERE`" in run.stderr
        found = trace.parent / "found"
        ring = [sys.executable, "-m", "stretto", "recover", f"{trace}.ring", "-o", str(found)]
        assert alone(*ring).status == 0
        assert "f" in names(check_trace(oracle, found.read_bytes(), complete=False))

    def test_message_does_not_name_a_ring_file_that_the_program_removed(self, trace):
        folder = trace.parent / "gone"
        folder.mkdir()
        program = f"import shutil; shutil.rmtree({str(folder)!r})"
        run = record(folder / trace.name, "--ring", "-c", program)
        assert run.status == 0
        assert "can't write the trace" in run.stderr
        assert "recover" not in run.stderr

    def test_ring_recording_keeps_the_newest_events(self, oracle, trace):
        # The shared memory holds all events, so none is lost if the recorder gets no CPU time.
        text = "def f(): pass\nfor _ in range(100_000): f()\ndef last(): pass\nlast()"
        run = record(trace, "--buffer", "1mb", "-c", text)
        loaded = check_trace(oracle, run.trace)
        assert "last" in names(loaded)
        said = re.search(r"the ring wrapped: kept the last (\S+) of (\S+) s, ", run.stderr)
        assert said
        assert float(said[1]) <= float(said[2])
        ((calls,),) = loaded.query("select count(*) from slice where name = 'f'")
        assert 10_000 < calls < 90_000

    def test_streamed_recording_keeps_all_events(self, oracle, trace):
        text = "def f(): pass\nfor _ in range(500_000): f()"
        run = record(trace, "--stream", "--buffer", "4mb", "-c", text)
        loaded = check_trace(oracle, run.trace)
        assert loaded.query("select count(*) from slice where name = 'f'") == [(500_000,)]
        assert "lost" not in run.stderr


@pytest.mark.thorough
class TestSnapshots:
    @pytest.mark.parametrize("options", [("--ring",), ("--stream",)])
    def test_snapshot_is_a_complete_trace_of_the_running_recording(
        self, oracle, trace, start, options
    ):
        process = start(*options, *works_for(5))
        time.sleep(1.5)  # sleep: the recorder records calls in this time
        process.send_signal(signal.SIGUSR2)
        snapshot = trace.with_name("trace.snapshot-1.pftrace")
        wait_until(snapshot.exists)
        assert process.poll() is None
        assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600
        assert process.communicate()[0] == "end\n"
        early = check_trace(oracle, snapshot.read_bytes(), complete=False)
        late = check_trace(oracle, trace.read_bytes(), complete=False)
        count = "select count(*) from slice where name = 'work'"
        assert 0 < early.query(count)[0][0] < late.query(count)[0][0]


class TestKilledRecorder:
    def kill(self, process: subprocess.Popen[str]) -> None:
        time.sleep(2.5)  # sleep: the recorder records calls in this time
        process.kill()
        process.wait()

    def test_program_continues_when_its_recorder_is_killed(self, trace, start):
        process = start(*works_for(4))
        self.kill(process)
        assert process.communicate()[0] == "end\n"

    def test_streamed_trace_of_a_killed_recorder_is_readable(self, oracle, trace, start):
        self.kill(start("--stream", *works_for(5)))
        part = Path(f"{trace}.part").read_bytes()
        assert "work" in names(check_trace(oracle, part, complete=False))

    def test_snapshot_and_streamed_trace_of_a_killed_recorder_have_the_calls_of_a_slow_program(
        self, oracle, trace, start
    ):
        script = trace.with_name("app.py")
        script.write_text(SLOW)
        process = start("--auto", str(script))
        part, snapshot = Path(f"{trace}.part"), trace.with_name("trace.snapshot-1.pftrace")
        wait_until(lambda: part.exists() and b"slow_step" in part.read_bytes())
        process.send_signal(signal.SIGUSR2)
        wait_until(snapshot.exists)
        process.kill()
        process.wait()
        for path in snapshot, part:
            assert "slow_step" in names(check_trace(oracle, path.read_bytes(), complete=False))

    def test_ring_file_of_a_killed_recorder_is_recovered(self, oracle, trace, start):
        self.kill(start("--buffer", "4mb", *works_for(5)))
        ring = f"{trace}.ring"
        run = alone(sys.executable, "-m", "stretto", "recover", ring)
        assert (run.status, run.stderr) == (0, "")
        loaded = check_trace(oracle, trace.read_bytes(), complete=False)
        ((calls,),) = loaded.query("select count(*) from slice where name = 'work'")
        assert calls > 100
        assert Path(ring).exists()

    def test_recover_refuses_the_ring_file_of_a_running_recorder(self, trace, start):
        start("--ring", *works_for(10))
        ring = f"{trace}.ring"
        wait_until(Path(ring).exists)
        run = alone(sys.executable, "-m", "stretto", "recover", ring)
        assert run.status == 1
        assert "in use" in run.stderr

    @pytest.mark.parametrize("content", [b"", b"isn't a ring" * 1000])
    def test_recover_refuses_a_file_that_is_not_a_ring_buffer(self, tmp_path, content):
        (tmp_path / "x.ring").write_bytes(content)
        run = alone(sys.executable, "-m", "stretto", "recover", str(tmp_path / "x.ring"))
        assert run.status == 1
        assert "isn't a ring" in run.stderr
        assert listing(tmp_path) == {"x.ring"}
