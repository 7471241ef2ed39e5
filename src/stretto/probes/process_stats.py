"""`linux.process_stats`: all processes with their threads, memory, CPU time and open files.

    start      the process tree, if the session asks for a scan
    each poll  the values that have changed; then processes that the tree doesn't have yet

Unchanged values are written again after `proc_stats_cache_ttl_ms`; by default, at each poll.
"""

from __future__ import annotations

from stretto.probes import process_files as files
from stretto.probes.poll import Poll
from stretto.probes.probe import Probe
from stretto.protos.config import ProcessStatsConfig
from stretto.protos.trace import ProcessStats as Stats
from stretto.protos.trace import ProcessTree, TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MIN_POLL_MS = 100


class ProcessStats(Probe):
    """Reads /proc/PID of each process, as the session's ProcessStatsConfig says."""

    name = "linux.process_stats"

    def start(self) -> None:
        self._options = self.config.process_stats_config or ProcessStatsConfig()
        self._described: set[int] = set()
        self._without_memory: set[int] = set()
        self._written: dict[int, dict[str, int]] = {}
        self._open_files: dict[int, dict[int, str]] = {}
        self._cleared = True
        self._polls = 0
        if self._options.scan_all_processes_on_start:
            self._scan()
        poll_ms = self._options.proc_stats_poll_ms
        if poll_ms:
            poll_ms = max(poll_ms, MIN_POLL_MS)
            self._cached_polls = max(1, self._options.proc_stats_cache_ttl_ms // poll_ms)
        self._poll = Poll(self.machine, {self.name: poll_ms} if poll_ms else {}, self._sample)

    def stop(self) -> None:
        self._poll.stop()

    def clear_incremental_state(self) -> None:
        self._described.clear()
        self._without_memory.clear()
        self._forget_values()
        self._cleared = True

    def _forget_values(self) -> None:
        self._written.clear()
        self._open_files.clear()

    def _read(self, pid: int, name: str) -> bytes:
        return self.machine.read(f"proc/{pid}/{name}")

    def _ids(self, folder: str) -> list[int]:
        return [int(name) for name in self.machine.names(folder)]

    def _write(self, timestamp: int, **field: Any) -> None:
        packet = TracePacket(timestamp=timestamp, **field)
        if self._cleared:
            packet.incremental_state_cleared = True
            self._cleared = False
        self.write(packet)

    # --- the process tree

    def _scan(self) -> None:
        """Write all processes and threads, and the open files if the session asks for them."""
        pids = self._ids("proc")
        self._write_tree(pids, with_threads=True)
        start = self.machine.now_ns()
        processes = [Stats.Process(pid=pid, fds=fds) for pid in pids if (fds := self._new_fds(pid))]
        self._write_stats(start, processes)

    def _write_tree(self, pids: Iterable[int], *, with_threads: bool = False) -> None:
        start = self.machine.now_ns()
        tree = ProcessTree()
        for pid in pids:
            self._add_process(tree, pid, with_threads=with_threads)
        if tree.processes:
            tree.collection_end_timestamp = self.machine.now_ns()
            self._write(start, process_tree=tree)

    def _add_process(self, tree: ProcessTree, pid: int, *, with_threads: bool) -> None:
        status = files.Status(self._read(pid, "status"))
        if status.tgid != pid:
            return  # The process has ended; a thread of another process may have the pid now.
        options = self._options
        times = files.times(self._read(pid, "stat")) if options.record_process_age else []
        start_ns = times[2] if times else None
        tree.processes.append(status.process(self._read(pid, "cmdline"), start_ns))
        self._described.add(pid)
        if not options.skip_main_thread_message:
            tree.threads.append(status.thread(pid, named=options.record_thread_names))
        if with_threads:
            detailed = options.record_thread_names or bool(status.namespaced)
            tids = self._ids(f"proc/{pid}/task")
            # `+=` would assign the list to the field, which checks all its elements again.
            tree.threads.extend(self._thread(pid, t, detailed=detailed) for t in tids if t != pid)

    def _thread(self, pid: int, tid: int, *, detailed: bool) -> ProcessTree.Thread:
        if detailed:
            status = files.Status(self._read(pid, f"task/{tid}/status"))
            if status.tgid == pid:
                return status.thread(tid, named=self._options.record_thread_names)
        return ProcessTree.Thread(tid=tid, tgid=pid)

    # --- values

    def _sample(self, _due: Iterable[str]) -> None:
        start = self.machine.now_ns()
        pids = self._ids("proc")
        self._forget_ended(set(pids))
        processes, sampled = [], []
        for pid in pids:
            if values := self._values(pid):
                sampled.append(pid)
                written = self._written.setdefault(pid, {})
                changed = {name: v for name, v in values.items() if written.get(name) != v}
                written.update(changed)
                fds = self._new_fds(pid) if "vm_size_kb" in values else []
                if changed or fds:
                    processes.append(Stats.Process(pid=pid, fds=fds, **changed))  # type: ignore[arg-type]
        self._write_stats(start, processes)
        self._write_tree(pid for pid in sampled if pid not in self._described)
        self._polls += 1
        if self._polls % self._cached_polls == 0:
            self._forget_values()

    def _write_stats(self, start: int, processes: list[Stats.Process]) -> None:
        if processes:
            stats = Stats(processes=processes, collection_end_timestamp=self.machine.now_ns())
            self._write(start, process_stats=stats)

    def _forget_ended(self, pids: set[int]) -> None:
        """Forget the processes that have ended: other processes may get their ids."""
        self._described &= pids
        self._without_memory &= pids
        for cache in (self._written, self._open_files):
            for pid in cache.keys() - pids:
                del cache[pid]

    def _values(self, pid: int) -> dict[str, int]:
        """Return the values of a process; none if it has ended."""
        values: dict[str, int] = {}
        if self._options.record_process_runtime and (times := files.times(self._read(pid, "stat"))):
            values["runtime_user_mode"], values["runtime_kernel_mode"], _ = times
        if pid in self._without_memory:
            return values
        text = self._read(pid, "status")
        if self._options.scan_smaps_rollup:
            text += self._read(pid, "smaps_rollup")
        memory = files.memory(text)
        if "vm_size_kb" not in memory:
            if text:
                self._without_memory.add(pid)  # a kernel thread, or a zombie
            return values
        if (score := files.number(self._read(pid, "oom_score_adj"))) is not None:
            memory["oom_score_adj"] = score
        if self._options.record_process_dmabuf_rss and (
            size := files.number(self._read(pid, "dmabuf_rss"))
        ):
            memory["dmabuf_rss_kb"] = max(0, min(size // 1024, files.U32_MAX))
        return values | memory

    def _new_fds(self, pid: int) -> list[Stats.FDInfo]:
        """Return a process's file descriptors that are new, or lead to another file now."""
        if not self._options.resolve_process_fds:
            return []
        folder = f"proc/{pid}/fd"
        paths = {fd: self.machine.link(f"{folder}/{fd}") for fd in self._ids(folder)}
        known = self._open_files.get(pid, {})
        self._open_files[pid] = paths
        new = {fd: path for fd, path in paths.items() if path and known.get(fd) != path}
        return [Stats.FDInfo(fd=fd, path=path) for fd, path in new.items()]
