"""Names what threads have waited for, from their system calls in the order of time.

A call is seen when it has ended: then its descriptor may refer to another file. But the calls that
close descriptors are seen, too. With

    begin   the time at which the wait began
    read    the time at which the name was read from /proc

the name is right if the descriptor was not closed between the two. Calls up to `read` are known
only in the next list of calls, so a wait is held until then.

Most long waits are named before they end: `add_open` gets calls that last.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from stretto.probes.call_memory import path_argument, polled_descriptor
from stretto.probes.open_files import OpenFile, OpenFiles
from stretto.probes.syscall_threads import CallingThread, CallingThreads
from stretto.probes.waiting_calls import (
    ALWAYS,
    NEW_THREAD,
    POLL,
    RETURNING_FD,
    USES_FD,
    WAIT,
    Call,
    WaitingCalls,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.probes.machine import Machine

MAX_HELD = 2000
"""The most waits of a list: further ones are counted."""
ENDED = "threads ended before they were seen"
TOO_MANY = "too many at once"
_CLOSING = {"close": 0, "dup2": 1, "dup3": 1}
"""Calls that close a descriptor, and which argument that is."""


class Wait(NamedTuple):
    """A wait.

    Attributes:
        thread: The thread that has waited.
        name: The name of the system call.
        call: The call.
        fd: The descriptor that was waited for; -1: none, or unknown.
        target: What that refers to; None if it is unknown.
    """

    thread: CallingThread
    name: str
    call: Call
    fd: int
    target: OpenFile | None


class Waits:
    """The waits of all threads except those of one process.

    Args:
        machine: Has the folder `proc`, and the clock.
        calls: The calls of the architecture.
        hidden: The process whose waits are left out.
        min_ns: The least duration of a wait.

    Attributes:
        lost: The number of waits that are missing, by the reason.
    """

    def __init__(self, machine: Machine, calls: WaitingCalls, hidden: int, min_ns: int) -> None:
        self._calls = calls
        self._hidden = hidden
        self._min_ns = min_ns
        self._machine = machine
        self._files = OpenFiles(machine)
        self._threads = CallingThreads(machine)
        self._closed: dict[tuple[int, int], list[int]] = {}
        self._held: list[Wait] = []
        self._open: dict[tuple[int, int], Wait] = {}
        """Waits that are named, but have not ended, by thread and begin."""
        self.lost: Counter[str] = Counter()

    def add(self, rows: Iterable[tuple[int, ...]]) -> list[Wait]:
        """Take a list of calls; return the waits in the list before it."""
        calls = [Call(*row) for row in rows]
        self._note_threads(calls)
        self._note_closed(calls)
        ready = [self._checked(wait) for wait in self._held]
        self._held.clear()
        self._open = {key: self._checked(wait) for key, wait in self._open.items()}
        self._files.forget_tables()
        for call in calls:
            thread = self._thread(call)
            if thread is not None:
                self._add(thread, call)
        return ready

    def add_open(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Name the waits in calls that have not ended."""
        if len(self._open) >= MAX_HELD:
            self._open.clear()  # Most of these threads were killed in their calls.
        for row in rows:
            call = Call(*row)
            thread = self._thread(call)
            wait = self._name_open(thread, self._name(call), call) if thread else None
            if wait is not None and wait.target is not None:
                self._open[call.tid, call.begin] = wait

    def _name_open(self, thread: CallingThread, name: str, call: Call) -> Wait:
        if name in RETURNING_FD:
            now = self._machine.now_ns()
            path = path_argument(self._machine, call, name)
            target = OpenFile(path, is_socket=False, read_ns=now) if path else None
            return Wait(thread, name, call, -1, target)
        if name in ("poll", "ppoll"):
            fd = polled_descriptor(self._machine, call)
        else:
            fd = self._descriptor(name, call)
        return Wait(thread, name, call, fd, self._files.name(thread.pid, fd))

    def _note_threads(self, calls: list[Call]) -> None:
        for call in calls:
            if call.number == NEW_THREAD or self._name(call).startswith("exec"):
                self._threads.seen(call.tid)

    def _note_closed(self, calls: list[Call]) -> None:
        """Note when which descriptors are closed."""
        self._closed.clear()
        for call in calls:
            thread = self._threads.get(call.tid)
            argument = None if call.number == NEW_THREAD else _CLOSING.get(self._name(call))
            if thread is not None and argument is not None:
                fd = (call.first, call.second)[argument]
                self._closed.setdefault((thread.pid, fd), []).append(call.begin)

    def _name(self, call: Call) -> str:
        return self._calls.names[call.number]

    def _thread(self, call: Call) -> CallingThread | None:
        """Return the thread of a call that counts."""
        if call.number == NEW_THREAD:
            return None
        thread = self._threads.get(call.tid)
        if thread is None and call.end and self._is_wait(call):
            self.lost[ENDED] += 1
        return thread if thread is None or thread.pid != self._hidden else None

    def _is_wait(self, call: Call) -> bool:
        lasts = not call.end or call.end - call.begin >= self._min_ns
        return bool(self._calls.kinds[call.number] & WAIT) and lasts

    def _add(self, thread: CallingThread, call: Call) -> None:
        """Hold a wait, or follow what a call does to the process's descriptors."""
        name = self._name(call)
        if name == "connect":
            self._files.closed(thread.pid, call.first)  # It has a peer now.
        if self._is_wait(call):
            self._hold(thread, name, call)
        if name in ALWAYS:
            self._follow(thread.pid, name, call)

    def _hold(self, thread: CallingThread, name: str, call: Call) -> None:
        if len(self._held) >= MAX_HELD:
            self.lost[TOO_MANY] += 1
            return
        if self._threads.is_own(thread):
            return
        named = self._open.pop((call.tid, call.begin), None)
        if named is not None and named.target is not None:
            self._held.append(named._replace(call=call))
            return
        fd = self._descriptor(name, call)
        target = self._files.name(thread.pid, fd)
        self._held.append(self._checked(Wait(thread, name, call, fd, target)))

    def _descriptor(self, name: str, call: Call) -> int:
        """Return the descriptor that a call has waited for; -1 if there is none."""
        kind = self._calls.kinds[call.number]
        if name in RETURNING_FD:
            return call.result if call.end else -1
        return call.used_fd if kind & POLL else call.first if kind & USES_FD else -1

    def _follow(self, pid: int, name: str, call: Call) -> None:
        if name in _CLOSING:
            self._files.closed(pid, (call.first, call.second)[_CLOSING[name]])
        elif name == "connect":
            self._files.name(
                pid, call.first
            )  # A short connection may be closed when its wait is seen.
        elif name in ("accept", "accept4"):
            if call.result >= 0:
                self._files.name(pid, call.result)
        else:
            self._files.forget(pid)  # exec, close_range

    def _checked(self, wait: Wait) -> Wait:
        """Leave out a name that was read after the descriptor was closed."""
        if wait.target is None:
            return wait
        begin = wait.call.end if wait.name in RETURNING_FD else wait.call.begin
        closed = self._closed.get((wait.thread.pid, wait.fd), ())
        wrong = any(begin < time < wait.target.read_ns for time in closed)
        return wait._replace(target=None) if wrong else wait
