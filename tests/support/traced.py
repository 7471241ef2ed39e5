"""Runs `stretto traced` and producers as processes that end with the test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.polling import wait_until
from tests.support.system_consumer import SystemConsumer

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 60
COMMAND = [sys.executable, "-m", "stretto", "traced"]

PRODUCER = """
import sys
import stretto
from stretto import _wiring
from stretto.backends.system import SystemBackend
from stretto.base.socket_names import producer_socket
from stretto.client.tracing import tracing

_wiring.install()

class Custom(stretto.DataSource):
    name = "test.custom"

Custom.register()
backend = SystemBackend(producer_socket(), sys.argv[1])
tracing.connect("system", backend)
category = stretto.Category("test")
print("connected", flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        with category.slice(sys.argv[1], number=number):
            pass
    print("wrote", line, end="", flush=True)
backend.close()
"""
"""Named by its argument; for each number that it reads it writes so many slices."""


class Process:
    """A process whose input and output a test handles line by line."""

    def __init__(self, *command: str, **options: Any) -> None:
        options.setdefault("stdin", subprocess.PIPE)
        options.setdefault("stdout", subprocess.PIPE)
        self.popen = subprocess.Popen(command, **options)
        self.pid = self.popen.pid

    def line(self, stream: str = "stdout") -> str:
        """Return the next line that the process prints."""
        pipe = getattr(self.popen, stream)
        assert select.select([pipe], [], [], TIMEOUT_S)[0], "the process printed no line"
        return bytes(pipe.readline()).decode()

    def write_line(self, text: str) -> None:
        """Write a line to the standard input of the process."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(text.encode() + b"\n")
        self.popen.stdin.flush()

    def wait(self) -> int:
        """Wait until the process ends; return its exit status."""
        return self.popen.wait(TIMEOUT_S)

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def stop(self) -> None:
        """Stop the process with SIGSTOP, and wait until it is stopped."""
        self.signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "a stop")

    def close(self) -> None:
        """Kill the process."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class ProcessGroup(Process):
    """A process that is killed at the end of the test, with all its descendants."""

    def __init__(self, *command: str, **options: Any) -> None:
        super().__init__(*command, start_new_session=True, **options)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        super().close()


class Daemon(Process):
    """A `stretto traced` daemon that accepts connections when the constructor returns.

    Args:
        folder: Folder of the sockets `producer` and `consumer`, unless `environment` names
            other sockets.
        options: Options of the command `stretto traced`.
        environment: Further environment variables.
        popen: Additional arguments of subprocess.Popen.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        environment: dict[str, str] | None = None,
        command: list[str] | None = None,
        **popen: Any,
    ) -> None:
        self.environment = daemon_environment(folder, **(environment or {}))
        self.producer_socket = self.environment["PERFETTO_PRODUCER_SOCK_NAME"]
        self.consumer_socket = self.environment["PERFETTO_CONSUMER_SOCK_NAME"]
        super().__init__(
            *(command or COMMAND),
            *options,
            env=self.environment,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            **popen,
        )
        self.first_line = self.line("stderr")
        if "listens:" not in self.first_line:
            self.popen.kill()
            _, more = self.popen.communicate()
            raise AssertionError(self.first_line + more.decode())

    def log(self) -> str:
        """Return the next line that the daemon logs."""
        return self.line("stderr")

    def producer(self, name: str) -> Process:
        """Start a Python program that connects to the daemon."""
        producer = Process(sys.executable, "-c", PRODUCER, name, env=self.environment)
        try:
            assert producer.line() == "connected\n"
        except AssertionError:
            producer.close()
            raise
        return producer

    def consumer(self) -> SystemConsumer:
        return SystemConsumer(self.consumer_socket)


def daemon_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment variables of a daemon and of its clients."""
    return {
        **os.environ,
        "PERFETTO_PRODUCER_SOCK_NAME": str(folder / "producer"),
        "PERFETTO_CONSUMER_SOCK_NAME": str(folder / "consumer"),
        **more,
    }


@contextlib.contextmanager
def closing_all(*things: Any) -> Iterator[list[Any]]:
    """Yield a list whose items are closed at the end of the block, in reverse order."""
    opened = list(things)
    try:
        yield opened
    finally:
        for thing in reversed(opened):
            thing.close()


def context_switches(pid: int) -> int:
    """Return the number of voluntary context switches of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches"):
            return int(line.split()[1])
    raise AssertionError
