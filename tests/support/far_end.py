"""The other end of a connection, in the hands of a test."""

from __future__ import annotations

from typing import Self

from stretto.base.unix_socket import UnixSocket
from stretto.testing.fake_task_runner import FakeTaskRunner


class FarEnd:
    """Says and reads bytes; the near end belongs to the code under test.

    Args:
        runner: Runs until it is idle after every word.
    """

    def __init__(self, runner: FakeTaskRunner) -> None:
        self._runner = runner
        self._end, self.near = UnixSocket.pair()
        self._buffer = memoryview(bytearray(1 << 20))
        self.hung_up = False

    def say(self, data: bytes) -> None:
        """Send all of it."""
        while data:
            data = data[self._end.send(data) :]
            self._runner.run_until_idle()

    def hear_some(self) -> bytes:
        """What is there now, a megabyte at most; the near end may send more afterwards."""
        received = self._end.recv_into(self._buffer)
        if received is None:
            return b""
        self.hung_up = received[0] == 0
        return bytes(self._buffer[: received[0]])

    def hear(self) -> bytes:
        """All that comes until nothing more does."""
        heard = b""
        self._runner.run_until_idle()
        while some := self.hear_some():
            heard += some
            self._runner.run_until_idle()
        return heard

    def fill(self) -> int:
        """Send until nothing is taken any more. The bytes that were taken."""
        total = 0
        while taken := self._end.send(bytes(1 << 16)):
            total += taken
            self._runner.run_until_idle()
        return total

    def hang_up(self) -> None:
        """Close."""
        self._end.close()
        self._runner.run_until_idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()
