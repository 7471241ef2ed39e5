"""Connects a running program to a recorder that attaches to it, and detaches it again.

    recorder  --script-->  main thread  --starts-->  thread: calls `start`, then ends
    recorder  <--producer connection, shared memory--> program
    recorder  <--control connection--  an empty line when attached; closed when detached

The producer connection ends when the recorder stops or is killed. Then the program is detached. The
IPC thread does this, so the main thread may be busy or blocked. Loaded modules stay in the program.
The functions passed to `os.register_at_fork` can't be removed; they have no effect afterwards.
Forked children are not recorded.
"""

from __future__ import annotations

import atexit
import os
import sys
from _thread import allocate_lock

import stretto
from stretto import _native, profilers
from stretto.backends.system import SystemBackend
from stretto.base.errors import StrettoError
from stretto.base.unix_socket import UnixSocket
from stretto.client import fork
from stretto.client.tracing import tracing
from stretto.recorder.target import bootstrap
from stretto.recorder.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.client.producer_connection import ProducerConnection
    from stretto.recorder.target.injected import ForkGuard

BACKEND = "attach"
DEADLINE_MS = 3000.0


class _Backend(SystemBackend):
    """The connection to the recorder. It calls `detach` when the connection ends."""

    def connect_producer(self, producer: ProducerConnection) -> None:
        """Connect to the recorder."""
        producer.on_gone = detach
        super().connect_producer(producer)


class _Attachment:
    """The connections of this process to the recorder."""

    __slots__ = ("backend", "control")

    def __init__(self, workspace: Workspace) -> None:
        self.control = UnixSocket.connect(workspace.control_socket, DEADLINE_MS)
        name = os.path.basename(sys.executable or "python")
        self.backend = _Backend(workspace.producer_socket, name, DEADLINE_MS)


_attachments: list[_Attachment] = []
"""The attachment of this process; empty if there is none."""

fork_guard: ForkGuard | None = None
"""The guard of this process; the script sets it before it calls `start`."""

_starting = allocate_lock()
"""Held while a thread connects. A fork that has stopped the helper threads waits for it."""


def start(folder: str) -> None:
    """Record this process from now on; errors are sent to the recorder.

    Args:
        folder: the recorder's workspace.

    Raises:
        StrettoError: the recorder has ended, or this process is recorded already.
    """
    _native.call_untraced(_start, Workspace(folder))


def _start(workspace: Workspace) -> None:
    if not stretto.available():
        raise StrettoError("its Stretto has no native part")
    if _attachments or bootstrap.is_connected():
        raise StrettoError("it is recorded by another `stretto record` already")
    fork.install()
    with _starting:
        fork.before.append(_wait_for_start)
        try:
            _connect(workspace)
        except BaseException:
            detach()
            raise
        finally:
            fork.before.remove(_wait_for_start)


def _wait_for_start() -> None:
    if _starting.acquire(timeout=DEADLINE_MS / 1000):
        _starting.release()


def _connect(workspace: Workspace) -> None:
    from stretto import _wiring

    attachment = _Attachment(workspace)
    _attachments.append(attachment)
    _wiring.install()
    options = workspace.read_options()
    # Auto detail isn't used: its mapped file and its counts would remain after the detach.
    options.pop("auto_detail", None)
    bootstrap.configure(options, workspace)
    if _forget not in fork.after_in_child:
        fork.after_in_child.append(_forget)
    atexit.register(detach)
    tracing.connect(BACKEND, attachment.backend)
    workspace.note(profilers.problems())
    attachment.control.send(b"\n")


def detach() -> None:
    """Stop recording this process, and close all connections to the recorder. Idempotent."""
    if _attachments:
        _native.call_untraced(_detach_guarded)


def _detach_guarded() -> None:
    guarded = fork_guard is not None and not _starting.locked() and fork_guard.begin()
    try:
        _detach()
    finally:
        if guarded and fork_guard is not None:
            fork_guard.end()


def _detach() -> None:
    if not _attachments:
        return
    attachment = _attachments.pop()
    attachment.backend.close()
    tracing.forget(BACKEND)
    atexit.unregister(detach)
    if _forget in fork.after_in_child:
        fork.after_in_child.remove(_forget)
    profilers.install()
    attachment.control.close()


def _forget() -> None:
    """In the child of a fork: close the connections, which belong to the parent."""
    global _starting
    _starting = allocate_lock()
    while _attachments:
        _attachments.pop().control.close()
    atexit.unregister(detach)
