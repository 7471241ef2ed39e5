"""A profile: samples of a process and of its children, until it ends or the user stops it.

Each process is sampled by a thread of its own. The thread holds the GIL only to write the samples,
twice a second. New children are searched twice a second, too. If a process runs another program
(`exec`), its interpreter is searched again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from stretto.base import proc_files
from stretto.base.errors import StrettoError
from stretto.profilers.sampling.process import NoPythonError, ProcessError, find_python
from stretto.profilers.sampling.samples import ProcessSamples

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.profilers.sampling.interned_stacks import FunctionKey
    from stretto.profilers.sampling.settings import Settings

NS = 1_000_000_000
FIRST_SEQUENCE_ID = 1000
_RUN_NS = NS // 10
_RUNS_PER_DRAIN = 5
_SCAN_PERIOD_S = 0.5
_RETRY_S = 0.05
_RETRIES = 20


class FunctionSamples(NamedTuple):
    """For how many periods of the profile a function was sampled.

    Attributes:
        key: The function.
        own: Those in which it was the innermost call.
        total: Those in which it was on the stack.
    """

    key: FunctionKey
    own: int
    total: int


class Profile:
    """Samples processes.

    Args:
        settings: What is sampled.
        write: Receives the packets, as bytes of a trace; called by one thread at a time.
    """

    def __init__(self, settings: Settings, write: Callable[[bytes], None]) -> None:
        self.settings = settings
        self._write = write
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._followed: set[int] = set()
        self._children: set[int] = set()
        self._naming_themselves: set[int] = set()
        self._samples: list[ProcessSamples] = []
        self._scripts: set[str] = set()
        self.problems: dict[int, str] = {}
        """Why a process isn't sampled, by pid."""
        self.error: Exception | None = None
        """The first error of `write`."""

    def add(self, pid: int) -> None:
        """Sample a process from now on.

        Raises:
            ProcessError: It can't be sampled.
        """
        samples = self._samples_of(pid)
        self._start(pid, samples)

    def _samples_of(self, pid: int) -> ProcessSamples:
        with self._lock:
            settings = self.settings
            sequence_id = FIRST_SEQUENCE_ID + len(self._samples) if settings.numbered else 0
            samples = ProcessSamples(
                find_python(pid),
                settings,
                sequence_id,
                names_itself=lambda: pid in self._naming_themselves,
                scripts=self._scripts,
            )
            self._samples.append(samples)
        return samples

    def follow(self, pid: int, *, names_itself: bool = False) -> None:
        """Sample a process, which may just be starting, unless it is sampled already.

        Args:
            pid: The process.
            names_itself: Whether the process has described itself in the trace.
        """
        if names_itself:
            self._naming_themselves.add(pid)
        if pid not in self._followed and not self._stopped.is_set():
            self._start(pid, None)

    def add_children(self, root: int) -> None:
        """Sample the new descendants of a process."""
        new = proc_files.descendants(root) - self._children
        self._children |= new
        for pid in new:
            self.follow(pid)

    def _start(self, pid: int, samples: ProcessSamples | None) -> None:
        self._followed.add(pid)
        thread = threading.Thread(target=self._follow, args=(pid, samples), daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()]
        thread.start()
        self._threads.append(thread)

    def run(self, root: int, seconds: float | None = None) -> None:
        """Sample until process `root` has ended, `stop` is called or `seconds` have passed."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._stopped.is_set() and _is_alive(root) and self.error is None:
            left = _SCAN_PERIOD_S if end is None else min(end - time.monotonic(), _SCAN_PERIOD_S)
            if left <= 0:
                break
            self._stopped.wait(left)
            if self.settings.children:
                self.add_children(root)
        self.stop()
        self.join()

    def stop(self) -> None:
        """End the profile soon; may be called by a signal handler."""
        self._stopped.set()

    def join(self) -> None:
        """Wait until all samples are written, after `stop`."""
        for thread in self._threads:
            thread.join()

    def _follow(self, pid: int, samples: ProcessSamples | None) -> None:
        """Sample one process until it ends, also after `exec`."""
        try:
            while not self._stopped.is_set():
                samples = samples or self._wait_for_python(pid)
                if samples is None:
                    return
                self._sample(samples)
                samples = None
        except (OSError, StrettoError) as error:  # The caller of `run` reports the first one.
            self.error = self.error or error
            self.stop()
        finally:
            self._followed.discard(pid)

    def _wait_for_python(self, pid: int) -> ProcessSamples | None:
        """Return samples of a process that may just be starting; None if it can't be sampled."""
        for _ in range(_RETRIES):
            try:
                return self._samples_of(pid)
            except NoPythonError:
                pass  # It may execute Python soon.
            except ProcessError as error:
                self.problems[pid] = str(error)
            if not _is_alive(pid) or self._stopped.wait(_RETRY_S):
                self.problems.pop(pid, None)
                return None
        return None

    def _sample(self, samples: ProcessSamples) -> None:
        self.problems.pop(samples.pid, None)
        lives = True
        while lives and not self._stopped.is_set():
            for _ in range(_RUNS_PER_DRAIN):
                lives = samples.run(_RUN_NS)
                if not lives or self._stopped.is_set():
                    break
            packets = samples.drain()
            with self._lock:
                self._write(packets)

    @property
    def sampled(self) -> int:
        """The number of samples so far."""
        return self._stat("samples")

    @property
    def torn(self) -> int:
        """The number of samples that were refused because the stack changed while it was read."""
        return self._stat("torn")

    @property
    def longest(self) -> int:
        """The largest number of periods between two samples; 1 within the budget of CPU time."""
        return max((samples.longest for samples in self._samples), default=1)

    @property
    def native(self) -> int:
        """The number of samples with C functions."""
        return self._stat("native")

    @property
    def unstopped(self) -> int:
        """The number of samples of threads that ran, and were not stopped for C functions."""
        return self._stat("unstopped")

    @property
    def refused(self) -> int:
        """The number of `unstopped` samples whose thread the kernel allowed no stop of."""
        return self._stat("refused")

    @property
    def paused_ns(self) -> int:
        """How long threads were stopped for C functions, all together."""
        return self._stat("paused_ns")

    @property
    def native_problems(self) -> dict[int, str]:
        """Why the samples of a process have no C functions, by pid."""
        # Of a process without samples, the code may not have been read before it ended.
        sampled = (samples for samples in self._samples if samples.stats["samples"])
        return {samples.pid: samples.problem for samples in sampled if samples.problem}

    @property
    def late(self) -> int:
        """The number of samples that are missing because this process did not run in time."""
        return self._stat("late")

    @property
    def unseen(self) -> int:
        """The number of periods of CPU time in which no thread was found running."""
        return self._stat("unseen")

    @property
    def cut(self) -> int:
        """The number of samples that have only the innermost 1,024 calls of a deeper stack."""
        return self._stat("cut")

    def _stat(self, name: str) -> int:
        return sum(samples.stats[name] for samples in self._samples)

    @property
    def processes(self) -> int:
        """The number of processes that were sampled."""
        return len({samples.pid for samples in self._samples})

    def functions(self) -> list[FunctionSamples]:
        """Return the sampled functions of all processes, the one with most own samples first."""
        own: dict[FunctionKey, int] = {}
        total: dict[FunctionKey, int] = {}
        for samples in self._samples:
            _add(own, samples.own)
            _add(total, samples.total)
        rows = [FunctionSamples(key, own.get(key, 0), number) for key, number in total.items()]
        return sorted(rows, key=lambda row: (-row.own, -row.total, row.key))


def _add(to: dict[FunctionKey, int], numbers: dict[FunctionKey, int]) -> None:
    for key, number in numbers.copy().items():
        to[key] = to.get(key, 0) + number


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; False for a zombie."""
    stat = proc_files.stat(pid)
    return bool(stat) and stat[0] not in (b"Z", b"X")
