"""The built-in categories: events of the interpreter and the standard library.

    python.functions    calls                       functions
    python.managers     generators in `with`        context_managers
    python.gc           garbage collections         gc
    python.asyncio      tasks and their steps       task_frameworks, asyncio_tasks, trio_tasks
    python.log          log records from INFO up    log
    python.exceptions   uncaught exceptions         exceptions
    python.waits        waits for locks             lock_waits
    python.io_waits     waits for I/O and timers    io_waits
    python.gil_waits    waits for the GIL           gil_waits
    python.loops        lag of event loops          loop_watch

All have the tag `slow`: a session records them only if it names them. The client imports a
profiler's module and calls its `install()` when a session first enables its category; from then
on the category switches the profiler on and off. Profilers use the client's public names only.

Rules: the behaviour, output and tracebacks of the program don't change; nothing is imported that
the program may never need; errors of a profiler are ignored.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def install(options: Mapping[str, object] | None = None) -> None:
    """Prepare the profilers in this process; sessions switch them on.

    Args:
        options: options of function tracing, by name: `include`, `exclude` (lists of patterns),
            `min_duration_ns`, `max_depth`, `c_functions`, `imports`, `log_args`, `log_result`,
            `my_code`; see `functions.FunctionOptions`.
            They apply to sessions that start later.

    Raises:
        ConfigError: an option is unknown or out of range.
    """
    from stretto.profilers import functions

    functions.configure(functions.FunctionOptions.parse(options or {}))


def problems() -> list[str]:
    """Return a line for each kind of calls and waits that the last session doesn't have."""
    from stretto.profilers import functions

    gil_waits = sys.modules.get("stretto.profilers.gil_waits")
    return functions.problems() + (gil_waits.problems() if gil_waits else [])
