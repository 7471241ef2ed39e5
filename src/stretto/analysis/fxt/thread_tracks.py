"""Tracks for processes, threads, counters, and asynchronous operations.

Names and parents come from kernel objects, which may be anywhere in the file. So the whole file is
read before the first track is described. In files of our exporter, the kernel objects have
arguments from which the original tracks are restored (see `track_threads`).

Ids of kernel objects have 64 bits, Linux's pids and tids 31. Greater ids are replaced by numbers
that count down from the greatest pid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.track_threads import NO_PROCESS, PARENT, TRACK
from stretto.analysis.fxt.uuids import uuid_of

if TYPE_CHECKING:
    from stretto.analysis.fxt.packet_writer import PacketWriter
    from stretto.analysis.fxt.records import KernelObject

MAX_OBJECTS = 1 << 18
"""The limit for each kind: processes, threads, counters, and open operations."""
_LAST_NUMBER = (1 << 31) - 1
_MAX_PARENTS = 32


class _Object:
    """The name and the relations of a process or thread."""

    __slots__ = ("name", "parent", "process", "track")

    def __init__(self, record: KernelObject | None = None) -> None:
        integers = {
            each.name: each.value
            for each in (record.arguments if record is not None else ())
            if isinstance(each.value, int)
        }
        self.name = record.name if record is not None else ""
        self.process = integers.get("process")
        self.track = integers.get(TRACK)
        self.parent = integers.get(PARENT)
        """The uuid of the parent, for a track that isn't a thread's."""


class ThreadTracks:
    """Creates the tracks. Add all kernel objects before the first track is used.

    Attributes:
        refused: The number of objects for which there was no room.
    """

    def __init__(self, packets: PacketWriter) -> None:
        self._packets = packets
        self._processes: dict[int, _Object] = {}
        self._threads: dict[int, _Object] = {}
        self._process_uuids: dict[int, int] = {}
        self._thread_uuids: dict[tuple[int, int], int] = {}
        self._operations: dict[tuple[int, int], list[int]] = {}
        self._counters: dict[tuple[int, str, int], int] = {}
        self._numbers: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self.refused = 0

    def add(self, record: KernelObject) -> None:
        """Store the name of a process or thread."""
        objects = self._processes if record.type == fxt.PROCESS_OBJECT else self._threads
        if record.type not in (fxt.PROCESS_OBJECT, fxt.THREAD_OBJECT):
            return
        if record.id in objects or len(objects) < MAX_OBJECTS:
            objects[record.id] = _Object(record)
        else:
            self.refused += 1

    def describe_all(self) -> None:
        """Describe all named processes and threads, including those without events."""
        for process in self._processes:
            self.process(process)
        for number, thread in self._threads.items():
            if thread.process is not None:
                self.thread(thread.process, number)

    def process(self, process: int) -> int:
        """Return the track of a process; 0 for the placeholder of tracks without a process."""
        uuid = self._process_uuids.get(process)
        if uuid is None:
            known = self._processes.get(process) or _Object()
            if process == NO_PROCESS and known.track is None:
                uuid = 0
            else:
                uuid = known.track or uuid_of("process", process)
                self._packets.process(uuid, self._number(process), known.name)
            self._process_uuids[process] = uuid
        return uuid

    def thread(self, process: int, number: int) -> int:
        """Return the track of a thread."""
        key = (process, number)
        uuid = self._thread_uuids.get(key)
        if uuid is None:
            known = self._threads.get(number) or _Object()
            uuid = known.track or uuid_of("thread", process, number)
            self._thread_uuids[key] = uuid
            self._describe(uuid, process, number, known)
        return uuid

    def has_room(self) -> bool:
        """Whether another thread can get a track."""
        return len(self._thread_uuids) < MAX_OBJECTS

    def knows(self, process: int, number: int) -> bool:
        """Whether a thread has a track already."""
        return (process, number) in self._thread_uuids

    def _describe(self, uuid: int, process: int, number: int, known: _Object) -> None:
        parent = self.process(process)
        if known.parent is None:
            pid, tid = self._number(process), self._number(number)
            self._packets.thread(uuid, parent, pid, tid, known.name)
        elif known.parent != uuid:
            # If a thread has its own uuid as parent, its track is the process's track. This track
            # is described above.
            self._packets.track(uuid, self._acyclic(uuid, known.parent), known.name)

    def _acyclic(self, uuid: int, parent: int) -> int:
        """Return the parent of a track; 0 if the parent is a descendant of the track."""
        above = parent
        for _ in range(_MAX_PARENTS):
            if above == uuid:
                return 0
            if not above:
                break
            above = self._parents.get(above, 0)
        self._parents[uuid] = parent
        return parent

    def counter(self, process: int, name: str, number: int) -> int:
        """Return the track of a counter; 0 if there is no room for it."""
        key = (process, name, number)
        uuid = self._counters.get(key)
        if uuid is None:
            if len(self._counters) == MAX_OBJECTS:
                return 0
            uuid = self._counters[key] = uuid_of("counter", *key)
            self._packets.track(uuid, self.process(process), name, counter=True)
        return uuid

    def operation(self, kind: int, process: int, number: int, name: str) -> int:
        """Return the track of an asynchronous operation; 0 for the end of an unknown operation.

        The first event names the track. When the operation has ended, its entry is deleted.
        """
        key = (process, number)
        under_way = self._operations.get(key)
        if under_way is None:
            if kind == fxt.ASYNC_END or len(self._operations) == MAX_OBJECTS:
                return 0
            uuid = uuid_of("operation", *key)
            self._packets.track(uuid, self.process(process), name)
            under_way = self._operations[key] = [uuid, 0]
        under_way[1] += {fxt.ASYNC_BEGIN: 1, fxt.ASYNC_END: -1}.get(kind, 0)
        if under_way[1] <= 0:
            del self._operations[key]
        return under_way[0]

    def _number(self, koid: int) -> int:
        """Return the pid or tid for a koid."""
        if 0 <= koid <= _LAST_NUMBER - 2 * MAX_OBJECTS:
            return koid
        return self._numbers.setdefault(koid, _LAST_NUMBER - len(self._numbers) % (2 * MAX_OBJECTS))
