"""The descriptors of this process and its threads in a trace.

The uuids are computed as in Perfetto, so that other producers in the same process use the same
tracks::

    process uuid = FNV-1a 64 of (start time, u64; pid, i32)
    thread uuid  = tid ^ process uuid

Source: docs/formats/track_events.md, "Tracks".
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident, get_native_id
from _weakref import ref

from stretto import _native
from stretto.base.hashes import fnv1a
from stretto.client import postponed
from stretto.client.track_event.process_name import hidden, process_name, words
from stretto.protozero import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from types import FrameType, ModuleType

MAX_CMDLINE_BYTES = 1024
MAX_STAT_BYTES = 4096

# Field numbers of TracePacket, ProcessTree, ProcessTree.Process.
_PROCESS_TREE, _PROCESSES = 2, 1
_TREE_PID, _TREE_PPID, _TREE_CMDLINE, _TREE_START = 1, 2, 3, 7

# Field numbers of TrackDescriptor, ProcessDescriptor, ThreadDescriptor.
_UUID, _PROCESS, _THREAD, _PARENT_UUID = 1, 3, 4, 5
_PROCESS_PID, _PROCESS_CMDLINE, _PROCESS_NAME, _PROCESS_START, _PROCESS_LABELS = 1, 2, 6, 7, 8
_THREAD_PID, _THREAD_TID, _THREAD_NAME = 1, 2, 5


_start_ticks = 0
"""The start of this process in clock ticks, as `process_uuid` has read it."""


def _read(path: str, size: int) -> bytes:
    """Return the start of a file; b"" without it. A file object needs twice the system calls."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, size)
        finally:
            os.close(fd)
    except OSError:
        return b""


def _process_start_time() -> int:
    """Return field 22 of /proc/self/stat, in clock ticks; 0 if there is no /proc."""
    fields = _read("/proc/self/stat", MAX_STAT_BYTES).rpartition(b")")[2].split()
    try:
        return int(fields[19])
    except (ValueError, IndexError):
        return 0


def _start_time_ns() -> int:
    return _start_ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def uuid_of_process(pid: int, start_time: int) -> int:
    """Return the uuid of a process's track; `start_time` is in clock ticks, as in /proc."""
    return fnv1a(start_time.to_bytes(8, "little") + pid.to_bytes(4, "little"))


def process_uuid() -> int:
    """Return the uuid of this process's track."""
    global _start_ticks
    _start_ticks = _process_start_time()
    return uuid_of_process(os.getpid(), _start_ticks)


def _cmdline() -> list[str]:
    raw = _read("/proc/self/cmdline", MAX_CMDLINE_BYTES)
    found = [word.decode("utf-8", "replace") for word in raw.split(b"\0") if word]
    return (found or words("orig_argv"))[: 1 if hidden.arguments else None]


def process_descriptor(uuid: int) -> bytes:
    """Return the encoded TrackDescriptor of this process."""
    cmdline = _cmdline()
    process = wire.varint_field(_PROCESS_PID, os.getpid())
    for word in cmdline:
        process += wire.bytes_field(_PROCESS_CMDLINE, word.encode("utf-8", "replace"))
    process += wire.bytes_field(_PROCESS_NAME, process_name().encode("utf-8", "replace"))
    process += wire.varint_field(_PROCESS_START, _start_time_ns())
    label = " ".join(cmdline).encode("utf-8", "replace")
    process += wire.bytes_field(_PROCESS_LABELS, label)
    return wire.varint_field(_UUID, uuid) + wire.bytes_field(_PROCESS, process)


def process_tree(parent_pid: int) -> bytes:
    """Encode a TracePacket with a ProcessTree: this process's name, command line and parent.

    The trace processor names a process by the last process tree that lists it. If there is no such
    tree, the first track descriptor names the process. So this packet renames the process, also if
    the data source `linux.process_stats` has named it "/usr/bin/python3". The name is the first
    word of the command line. A packet with another parent pid would define a new process.

    Args:
        parent_pid: The parent's pid when the session began.
    """
    process = wire.varint_field(_TREE_PID, os.getpid())
    process += wire.varint_field(_TREE_PPID, parent_pid)
    left = MAX_CMDLINE_BYTES
    # If a command line has only one word, the trace processor cuts it at the first space. So an
    # empty second word is added.
    arguments = [] if hidden.arguments else words()[1:]
    for word in (process_name(), *(arguments or [""])):
        encoded = word.encode("utf-8", "replace")[:left]
        process += wire.bytes_field(_TREE_CMDLINE, encoded)
        left -= len(encoded)
    process += wire.varint_field(_TREE_START, _start_time_ns())
    return wire.bytes_field(_PROCESS_TREE, wire.bytes_field(_PROCESSES, process))


soon: list[Callable[[], object]] = []
"""Functions to call once, on the next thread that records an event: the main thread may be
blocked for long."""


def _starting_thread(threading: ModuleType) -> Thread | None:
    """Return the Thread that is starting in this call stack; `threading` may not list it yet."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  # documented for CPython
    while frame is not None:
        if frame.f_code.co_name == "_bootstrap" and frame.f_globals is threading.__dict__:
            found: Thread | None = frame.f_locals.get("self")
            return found
        frame = frame.f_back
    return None


def _own_thread() -> Thread | None:
    """Return the calling thread's object, without making a dummy thread or taking a lock.

    `threading.current_thread()` would make a dummy thread, `threading.enumerate()` would take a
    lock, and an event may be recorded while one of these functions runs.
    """
    threading = sys.modules.get("threading")
    if threading is None:
        return None
    return getattr(threading, "_active", {}).get(get_ident()) or _starting_thread(threading)


def _thread_name(thread: Thread | None, known_name: str | None) -> str:
    if thread is not None:
        return str(thread.name)
    if known_name is not None:
        return known_name
    if get_native_id() == os.getpid():
        return "MainThread"
    try:
        with open(f"/proc/self/task/{get_native_id()}/comm", encoding="utf-8") as comm:
            return comm.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def thread_name() -> str:
    """Return the name of the calling thread, without making a dummy thread or taking a lock."""
    return _thread_name(_own_thread(), None)


def _named_thread(thread: Thread | None, name: str) -> ref[Thread] | None:
    """Return the thread if its name is its attribute `_name`, as native code assumes.

    A subclass may have a property `name` of its own.
    """
    if thread is None or getattr(thread, "_name", None) is not name:
        return None
    plain = type(thread).name is sys.modules["threading"].Thread.name
    return ref(thread) if plain else None


def describe_thread(
    known_name: str | None,
) -> tuple[int, bytes, str, ref[Thread] | None] | None:
    """Return (uuid, encoded TrackDescriptor, name, reference) of the calling thread.

    Returns None if the thread's name is still `known_name`. Native code compares the name of the
    referenced thread by itself, and calls this function only if the name differs.
    """
    postponed.run()
    while soon:
        soon.pop()()
    thread = _own_thread()
    name = _thread_name(thread, known_name)
    if name == known_name:
        return None
    tid = get_native_id()
    _native.describe_process()
    parent = _process_uuid
    uuid = tid ^ parent
    ids = wire.varint_field(_THREAD_PID, os.getpid()) + wire.varint_field(_THREAD_TID, tid)
    if name:
        ids += wire.bytes_field(_THREAD_NAME, name.encode("utf-8", "replace"))
    descriptor = wire.varint_field(_UUID, uuid) + wire.varint_field(_PARENT_UUID, parent)
    descriptor += wire.bytes_field(_THREAD, ids)
    return uuid, descriptor, name, _named_thread(thread, name)


_process_uuid = 0
_announced = b""


def announce_process() -> None:
    """Pass the description of this process to the native part.

    Called again at the first use after a fork, and when the name may have changed: a program may
    rename itself, and has no name until its script is found.
    """
    global _process_uuid, _announced
    # Set the uuid first: if the calls below are traced, the descriptor of this thread contains it.
    _process_uuid = process_uuid()
    descriptor = process_descriptor(_process_uuid)
    if descriptor != _announced:
        _announced = descriptor
        _native.set_process(_process_uuid, descriptor)
