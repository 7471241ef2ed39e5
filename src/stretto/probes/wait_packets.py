"""The packets of waits in system calls: a slice on a track below each thread.

worker 4712
  system calls   ▁▁▁[recvfrom]▁▁▁▁[fsync]▁▁   peer = 10.0.0.7:5432
"""

from __future__ import annotations

import errno

from stretto.base.hashes import fnv1a
from stretto.protos.trace import (
    DebugAnnotation,
    ProcessDescriptor,
    ThreadDescriptor,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stretto.probes.syscall_threads import CallingThread
    from stretto.probes.waits import Wait

CATEGORY = "linux.syscall_waits"
TRACK = "system calls"
LOST = "lost waits in system calls"


def track_of(thread: CallingThread) -> int:
    """Return the uuid of a thread's track of waits."""
    return fnv1a(b"system calls" + thread.uuid.to_bytes(8, "little"))


def describe(thread: CallingThread) -> list[TracePacket]:
    """Return the descriptors of the process, the thread and its track of waits.

    A program that is recorded writes the first two itself, with the same uuids and better names.
    """
    process = ProcessDescriptor(pid=thread.pid, process_name=thread.process_name)
    own = ThreadDescriptor(pid=thread.pid, tid=thread.tid)
    tracks = (
        TrackDescriptor(uuid=thread.process_uuid, process=process),
        TrackDescriptor(uuid=thread.uuid, parent_uuid=thread.process_uuid, thread=own),
        TrackDescriptor(uuid=track_of(thread), parent_uuid=thread.uuid, name=TRACK),
    )
    return [TracePacket(track_descriptor=track) for track in tracks]


def slices(wait: Wait) -> list[TracePacket]:
    """Return the begin of a wait, and its end if it has ended."""
    track, call = track_of(wait.thread), wait.call
    begin = TrackEvent(
        type=TrackEvent.TYPE_SLICE_BEGIN,
        track_uuid=track,
        categories=[CATEGORY],
        name=wait.name,
        debug_annotations=list(_values(wait)),
    )
    end = TrackEvent(type=TrackEvent.TYPE_SLICE_END, track_uuid=track)
    packets = [_event(call.begin, begin), _event(call.end, end)]
    return packets if call.end else packets[:1]


_RESTARTS = {
    512: "ERESTARTSYS",
    513: "ERESTARTNOINTR",
    514: "ERESTARTNOHAND",
    516: "ERESTART_RESTARTBLOCK",
}
"""Results of calls that a signal has interrupted, within the kernel: <linux/errno.h>. The program
sees EINTR, or nothing if the call is begun again."""


def _error(number: int) -> str:
    return errno.errorcode.get(number) or _RESTARTS.get(number, f"-{number}")


def _values(wait: Wait) -> Iterator[DebugAnnotation]:
    if wait.target is not None:
        kind = "peer" if wait.target.is_socket else "file"
        yield DebugAnnotation(name=kind, string_value=wait.target.name)
    result = wait.call.result
    if result < 0:
        yield DebugAnnotation(name="error", string_value=_error(-result))
    elif wait.call.end:
        yield DebugAnnotation(name="result", int_value=result)


def lost(time_ns: int, counts: Mapping[str, int]) -> TracePacket:
    """Return an instant that says what is missing, by the reason."""
    values = [DebugAnnotation(name=name, uint_value=count) for name, count in counts.items()]
    return _event(
        time_ns,
        TrackEvent(
            type=TrackEvent.TYPE_INSTANT,
            track_uuid=0,
            categories=[CATEGORY],
            name=LOST,
            debug_annotations=values,
        ),
    )


def _event(time_ns: int, event: TrackEvent) -> TracePacket:
    return TracePacket(timestamp=time_ns, track_event=event)
