"""Signals, terminals and job control work under `stretto record` as without it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.recorded import alone, record_command

LISTENS = """
import os, signal, time
def said(number, frame):  # os.write, for another signal may interrupt this
    global end
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    end = time.monotonic() + float(os.environ.get("QUIET_S", 1))
for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT", "SIGQUIT"):
    signal.signal(getattr(signal, name), said)
end = time.monotonic() + 60
print("ready", flush=True)
while time.monotonic() < end: time.sleep(0.05)  # sleep: waits for signals
print("end", flush=True)
"""

BUSY = """
import time
end = time.monotonic() + 60
print("ready", flush=True)
while time.monotonic() < end: pass
print("end", flush=True)
"""


@pytest.fixture
def listener(tmp_path, request):
    """A recorded program in a process group of its own; the program prints the signals it gets."""
    command = record_command(tmp_path / "trace", "-q", "-c", LISTENS)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "QUIET_S": str(getattr(request, "param", 1))},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    if process.poll() is None:  # a test failed and left the recorder and the program running
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


FORWARDED = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT]


class TestForwardedSignals:
    def test_signal_to_the_recorder_is_forwarded(self, listener):
        for number in FORWARDED:
            listener.send_signal(number)
        out, err = listener.communicate()
        assert sorted(out.split()) == sorted([n.name for n in FORWARDED] + ["end"])
        assert (listener.returncode, err) == (0, "")

    @pytest.mark.parametrize("number", FORWARDED)
    def test_signal_to_the_process_group_arrives_once(self, listener, number):
        os.killpg(listener.pid, number)
        assert listener.communicate()[0] == f"{number.name}\nend\n"

    @pytest.mark.parametrize("listener", [60], indirect=True)
    def test_signals_to_the_process_group_and_then_to_the_recorder_both_arrive(self, listener):
        os.killpg(listener.pid, signal.SIGTERM)
        time.sleep(0.5)  # sleep: the kernel merges equal signals that are pending at once
        listener.send_signal(signal.SIGTERM)
        assert [listener.stdout.readline() for _ in range(2)] == ["SIGTERM\n", "SIGTERM\n"]

    def test_signal_ignored_by_the_recorder_is_ignored_by_the_program(self, tmp_path):
        """nohup, for example, starts programs with SIGHUP ignored."""
        text = (
            "import signal; print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGINT))"
        )
        command = record_command(tmp_path / "trace", "-q", "-c", text)
        run = alone("sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", *command)
        assert run.stdout == "1 1\n"

    def test_recorded_program_has_no_signal_blocked(self, tmp_path):
        text = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"
        assert alone(*record_command(tmp_path / "trace", "-q", "-c", text)).stdout == "set()\n"

    def test_broken_pipe_kills_a_command_as_without_a_recorder(self, tmp_path):
        command = record_command(tmp_path / "trace", "-q", "--", "sh", "-c", "yes; echo $? >&2")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.communicate()[1] == b"141\n"


class Terminal:
    """A program with its own pseudo-terminal; `said` is the output so far."""

    def __init__(self, *command: str, cwd: Path) -> None:
        self.said = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ["PS1"] = "$ "
            os.execvp(command[0], command)

    def read_until(self, found: Callable[[str], bool], timeout_s: float = 20) -> None:
        end = time.monotonic() + timeout_s
        while not found(self.said):
            assert time.monotonic() < end, self.said
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self._fd, 4096).decode()
                except OSError:  # Linux reports the end of file of a terminal as EIO
                    return

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def close(self) -> int:
        """Read the program's output to its end, and close the terminal; return the exit status."""
        self.read_until(lambda _: False)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def says(text: str) -> Callable[[str], bool]:
    return lambda said: text in said


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*forkpty:DeprecationWarning")
class TestProgramOnTerminal:
    def recorded(self, tmp_path: Path, *arguments: str) -> Terminal:
        return Terminal(*record_command(tmp_path / "trace", *arguments), cwd=tmp_path)

    def test_ctrl_c_reaches_the_program_once(self, tmp_path):
        terminal = self.recorded(tmp_path, "-q", "-c", LISTENS)
        terminal.read_until(says("ready"))
        terminal.type("\x03")
        assert terminal.close() == 0
        assert terminal.said.count("SIGINT") == 1

    def test_ctrl_c_kills_the_program_and_writes_the_trace(self, tmp_path):
        # sleep: ends at Ctrl-C; a long one would not, if the signal came just before it
        text = "import time; print('ready', flush=True)\nfor _ in range(400): time.sleep(0.05)"
        terminal = self.recorded(tmp_path, "-c", text)
        terminal.read_until(says("ready"))
        terminal.type("\x03")
        assert terminal.close() == -signal.SIGINT
        assert "KeyboardInterrupt" in terminal.said
        assert "1 process" in terminal.said
        assert (tmp_path / "trace").stat().st_size > 1000

    def test_program_can_read_from_the_terminal(self, tmp_path):
        """No progress line is shown while the program waits for input."""
        terminal = self.recorded(tmp_path, "-c", "print('hello', input('Who? '))")
        terminal.read_until(says("Who? "))
        time.sleep(3.5)  # sleep: longer than the pause before the first line of progress
        terminal.type("me\n")
        assert terminal.close() == 0
        assert "hello me" in terminal.said
        assert "recording" not in terminal.said

    def test_progress_is_shown_while_the_program_writes_nothing(self, tmp_path):
        # sleep: longer than the pause before the first line of progress
        terminal = self.recorded(tmp_path, "-c", "import time; time.sleep(4); print('end')")
        assert terminal.close() == 0
        assert "stretto: recording, 3 s, 1 process" in terminal.said

    def test_quiet_option_shows_no_progress(self, tmp_path):
        # sleep: longer than the pause before the first line of progress
        terminal = self.recorded(tmp_path, "-q", "-c", "import time; time.sleep(4)")
        assert terminal.close() == 0
        assert terminal.said == ""

    @pytest.mark.parametrize("program", [LISTENS, BUSY])
    @pytest.mark.parametrize("options", [(), ("--sample", "1000hz", "--native")])
    def test_program_can_be_stopped_and_continued(self, tmp_path, program, options):
        """With --native a program that runs is stopped for each sample, too."""
        (tmp_path / "listens.py").write_text(program.replace("60", "2.5"))
        command = " ".join(record_command(Path("trace"), "-q", *options, "listens.py"))
        terminal = Terminal("bash", "--norc", "--noprofile", "-i", cwd=tmp_path)
        terminal.read_until(says("$ "))
        terminal.type(f"{command}\n")
        terminal.read_until(says("ready\r\n"))
        terminal.type("\x1a")
        terminal.read_until(says("Stopped"))
        terminal.type("fg\n")
        terminal.read_until(says("end\r\n"))
        terminal.type("echo status=$?; exit\n")
        terminal.close()
        assert "status=0" in terminal.said
        assert sys.executable in terminal.said
