"""`python.io_waits`: calls that wait for files, peers and timers, with the file's or peer's name.

    MainThread   ▁▁[socket.recv]▁▁▁[FileIO.readinto]▁▁[time.sleep]▁▁   peer = 10.0.0.7:5432

It needs no rights, but sees only functions of CPython's own modules. With root and tracefs,
`linux.syscall_waits` sees all system calls of all threads.

Nothing of the program is replaced: native code observes the C functions. Modules that the program
has not imported are not imported.
"""

from __future__ import annotations

import os

import stretto
from stretto._pyhooks import observe_io_waits, start_io_waits, stop_io_waits
from stretto.client.track_event import slots
from stretto.profilers.on_import import stop_waiting, when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

MIN_NS = 1_000_000
NOTHING, SELF, FIRST_ARGUMENT = range(3)
"""What a function waits for: nothing that has a name, its object, its first argument."""
FUNCTIONS = (
    ("_socket", "socket", SELF, "recv recv_into recvfrom recvfrom_into recvmsg"),
    ("_socket", "socket", SELF, "send sendall sendto sendmsg connect connect_ex _accept"),
    ("_ssl", "_SSLSocket", SELF, "read write do_handshake"),
    ("_io", "FileIO", SELF, "read readinto readall write"),
    ("_io", "", FIRST_ARGUMENT, "open"),
    ("posix", "", FIRST_ARGUMENT, "read write pread pwrite fsync fdatasync open"),
    ("posix", "", NOTHING, "waitpid wait"),
    ("time", "", NOTHING, "sleep"),
    ("select", "", FIRST_ARGUMENT, "select"),
    ("select", "epoll", NOTHING, "poll"),
)
"""Module, type, what its functions wait for, their names."""

category = stretto.Category("python.io_waits", "waits for files, peers and timers", ["slow"])
_installed = False


def _address(address: object) -> str:
    """Return the text of a socket's address."""
    if isinstance(address, tuple) and len(address) >= 2:
        host = f"[{address[0]}]" if ":" in str(address[0]) else address[0]
        return f"{host}:{address[1]}"
    text = os.fsdecode(address) if isinstance(address, bytes) else str(address)
    return text.replace("\0", "@", 1) or "unix socket"


def _peer(connection: Any) -> str:
    try:
        return _address(connection.getpeername())
    except OSError:
        return f"listening on {_address(connection.getsockname())}"


def describe(subject: Any) -> tuple[str | None, str | None]:
    """Return the file and the peer behind an object, of which one or both are None.

    Args:
        subject: A socket, a file, a path, a descriptor, or a list of one of them.
    """
    if isinstance(subject, list):
        return describe(subject[0]) if len(subject) == 1 else (None, None)
    if isinstance(subject, int):
        return os.readlink(f"/proc/self/fd/{subject}"), None
    if isinstance(subject, str | bytes | os.PathLike):
        return os.path.abspath(os.fsdecode(subject)), None
    owner = getattr(subject, "owner", subject)  # Of the C part of an SSLSocket.
    if hasattr(owner, "getpeername"):
        return None, _peer(owner)
    return describe(getattr(subject, "name", subject.fileno()))


def _observe(module: ModuleType, module_name: str) -> None:
    for name, type_name, subject, functions in FUNCTIONS:
        holder = getattr(module, type_name, None) if type_name else module
        if name != module_name or holder is None:
            continue
        for function in functions.split():
            found = getattr(holder, function, None)
            title = f"{type_name or name}.{function}".removeprefix("_").removeprefix("posix.")
            if found is not None:
                observe_io_waits(found, category.template(title, "file", "peer"), subject)


_observers: dict[str, Callable[[ModuleType], None]] = {
    row[0]: lambda module, name=row[0]: _observe(module, name)  # type: ignore[misc]
    for row in FUNCTIONS
}
"""By module: `_io` calls itself `io` on CPython 3.11."""


def _on_change(enabled: bool) -> None:
    if not enabled:
        stop_io_waits()
        for name, observer in _observers.items():
            stop_waiting(name, observer)
    elif start_io_waits(describe, MIN_NS):
        for name, observer in _observers.items():
            when_imported(name, observer)


def install() -> None:
    """Record waits while a session records the category."""
    global _installed
    if not _installed:
        _installed = True
        slots.observe(category, _on_change)
