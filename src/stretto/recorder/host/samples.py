"""The recorder's own producer of stack samples: `python.cpu`, `python.wall`, `python.gil`.

Each sampled process has a thread in the recorder, and a packet sequence. Processes are sampled when
they connect, and when a scan of the program's descendants finds them.
"""

from __future__ import annotations

import stretto
from stretto import _native
from stretto.client.producer_connection import ProducerConnection
from stretto.profilers.sampling.process import CPU, GIL, WALL
from stretto.profilers.sampling.profile import Profile
from stretto.profilers.sampling.settings import SOURCES, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.protos.config import DataSourceConfig

SCAN_PERIOD_MS = 500


class StackSamples(stretto.DataSource):
    """Samples the stacks of processes into a session."""

    # A full shared memory is emptied by the main thread, which doesn't wait for this one.
    buffer_exhausted_policy = _native.STALL_THEN_DROP
    mode: ClassVar[int]
    period_ns: ClassVar[int]
    form: ClassVar[int]
    native: ClassVar[bool]
    profiles: ClassVar[list[Profile]]
    """Those of all instances, also of those that have ended."""

    def on_setup(self, config: DataSourceConfig) -> None:
        settings = Settings(
            self.mode, self.period_ns, numbered=False, form=self.form, native=self.native
        )
        self.profile = Profile(settings, lambda packets: self.writer().write_all(packets))

    def on_start(self) -> None:
        StackSamples.profiles.append(self.profile)

    def on_stop(self) -> None:
        self.profile.stop()
        self.profile.join()


class CpuSamples(StackSamples):
    """Threads that run."""

    name = SOURCES[CPU]
    mode = CPU


class WallSamples(StackSamples):
    """All threads."""

    name = SOURCES[WALL]
    mode = WALL


class GilSamples(StackSamples):
    """The thread that holds the GIL."""

    name = SOURCES[GIL]
    mode = GIL


DATA_SOURCES = (CpuSamples, WallSamples, GilSamples)


class ProgramSamples:
    """Samples a program and its descendants.

    Args:
        runner: runs the periodic scans.
        add_producer: connects a producer to the service.
        period_ns: the time between two samples.
        form: PERF_SAMPLE or STACK_SAMPLE of `process`.
        native: whether samples have C functions, too.

    Attributes:
        profiles: the profile of each data source, after `stop`.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        add_producer: Callable[[ProducerConnection], object],
        period_ns: int,
        form: int,
        *,
        native: bool = False,
    ) -> None:
        self._runner = runner
        self.profiles: list[Profile] = []
        StackSamples.period_ns, StackSamples.form = period_ns, form
        StackSamples.native, StackSamples.profiles = native, []
        add_producer(ProducerConnection(DATA_SOURCES))

    def follow(self, pid: int) -> None:
        """Sample a process that has connected."""
        for profile in self._running():
            profile.follow(pid, names_itself=True)

    def follow_tree(self, root: int) -> None:
        """Sample a process and its descendants, in periodic tasks until `stop`."""
        if self.profiles:
            return
        for profile in self._running():
            profile.follow(root)
            profile.add_children(root)
        self._runner.post_delayed(lambda: self.follow_tree(root), SCAN_PERIOD_MS)

    def stop(self) -> None:
        """End all profiles, and wait until their samples are written."""
        # A session that has ended by itself, as after `--duration`, has no instances any more.
        self.profiles = sorted(StackSamples.profiles, key=lambda each: each.settings.mode)
        for profile in self.profiles:
            profile.stop()
        for profile in self.profiles:
            profile.join()

    def _running(self) -> list[Profile]:
        return [source.profile for kind in DATA_SOURCES for source in kind.instances()]
