"""`linux.process_stats`: all processes with their threads, memory, CPU time and open files.

    start      the process tree, if the session asks for a scan
    each poll  the values that have changed; then processes that the tree doesn't have yet

Unchanged values, open files among them, are written again after `proc_stats_cache_ttl_ms`; by
default, at each poll.
"""

from __future__ import annotations

from stretto import _native
from stretto.probes.budget import Budget
from stretto.probes.probe import Probe
from stretto.protos.config import ProcessStatsConfig
from stretto.protos.trace import ProcessStats as Stats
from stretto.protos.trace import ProcessTree, TracePacket
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MIN_POLL_MS = 100
TIMESTAMP, TREE, STATS, CLEARED = (
    TracePacket.LAYOUT.field(name).number
    for name in ("timestamp", "process_tree", "process_stats", "incremental_state_cleared")
)
END_TIMESTAMP = {
    TREE: ProcessTree.LAYOUT.field("collection_end_timestamp").number,
    STATS: Stats.LAYOUT.field("collection_end_timestamp").number,
}


class ProcessStats(Probe):
    """Reads /proc/PID of each process, as the session's ProcessStatsConfig says.

    The files are read and converted natively (native/probes/process_reader.h), except the links of
    open files.
    """

    name = "linux.process_stats"

    def start(self) -> None:
        options = self._options = self.config.process_stats_config or ProcessStatsConfig()
        self._reader = _native.ProcessReader(
            self.machine.path("proc"),
            thread_names=options.record_thread_names,
            main_threads=not options.skip_main_thread_message,
            ages=options.record_process_age,
            runtimes=options.record_process_runtime,
            smaps=options.scan_smaps_rollup,
            dmabuf=options.record_process_dmabuf_rss,
        )
        self._open_files: dict[int, dict[int, str]] = {}
        self._cleared = True
        self._polls = 0
        if options.scan_all_processes_on_start:
            self._scan()
        poll_ms = options.proc_stats_poll_ms
        if poll_ms:
            poll_ms = max(poll_ms, MIN_POLL_MS)
            self._cached_polls = max(1, options.proc_stats_cache_ttl_ms // poll_ms)
        self._poll = self.poll({self.name: poll_ms} if poll_ms else {}, self._sample, Budget())

    def stop(self) -> None:
        self._poll.stop()
        del self._reader  # Its memory serves the next session; the collector may come much later.

    def clear_incremental_state(self) -> None:
        self._reader.forget()
        self._open_files.clear()
        self._cleared = True

    def _write(self, timestamp: int, field: int, message: bytes) -> None:
        """Write a message, unless it is empty."""
        if not message:
            return
        message += varint_field(END_TIMESTAMP[field], self.machine.now_ns())
        packet = varint_field(TIMESTAMP, timestamp) + bytes_field(field, message)
        if self._cleared:
            packet += varint_field(CLEARED, 1)
            self._cleared = False
        self.write(packet)

    def _scan(self) -> None:
        """Write all processes and threads, and the open files if the session asks for them."""
        self._write(self.machine.now_ns(), TREE, self._reader.scan())
        self._write(self.machine.now_ns(), STATS, self._new_fds())

    def _sample(self, _due: Iterable[str]) -> None:
        """Write the values that have changed, then the processes that are new."""
        self._write(self.machine.now_ns(), STATS, self._reader.poll() + self._new_fds())
        self._write(self.machine.now_ns(), TREE, self._reader.new_processes())
        self._polls += 1
        if self._polls % self._cached_polls == 0:
            self._reader.forget_values()
            self._open_files.clear()

    def _new_fds(self) -> bytes:
        """Return the file descriptors that are new, or lead to another file now."""
        if not self._options.resolve_process_fds:
            return b""
        pids = self._reader.pids()
        for pid in self._open_files.keys() - set(pids):
            del self._open_files[pid]  # Another process may get the id.
        found = {pid: self._new_fds_of(pid) for pid in pids}
        return Stats(
            processes=[Stats.Process(pid=p, fds=fds) for p, fds in found.items() if fds]
        ).encode()

    def _new_fds_of(self, pid: int) -> list[Stats.FDInfo]:
        folder = f"proc/{pid}/fd"
        names = self.machine.names(folder)
        paths = {int(name): self.machine.link(f"{folder}/{name}") for name in names}
        known = self._open_files.get(pid, {})
        self._open_files[pid] = paths
        new = {fd: path for fd, path in paths.items() if path and known.get(fd) != path}
        return [Stats.FDInfo(fd=fd, path=path) for fd, path in new.items()]
