"""The far end of a connection, controlled by a test."""

from __future__ import annotations

from typing import Self

from stretto.base.unix_socket import UnixSocket
from stretto.testing.fake_task_runner import FakeTaskRunner


class FarEnd:
    """Sends and receives bytes; the near end belongs to the code under test.

    Args:
        runner: Runs until it is idle after every send.
    """

    def __init__(self, runner: FakeTaskRunner) -> None:
        self._runner = runner
        self._end, self.near = UnixSocket.pair()
        self._buffer = memoryview(bytearray(1 << 20))
        self.disconnected = False

    def say(self, data: bytes) -> None:
        """Send all the bytes."""
        while data:
            data = data[self._end.send(data) :]
            self._runner.run_until_idle()

    def hear_some(self) -> bytes:
        """Return the received bytes, at most a megabyte; the near end may send more afterwards."""
        received = self._end.recv_into(self._buffer)
        if received is None:
            return b""
        self.disconnected = received[0] == 0
        return bytes(self._buffer[: received[0]])

    def hear(self) -> bytes:
        """Return all bytes until no more arrive."""
        heard = b""
        self._runner.run_until_idle()
        while some := self.hear_some():
            heard += some
            self._runner.run_until_idle()
        return heard

    def fill(self) -> int:
        """Send until the near end accepts no more; return the accepted bytes."""
        total = 0
        while taken := self._end.send(bytes(1 << 16)):
            total += taken
            self._runner.run_until_idle()
        return total

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end.close()
