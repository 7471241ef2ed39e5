"""The threads that make system calls: their processes, and the uuids of their tracks."""

from __future__ import annotations

from typing import NamedTuple

from stretto.client.track_event.process import uuid_of_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine

MAX_THREADS = 1 << 14
OWN_THREADS = b"stretto-"
_START_TIME = 19
"""The index of the start time behind the name in /proc/PID/stat, proc(5)."""


class CallingThread(NamedTuple):
    """A thread.

    Attributes:
        tid: Its id.
        pid: The id of its process.
        process_uuid: The uuid of the process's track, as the process itself computes it.
        process_name: The kernel's name of the process.
        name: The kernel's name of the thread, when it was seen.
    """

    tid: int
    pid: int
    process_uuid: int
    process_name: str
    name: bytes

    @property
    def uuid(self) -> int:
        """The uuid of the thread's track."""
        return self.tid ^ self.process_uuid


class CallingThreads:
    """The threads that were seen so far.

    Args:
        machine: Has the folder `proc`.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known: dict[int, CallingThread] = {}

    def seen(self, tid: int) -> None:
        """Look up a thread while it lives: it is new, or its process has another program."""
        if len(self._known) >= MAX_THREADS:
            self._known.clear()  # Most of them have ended.
        self._known.pop(tid, None)
        thread = self._look_up(tid)
        if thread is not None:
            self._known[tid] = thread

    def get(self, tid: int) -> CallingThread | None:
        """Return a thread; None if it had ended before it was seen."""
        if tid not in self._known:
            self.seen(tid)
        return self._known.get(tid)

    def _look_up(self, tid: int) -> CallingThread | None:
        status = self._machine.read(f"proc/{tid}/status")
        own = status.partition(b"Name:\t")[2].partition(b"\n")[0]
        _, _, rest = status.partition(b"\nTgid:")
        pid = int(rest.split(None, 1)[0]) if rest else 0
        process, _, numbers = self._machine.read(f"proc/{pid}/stat").rpartition(b")")
        stat = numbers.split()
        if not pid or len(stat) <= _START_TIME:
            return None
        uuid = uuid_of_process(pid, int(stat[_START_TIME]))
        name = process.partition(b"(")[2].decode(errors="replace")
        return CallingThread(tid, pid, uuid, name, own)

    def is_own(self, thread: CallingThread) -> bool:
        """Whether a thread is one of Stretto's in the recorded program."""
        now = self._machine.read(f"proc/{thread.pid}/task/{thread.tid}/comm")
        return thread.tid != thread.pid and (now or thread.name).startswith(OWN_THREADS)
