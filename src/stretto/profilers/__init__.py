"""The built-in categories: what the interpreter does, as events.

    python.functions    calls                       functions
    python.gc           garbage collections         gc
    python.asyncio      steps of tasks              asyncio_tasks
    python.log          log records from INFO up    log
    python.exceptions   uncaught exceptions         exceptions

All are tagged `slow`: a session records them only if it names them. The client loads a
profiler's module and calls its `install()` when a session first wants its category; from then
on the category alone switches it on and off. Written on the client's public names only.

Rules: the program's behaviour, output and tracebacks stay as they are; nothing is imported
that the program may never need; what fails here is dropped.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def install(options: Mapping[str, object] | None = None) -> None:
    """Prepare the profilers in this process; sessions switch them on.

    Args:
        options: for function tracing, by name: `include`, `exclude` (lists of patterns),
            `min_duration_ns`, `max_depth`, `c_functions`; see `functions.FunctionOptions`.
            They hold for sessions that start from now on.

    Raises:
        ConfigError: an option is unknown or out of range.
    """
    from stretto.profilers import functions

    functions.configure(functions.FunctionOptions.parse(options or {}))


def problems() -> list[str]:
    """What could not be followed since the last session began, and why: a line each."""
    from stretto.profilers import functions

    return functions.problems()
