"""The recorder's own producer of scheduling events: `linux.ftrace`, for the recorded threads only.

The kernel writes only events of listed threads, and adds to the list the threads and processes that
these start. The recorder is listed first, so the program is listed from its first instruction.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.probes.ftrace import Ftrace
from stretto.protos.config import DataSourceConfig, FtraceConfig
from stretto.recorder.host.program_probe import ProgramProbe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.client.producer_connection import ProducerConnection

EVENTS = ("sched/sched_switch", "sched/sched_waking", "task/task_newtask", "task/task_rename")
BUFFER_KB = 2048
LIST = "set_event_pid"


def make_data_source() -> DataSourceConfig:
    """Return the config of the data source, which lists this process."""
    follow = FtraceConfig.TracefsOption(
        name="event-fork", state=FtraceConfig.TracefsOption.STATE_ENABLED
    )
    ftrace = FtraceConfig(
        ftrace_events=EVENTS,
        buffer_size_kb=BUFFER_KB,
        tids_to_trace=[os.getpid()],
        tracefs_options=[follow],
    )
    return DataSourceConfig(name=Ftrace.name, ftrace_config=ftrace)


class ProgramFtrace(Ftrace):
    """Events of the program's threads."""

    buffer_exhausted_policy = _native.DROP  # This thread runs the service: don't wait for it.

    def follow(self, pid: int) -> None:
        """List the threads of a process that was not started by a listed thread."""
        if self.instance is not None:
            tids = self.machine.names(f"proc/{pid}/task")
            self.instance.append(LIST, " ".join(tids))


class Scheduling(ProgramProbe):
    """Records the scheduling of processes.

    Args:
        runner: runs the periodic reads.
        add_producer: connects a producer to the service.
        tell: shows why there are no events.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        add_producer: Callable[[ProducerConnection], object],
        tell: Callable[[str], object],
    ) -> None:
        super().__init__(ProgramFtrace, runner, add_producer, tell)
