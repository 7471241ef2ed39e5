"""Counts the events of a trace, while it is written or from the finished file."""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.protos.trace import TrackDescriptor
from stretto.recorder.host.packet_file import PacketFile

try:
    from stretto._native import scan_trace
except ImportError:  # This system only reads traces: `stretto summary` counts what they hold.
    from stretto._importer import scan_trace


class Contents(PacketFile):
    """Counts of events, processes and threads.

    Attributes:
        events: number of track events.
        drops: number of gaps, where packets were dropped because shared memory was full.
        log_texts: number of interned texts of log messages; 0 without log messages.
        first_ns: the time at which the events begin, in ns of the boot-time clock; 2**64 - 1
            without events.
        processes: pids of the processes in the trace, also of those that only threads name.
        threads: (pid, tid) of the threads in the trace.
        others: number and name of what the trace has beside events, such as samples; empty unless
            its reader has set it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self.drops = 0
        self.log_texts = 0
        self.first_ns = (1 << 64) - 1
        self.processes: set[int] = set()
        self.threads: set[tuple[int, int]] = set()
        self.others: list[tuple[int, str]] = []
        self._seen: set[bytes] = set()

    def add(self, data: bytes | bytearray | memoryview, *, inflate: bool = True) -> int:
        """Count the complete packets at the start of `data`.

        Args:
            data: encoded packets.
            inflate: whether to count the packets inside compressed ones.

        Returns:
            The size of the packets in bytes.
        """
        events, drops, first_ns, texts, parsed, compressed, found = scan_trace(data)
        for packets in compressed if inflate else ():
            import zlib  # Few traces have compressed packets.

            self.add(zlib.decompress(packets), inflate=False)
        self.first_ns = min(self.first_ns, first_ns)
        self.events += events
        self.drops += drops
        self.log_texts += texts
        for descriptor in set(found) - self._seen:
            self._seen.add(descriptor)
            self._add_descriptor(descriptor)
        return parsed

    def _add_descriptor(self, encoded: bytes) -> None:
        try:
            descriptor = TrackDescriptor.decode(encoded)
        except DecodeError:
            return  # The file is damaged here, as its readers say.
        if descriptor.process is not None:
            self.processes.add(descriptor.process.pid)
        if descriptor.thread is not None:
            self.processes.add(descriptor.thread.pid)
            self.threads.add((descriptor.thread.pid, descriptor.thread.tid))
