"""In a recorded process: connects to the recorder before the program's first line runs.

Everything here is silent: a recorder that has gone, or that doesn't answer, costs the
program its trace and nothing else.
"""

from __future__ import annotations

import atexit
import os
import sys

from stretto.base.errors import StrettoError
from stretto.recorder.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.backends.system import SystemBackend
    from stretto.base.unix_socket import UnixSocket
    from stretto.recorder.fork_socket import Lifeline
    from stretto.recorder.workspace import Options

BACKEND = "record"
DEADLINE_MS = 3000.0

_backend: SystemBackend | None = None
_is_system = False
_service = ""
_name = ""
_line: Lifeline | None = None


def start() -> None:
    """Become a producer of the recorder named in the environment, if there is one.

    In a recorder that is recorded itself, two folders are on the path, and each calls this: the
    inner recorder has the program.
    """
    if _line is not None:
        return
    workspace = Workspace.from_environment()
    if workspace is None or not os.path.exists(workspace.line):
        return
    import stretto
    from stretto import _native

    if not stretto.available():
        raise StrettoError("this Python has Stretto without its native part")
    from stretto import _wiring
    from stretto.client import fork
    from stretto.recorder.target.spawns import Spawns

    _wiring.install()
    options = workspace.read_options()
    _configure(options)
    _choose_service(workspace, options)
    Spawns(workspace)
    fork.after_in_child.append(lambda: _connect_again(workspace))
    atexit.register(_native.own_work, _end, workspace)
    _open_line(workspace)
    if _is_system:
        _replace_always_on()
    _native.own_work(_connect)


def _configure(options: Options) -> None:
    from stretto import profilers
    from stretto.client.track_event import builtin_categories

    # Now, not in the middle of the first session: our imports are none of its events.
    builtin_categories.load_all()
    functions: dict[str, object] = {
        name: int(options[name][0])
        for name in ("min_duration_ns", "max_depth", "c_functions")
        if name in options
    }
    for name in ("include", "exclude"):
        functions[name] = options.get(name, [])
    profilers.install(functions)


def _choose_service(workspace: Workspace, options: Options) -> None:
    """The recorder's own service, or the machine's, where processes have a common name."""
    global _service, _name, _is_system
    _is_system = "service" in options
    _service = options.get("service", [workspace.socket])[0]
    _name = options.get("name", [os.path.basename(sys.executable or "python")])[0]


def _open_line(workspace: Workspace) -> None:
    global _line
    from stretto.recorder.fork_socket import Lifeline

    _line = Lifeline(workspace.line, DEADLINE_MS)


def _connect(dial: Callable[[], UnixSocket] | None = None) -> None:
    global _backend
    from stretto.backends.system import SystemBackend
    from stretto.client.tracing import tracing

    _backend = SystemBackend(_service, _name, DEADLINE_MS, dial, lasting=_is_system)
    tracing.connect("system" if _is_system else BACKEND, _backend)


def _replace_always_on() -> None:
    """With a second connection to the same service everything would be recorded twice."""
    always_on = sys.modules.get("stretto.client.connection")
    if always_on is not None:
        always_on.disconnect()


def _connect_again(workspace: Workspace) -> None:
    """In the child of a fork."""
    try:
        if _line is not None and _line.is_open:
            # Where the recorder is the service, it lets in whoever has inherited the line.
            _connect(None if _is_system else _line.dial)
        elif os.path.exists(workspace.line):  # the program has closed it
            _open_line(workspace)
            _connect()
    except StrettoError as error:
        workspace.note([str(error)])


def _end(workspace: Workspace) -> None:
    """At exit, after everything that the program has to do there."""
    from stretto import profilers

    problems = profilers.problems()
    if _backend is not None:
        if not _backend.connected and os.path.exists(workspace.line):
            problems.append("it closed all its descriptors, ours too: recorded up to there")
        _backend.close()
    if _line is not None:
        _line.close()
    if lost := _lost_events():
        problems.append(f"{lost:,} events were lost: the shared memory was full")
    if problems:
        workspace.note(problems)


def _lost_events() -> int:
    """Events of this process that found no chunk: a thread's last ones leave no mark."""
    from stretto.client.track_event.source import TrackEventSource

    return TrackEventSource.counts[1]
