"""The recorder's own producer of waits in system calls: `linux.syscall_waits`.

Without the right to use tracefs, the recorded programs themselves record the waits in Python's own
functions, in the category `python.io_waits`.
"""

from __future__ import annotations

from stretto.base import pid_namespace
from stretto.probes.syscall_waits import SyscallWaits
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.recorder.host.program_probe import ProgramProbe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.client.producer_connection import ProducerConnection

CATEGORY = "python.io_waits"


def missing_right(root: str = "/") -> str:
    """Return why system calls can't be recorded on this machine; "" if they can."""
    if not pid_namespace.is_initial(f"{root}/proc"):
        return pid_namespace.OTHER_IDS
    try:
        Tracefs(root).make_instance().close()
    except TracefsError as error:
        return str(error)
    return ""


class IoWaits(ProgramProbe):
    """Records the waits of processes.

    Args:
        runner: runs the periodic reads.
        add_producer: connects a producer to the service.
        tell: shows why there are no waits.
    """

    def __init__(
        self,
        runner: SelectorTaskRunner,
        add_producer: Callable[[ProducerConnection], object],
        tell: Callable[[str], object],
    ) -> None:
        super().__init__(SyscallWaits, runner, add_producer, tell)
