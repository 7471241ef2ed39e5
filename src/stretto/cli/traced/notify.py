"""Notifies the process that started the daemon of its state.

NOTIFY_SOCKET=/run/systemd/notify    systemd: READY=1, STOPPING=1
TRACED_NOTIFY_FD=5                   Perfetto's programs: "1", then the descriptor is closed
"""

from __future__ import annotations

import os
import socket

SOCKET_VARIABLE = "NOTIFY_SOCKET"
FD_VARIABLE = "TRACED_NOTIFY_FD"


class Notifier:
    """Sends notifications to the receivers that two environment variables name.

    The constructor removes both variables from the environment."""

    def __init__(self) -> None:
        self._address = os.environ.pop(SOCKET_VARIABLE, "")
        fd = os.environ.pop(FD_VARIABLE, "")
        self._fd = int(fd) if fd.isdecimal() else -1

    def ready(self) -> None:
        """Notify that connections are accepted."""
        self._send("READY=1")
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.write(fd, b"1")
                os.close(fd)
            except OSError:
                pass  # The process that started the daemon has stopped waiting.

    def stopping(self) -> None:
        """Notify that the shutdown has begun, which may take some seconds."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
            try:
                end.sendto(state.encode(), socket.MSG_DONTWAIT, address)
            except OSError:
                pass  # The daemon works without notifications, too.
