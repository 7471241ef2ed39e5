"""`linux.syscall_waits`: the system calls in which threads wait, with the file's or peer's name.

kernel      sys_enter and sys_exit of some calls of the listed threads, in an instance of tracefs
each tick   native code pairs them: calls that last MIN_NS or longer
            `waits.Waits` finds their threads, and names their descriptors; also those of
            calls that have not ended
stop        the waits that have not ended, too; and what was lost
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.probes import ftrace_clock, ftrace_syscalls, wait_packets
from stretto.probes.ftrace_events import Format
from stretto.probes.probe import Probe
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.probes.waiting_calls import WaitingCalls
from stretto.probes.waits import Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from stretto.probes.poll import Poll
    from stretto.probes.tracefs import Instance
    from stretto.probes.waits import Wait

MIN_NS = 1_000_000
PERIOD_MS = 10
MARGIN_NS = 500_000
"""An event may be in the making this long after its time."""
BUFFER_KB = 2048
LIST = "set_event_pid"
FIELDS = ([("id", 8), ("args", 16)], [("id", 8), ("ret", 16)])
"""The fields of the two events, and their offsets."""
_NEVER_NS = (1 << 63) - 1


class SyscallWaits(Probe):
    """Records waits in system calls of this process's threads, and of what they start."""

    name = "linux.syscall_waits"
    buffer_exhausted_policy = _native.DROP  # This thread runs the service: don't wait for it.
    tracefs: ClassVar[type[Tracefs]] = Tracefs

    def start(self) -> None:
        self.instance: Instance | None = None
        self._pipes: list[int] = []
        self._poll: Poll | None = None
        self._described: set[int] = set()
        self._calls = WaitingCalls(os.uname().machine)
        self._waits = Waits(self.machine, self._calls, os.getpid(), MIN_NS)
        try:
            tracefs = self.tracefs(self.machine.path(""))
            tracefs.remove_left()
            self.instance = tracefs.make_instance()
            self._set_up(self.instance)
        except TracefsError as error:
            self.machine.tell(f"{self.name}: {error}")
            self.stop()

    def stop(self) -> None:
        if self._poll is not None and self.instance is not None:
            self._poll.stop()
            self.instance.write("tracing_on", "0")
            self._drain(_NEVER_NS)
            self._write(self._waits.add(self._reader.rest()))
            self._write(self._waits.add([]))
            self._write_losses()
            self._poll = None
        for fd in self._pipes:
            os.close(fd)
        self._pipes.clear()
        if self.instance is not None:
            self.instance.close()
            self.instance = None

    def clear_incremental_state(self) -> None:
        """Describe the tracks again."""
        self._described.clear()

    def follow(self, pid: int) -> None:
        """List the threads of a process that was not started by a listed thread."""
        if self.instance is not None:
            self.instance.append(LIST, " ".join(self.machine.names(f"proc/{pid}/task")))

    # --- set-up

    def _set_up(self, instance: Instance) -> None:
        ftrace_clock.choose(instance, raw=False)
        instance.write("buffer_size_kb", str(BUFFER_KB))
        instance.write("options/event-fork", "1")
        if not instance.write(LIST, str(os.getpid())):
            raise TracefsError("the kernel can't restrict events to threads")
        size_kb = instance.read("buffer_subbuf_size_kb").strip()
        page = int(size_kb) * 1024 if size_kb.isdigit() else os.sysconf("SC_PAGE_SIZE")
        enter, leave = (self._enable(instance, name) for name in ftrace_syscalls.EVENTS)
        kinds = self._calls.kinds
        self._reader = _native.SyscallWaits(kinds, enter, leave, page, MIN_NS, os.getpid())
        try:
            for cpu in instance.cpus():
                self._pipes.append(instance.open_pipe(cpu))
        except OSError as error:
            raise TracefsError(f"can't read the ring buffers: {error}") from None
        instance.write("tracing_on", "1")
        self._poll = self.poll({"waits": PERIOD_MS}, self._tick)

    def _enable(self, instance: Instance, name: str) -> int:
        """Switch an event on; return its id."""
        calls = (number for number, kind in enumerate(self._calls.kinds) if kind)
        form = Format(name, instance.read(f"events/{name}/format") or "ID: 0")
        known = [(field.name, field.offset) for field in form.fields[:2]]
        if known not in FIELDS:
            raise TracefsError(f"the kernel's event {name} is unknown")
        text = ftrace_syscalls.event_filter(calls)
        if not instance.write(f"events/{name}/filter", text) or not instance.write(
            f"events/{name}/enable", "1"
        ):
            raise TracefsError(f"the kernel refuses the event {name}")
        return form.id

    # --- recording

    def _tick(self, _due: Iterable[str]) -> None:
        self._drain(self.machine.now_ns() - MARGIN_NS)
        self._waits.add_open(self._reader.open(self.machine.now_ns()))

    def _drain(self, until: int) -> None:
        for fd in self._pipes:
            self._reader.read(fd)
        self._write(self._waits.add(self._reader.take(until)))

    def _write(self, waits: list[Wait]) -> None:
        for wait in waits:
            thread = wait.thread
            packets = wait_packets.slices(wait)
            if thread.uuid not in self._described:
                self._described.add(thread.uuid)
                packets = wait_packets.describe(thread) + packets
            for packet in packets:
                self.write(packet)

    def _write_losses(self) -> None:
        lost = self._waits.lost
        gaps, calls = self._reader.losses()
        counts = {**lost, "gaps in the kernel's events": gaps, "too many threads": calls}
        counts = {reason: count for reason, count in counts.items() if count}
        if counts:
            self.write(wait_packets.lost(self.machine.now_ns(), counts))
