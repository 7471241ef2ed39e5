"""The recorder's own producer of native heap profiles: `android.heapprofd`.

A library that is preloaded into the recorded processes samples malloc, and keeps its samples in one
file for each process, in the workspace. The recorder reads the files: in intervals, when a process
has ended, however it has ended, and at the end of the recording. A file whose process has ended, or
has started another program (exec), is removed after its last dump.

The config is Perfetto's HeapprofdConfig: `continuous_dump_config`, `dump_at_max`, `heaps`,
`exclude_heaps` (`libc.malloc`), `pid`, `process_cmdline` (the name of the executable). The sampling
interval is that of the environment with which the program was started.
"""

from __future__ import annotations

import os

import stretto
from stretto import _native
from stretto.client.producer_connection import ProducerConnection
from stretto.profilers.heap.heap_file import HeapFile
from stretto.profilers.heap.heap_sequence import HeapSequence, Moment
from stretto.protos.config import HeapprofdConfig
from stretto.protos.trace import ProcessTree, TracePacket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.profilers.heap.native_stacks import ElfFiles

SCAN_PERIOD_MS = 1000
SHORTEST_PERIOD_MS = 50
"""Dumps are at least this far apart."""
_REASON_MASK, _PERIODIC = 0xF, 1
"""Perfetto's FlushFlags: the bits of the reason, and the reason of periodic flushes."""


class _Profile:
    """The file of a process, and the packet sequence of its dumps."""

    def __init__(self, file: HeapFile, sequence: HeapSequence) -> None:
        self.file = file
        self._sequence = sequence

    def dump(self) -> None:
        # The samples are read by `dump`; the interval of this moment is good enough.
        self._sequence.dump(Moment.now(self.file.stats))

    def clear(self) -> None:
        self._sequence.clear()

    def free(self) -> None:
        self._sequence.free(Moment.now(self.file.stats))


class NativeHeap(stretto.DataSource):
    """A session's dumps of the recorded processes.

    Attributes:
        folder: The folder of the files.
        has_name: Whether a process names itself in the trace.
        hides_arguments: Whether command lines are left out of the trace.
        interval_ms: The time between two dumps; 0: only those at the end.
    """

    name = "android.heapprofd"
    buffer_exhausted_policy = _native.DROP  # This thread runs the service: don't wait for it.
    folder: ClassVar[str]
    has_name: ClassVar[Callable[[int], bool]]
    hides_arguments: ClassVar[bool]
    interval_ms = 0

    def on_start(self) -> None:
        self._config = self.config.heapprofd_config or HeapprofdConfig()
        self._profiles: dict[str, _Profile] = {}
        self._elf_files: ElfFiles = {}
        self._next_ms = self.interval_ms = 0
        times = self._config.continuous_dump_config
        if times is not None and not self._config.dump_at_max:
            self.interval_ms = times.dump_interval_ms
            self._next_ms = times.dump_phase_ms or self.interval_ms

    @property
    def _is_wanted(self) -> bool:
        wanted, unwanted = self._config.heaps, self._config.exclude_heaps
        return (not wanted or HeapFile.name in wanted) and HeapFile.name not in unwanted

    def scan(self, passed_ms: int) -> None:
        """Write what is due.

        Args:
            passed_ms: The time since the start of the session.
        """
        self._find_files()
        self._end_old()
        if self.interval_ms and passed_ms >= self._next_ms:
            self._next_ms = passed_ms + self.interval_ms
            self._dump()

    def on_flush(self) -> None:
        """Write a dump, unless the flush is a periodic one."""
        if self.flush_flags & _REASON_MASK != _PERIODIC and not self._config.dump_at_max:
            self._find_files()
            self._dump()

    def on_clear_incremental_state(self) -> None:
        """Write everything in the next dump."""
        for profile in self._profiles.values():
            profile.clear()

    def on_stop(self) -> None:
        """Write the last dumps."""
        self._find_files()
        self._end_old()
        self._dump()
        for profile in self._profiles.values():
            profile.file.close()
        self._profiles.clear()

    def _dump(self) -> None:
        for profile in self._profiles.values():
            profile.dump()

    def _find_files(self) -> None:
        for name in _names(self.folder) if self._is_wanted else ():
            if name not in self._profiles and (file := self._open(name)) is not None:
                writer = _native.TraceWriter(
                    self.arbiter, self.target_buffer, self.buffer_exhausted_policy
                )
                sequence = HeapSequence(file, writer, at_max=self._config.dump_at_max)
                self._profiles[name] = _Profile(file, sequence)
                self._name_process(file)

    def _open(self, name: str) -> HeapFile | None:
        try:
            file = HeapFile(os.path.join(self.folder, name), self._elf_files)
        except (OSError, ValueError):
            return None
        if not _is_selected(file, self._config):
            file.close()
            return None
        return file

    def _name_process(self, file: HeapFile) -> None:
        if not type(self).has_name(file.pid):
            command = file.command[:1] if self.hides_arguments else file.command
            process = ProcessTree.Process(pid=file.pid, ppid=file.ppid, cmdline=command)
            self.write(TracePacket(process_tree=ProcessTree(processes=[process])))

    def _end_old(self) -> None:
        """End the profiles of processes that have ended, or that execute another program."""
        newest = {profile.file.pid: name for name, profile in self._profiles.items()}
        for name, profile in [*self._profiles.items()]:
            is_replaced = newest[profile.file.pid] != name
            if not is_replaced and os.path.exists(f"/proc/{profile.file.pid}"):
                continue
            profile.dump()
            if is_replaced and not self._config.dump_at_max:
                profile.free()
            profile.file.close()
            del self._profiles[name]
            _remove(os.path.join(self.folder, name))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # The program has removed it.
        return []


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _is_selected(file: HeapFile, config: HeapprofdConfig) -> bool:
    if not config.pid and not config.process_cmdline:
        return True
    wanted = {os.path.basename(name) for name in config.process_cmdline}
    return file.pid in config.pid or os.path.basename(file.command[0]) in wanted


class NativeHeaps:
    """Reads the profiles of the recorded processes, in periodic tasks.

    Args:
        runner: runs the tasks.
        add_producer: connects a producer to the service.
        folder: the folder of the files.
        has_name: returns whether a process names itself in the trace.
        hides_arguments: whether command lines are left out of the trace.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        add_producer: Callable[[ProducerConnection], object],
        folder: str,
        has_name: Callable[[int], bool],
        *,
        hides_arguments: bool,
    ) -> None:
        self._runner = runner
        self._passed_ms = 0
        NativeHeap.folder, NativeHeap.has_name = folder, staticmethod(has_name)
        NativeHeap.hides_arguments = hides_arguments
        add_producer(ProducerConnection([NativeHeap]))

    def scan(self) -> None:
        """Look for what is due now, and in periodic tasks."""
        sources = list(NativeHeap.instances())
        # Before the session has started, its interval isn't known.
        period = SCAN_PERIOD_MS if sources else SHORTEST_PERIOD_MS
        for source in sources:
            source.scan(self._passed_ms)
            period = min(period, source.interval_ms or period)
        period = max(period, SHORTEST_PERIOD_MS)
        self._passed_ms += period
        self._runner.post_delayed(self.scan, period)
