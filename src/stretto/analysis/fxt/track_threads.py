"""The threads that represent tracks in FXT.

FXT has threads of processes, and asynchronous operations. Flows can't join asynchronous operations.
So a track that isn't a thread's (the track of a task or of a process, a track with a name) becomes
a separate thread, in the process to which the track belongs. The slices of the track nest on this
thread, and flows can join them.

The records of the kernel objects contain the names, and arguments from which a reader can restore
the track:

    process   stretto.track    uuid of its track
    thread    stretto.track    uuid of its track
              stretto.parent   uuid of the track's parent, unless the track is a thread's

Other readers show the threads, and ignore the arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Argument, Thread

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stretto.protos.trace import TrackDescriptor

TRACK, PARENT = "stretto.track", "stretto.parent"
FIRST_NUMBER = 1 << 30
"""The first tid of threads that represent other tracks: above Linux's pids, below 2^31."""
NO_PROCESS = FIRST_NUMBER
"""The pid for tracks without a process."""
NO_PROCESS_NAME = "tracks without a process"
_MAX_PARENTS = 32


class Name(NamedTuple):
    """The record of a kernel object's name, with the record's arguments."""

    type: int
    id: int
    name: str
    arguments: tuple[Argument, ...]


class TrackThreads:
    """Maps tracks to threads.

    Args:
        tracks: Track descriptors by uuid.
    """

    def __init__(self, tracks: Mapping[int, TrackDescriptor]) -> None:
        self._tracks = tracks
        self._threads: dict[int, Thread] = {}
        self._made = 0

    def thread(self, uuid: int) -> Thread:
        """Return the thread of a track."""
        thread = self._threads.get(uuid)
        if thread is None:
            thread = self._threads[uuid] = self._find(uuid)
        return thread

    def counter_thread(self, uuid: int) -> Thread:
        """Return a thread of the process to which a counter belongs."""
        track = self._tracks.get(uuid)
        parent = self._tracks.get(track.parent_uuid) if track is not None else None
        if parent is not None and parent.thread is not None:
            return Thread(parent.thread.pid, parent.thread.tid)
        process = self._process(uuid)
        return Thread(process, process)

    def _find(self, uuid: int) -> Thread:
        track = self._tracks.get(uuid)
        if track is not None and track.thread is not None:
            return Thread(track.thread.pid, track.thread.tid)
        self._made += 1
        return Thread(self._process(uuid), FIRST_NUMBER + self._made)

    def _process(self, uuid: int) -> int:
        for _ in range(_MAX_PARENTS):
            track = self._tracks.get(uuid)
            if track is None:
                break
            if track.process is not None:
                return track.process.pid
            if track.thread is not None:
                return track.thread.pid
            uuid = track.parent_uuid
        return NO_PROCESS

    def name(self, uuid: int) -> str:
        """Return the name of a track."""
        track = self._tracks.get(uuid)
        return "" if track is None else _name(track)

    def names(self, used: Collection[int]) -> Iterator[Name]:
        """Yield the names of processes, threads, and other tracks.

        Args:
            used: Tracks with events. The track of a process gets a thread only if it is in `used`.
        """
        without_process = False
        for uuid, track in self._tracks.items():
            if track.process is not None:
                process, named = track.process, (Argument(TRACK, fxt.UINT64, uuid),)
                yield Name(fxt.PROCESS_OBJECT, process.pid, process.process_name, named)
            if track.counter is None and (track.process is None or uuid in used):
                name = self._thread_name(uuid, track)
                without_process |= self.thread(uuid).process == NO_PROCESS
                yield name
        if without_process:
            yield Name(fxt.PROCESS_OBJECT, NO_PROCESS, NO_PROCESS_NAME, ())

    def _thread_name(self, uuid: int, track: TrackDescriptor) -> Name:
        thread = self.thread(uuid)
        arguments = [
            Argument("process", fxt.KOID, thread.process),
            Argument(TRACK, fxt.UINT64, uuid),
        ]
        if track.thread is None:
            parent = uuid if track.process is not None else track.parent_uuid
            arguments.append(Argument(PARENT, fxt.UINT64, parent))
        return Name(fxt.THREAD_OBJECT, thread.thread, _name(track), tuple(arguments))


def _name(track: TrackDescriptor) -> str:
    if track.thread is not None:
        return track.thread.thread_name
    if track.process is not None:
        return track.process.process_name
    return track.name or track.static_name or track.atrace_name
