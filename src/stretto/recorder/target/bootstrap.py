"""Connects a recorded process to its recorder, before the first line of the program runs.

If the recorder has ended or doesn't answer, the program runs without being recorded and without an
error.
"""

from __future__ import annotations

import gc
import os
import sys

from stretto import _bundle
from stretto.base.errors import StrettoError
from stretto.recorder.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.backends.system import SystemBackend
    from stretto.base.unix_socket import UnixSocket
    from stretto.recorder.fork_socket import ForkSocket
    from stretto.recorder.workspace import Options

BACKEND = "record"
DEADLINE_MS = 10_000.0
"""How long a process waits for its recorder, which may still be importing its service."""

SWITCHES = ("c_functions", "cpu", "log_args", "log_result", "long_steps", "my_code")
"""Options of function and task tracing that are on or off."""

_backend: SystemBackend | None = None
_is_system = False
_service = ""
_name = ""
_fork_socket: ForkSocket | None = None


def start(first: list[dict[str, int]]) -> None:
    """Connect this process as a producer to the recorder given by the environment, if any.

    If a recorder is recorded itself, PYTHONPATH of the inner recorder's program contains the
    workspaces of both recorders. Each workspace has a sitecustomize module, and both modules call
    this function. The environment names the inner recorder, which records the process.

    Args:
        first: A list that `gc.get_stats` has returned, the first object that was created for the
            recording. The garbage collector has been disabled since.
    """
    if _fork_socket is not None:
        return
    workspace = Workspace.from_environment()
    if workspace is None or not os.path.exists(workspace.fork_socket):
        return
    _prepare(workspace)
    # The modules stay until the end of the process, so no garbage collection has to visit them.
    # That matters most in forked children: a collection copies the pages of the objects it visits,
    # and so does counting the references to an object that is used.
    from stretto import _native

    _native.exempt_since(first)
    _native.keep_exempt(True)
    _free_spare_objects()
    connection: list[dict[str, int]] = gc.get_stats()
    _native.call_untraced(_connect)
    _native.exempt_since(connection)


def _free_spare_objects() -> None:
    """Free what the interpreter keeps for later use: the imports left thousands of tuples there.

    The last collection of a process frees them, which copies a hundred pages of a forked child.
    It would also be the first one for the interpreter's own objects, and write to each of them.
    """
    gc.collect()


def _prepare(workspace: Workspace) -> None:
    """Do everything but to connect."""
    import stretto

    if not stretto.available():
        raise StrettoError("this Python has Stretto without its native part")
    _bundle.load("recorded")
    from stretto import _wiring
    from stretto.client import fork
    from stretto.recorder.target import ending
    from stretto.recorder.target.spawns import Spawns

    _wiring.install()
    options = workspace.read_options()
    configure(options, workspace)
    _choose_service(workspace, options)
    Spawns(workspace)
    _name_spawned_workers()
    _note_problems_at_os_exit(workspace)
    name = "system" if _is_system else BACKEND
    fork.reconnect[name] = lambda: _connect_again(workspace)
    fork.before.append(ending.keep_references)
    ending.install(lambda: _disconnect(workspace))
    _open_fork_socket(workspace)
    _report_matches(options.get("include", []))
    _share_totals()
    if _is_system:
        _replace_always_on()


def is_connected() -> bool:
    """Whether a recorder has started this process, and records it."""
    return _fork_socket is not None


def configure(options: Options, workspace: Workspace) -> None:
    """Load the built-in categories, and prepare function tracing.

    Args:
        options: the options of the recording, as read from the workspace.
        workspace: the workspace of the recorder.
    """
    from stretto import profilers
    from stretto.client.track_event import builtin_categories
    from stretto.client.track_event.process_name import hidden
    from stretto.profilers import log

    hidden.arguments = "no_args" in options
    # Import the profilers before the first session, which would record the imports.
    builtin_categories.load_all()
    if any(name in options for name in ("heap", "object_graph", "service")):
        from stretto.client import builtin_sources

        builtin_sources.register_all()
    if "no_source" in options:
        log.leave_out_source()
    functions: dict[str, object] = {
        name: int(options[name][0])
        for name in (*SWITCHES, "min_duration_ns", "max_depth")
        if name in options
    }
    if "auto_detail" in options:
        functions["auto_detail"] = True
        functions["threshold_file"] = workspace.threshold
    if "imports" in options:
        functions["imports"] = options["imports"][0]
    for name in ("include", "exclude"):
        functions[name] = options.get(name, [])
    profilers.install(functions)
    if "flows" in options:
        from stretto.flows import automatic
        from stretto.profilers.on_import import when_imported

        automatic.install(when_imported)


def _report_matches(patterns: list[str]) -> None:
    """Report each pattern of `--include` that a function of this process matches."""
    from stretto.profilers import functions

    def report(pattern: str) -> None:
        number = patterns.index(pattern) + 1
        if _fork_socket is not None and number < 256:
            _fork_socket.report(number)

    functions.when_included(report)


def _choose_service(workspace: Workspace, options: Options) -> None:
    """Set this process's producer name, and its service: the recorder's or the machine's."""
    global _service, _name, _is_system
    _is_system = "service" in options
    _service = options.get("service", [workspace.producer_socket])[0]
    _name = options.get("name", [os.path.basename(sys.executable or "python")])[0]


def _name_spawned_workers() -> None:
    """Rename this process when multiprocessing has named it and loaded its script."""
    from stretto.client.track_event.source import name_worker
    from stretto.profilers.patch import Patch

    prepare = Patch("multiprocessing.spawn", "prepare", id, lambda _, __: name_worker())
    prepare.switch(True)


def _note_problems_at_os_exit(workspace: Workspace) -> None:
    """Do so for `os._exit`, which runs no exit handlers; children of multiprocessing end by it."""
    from stretto.client import postponed
    from stretto.profilers.patch import Patch

    def note(*_: object, **__: object) -> None:
        if not postponed.is_waiting() and (problems := _problems()):
            workspace.note(problems)

    Patch("os", "_exit", note).switch(True)


def _open_fork_socket(workspace: Workspace) -> None:
    global _fork_socket
    from stretto.recorder.fork_socket import ForkSocket

    _fork_socket = ForkSocket(workspace.fork_socket, DEADLINE_MS)


def _share_totals() -> None:
    """Pass the memory with the totals of this process to the recorder."""
    from stretto.profilers import functions

    if _fork_socket is not None and (fd := functions.share_totals()) >= 0:
        try:
            _fork_socket.report(0, fd)
        finally:
            os.close(fd)


def _connect(make_connection: Callable[[], UnixSocket] | None = None) -> None:
    global _backend
    from stretto.backends.system import SystemBackend
    from stretto.client.tracing import tracing

    _backend = SystemBackend(_service, _name, DEADLINE_MS, make_connection, lasting=_is_system)
    tracing.connect("system" if _is_system else BACKEND, _backend)


def _replace_always_on() -> None:
    """Disconnect the always-on producer, so that events aren't recorded twice."""
    always_on = sys.modules.get("stretto.client.connection")
    if always_on is not None:
        always_on.disconnect()


def _connect_again(workspace: Workspace) -> None:
    """Connect the child of a fork to the recorder."""
    try:
        if _fork_socket is not None and _fork_socket.is_open:
            # A recorder with its own service accepts connections over the inherited socket.
            _connect(None if _is_system else _fork_socket.connect)
        elif os.path.exists(workspace.fork_socket):  # The program has closed the fork socket.
            _open_fork_socket(workspace)
            _connect()
        _share_totals()
    except StrettoError as error:
        workspace.note([str(error)])


def _disconnect(workspace: Workspace) -> None:
    from stretto.profilers import functions

    problems = _problems()
    functions.finish()
    if _backend is not None:
        if not _backend.connected and os.path.exists(workspace.fork_socket):
            problems.append("it closed all its descriptors, ours too: recorded up to there")
        _backend.close()
    if _fork_socket is not None:
        _fork_socket.close()
    if lost := _lost_events():
        problems.append(f"{lost:,} events were lost: the shared memory was full")
    if tasks := sys.modules.get("stretto.profilers.asyncio_tasks"):
        problems += tasks.problems()
    if problems:
        workspace.note(problems)


def _problems() -> list[str]:
    """Return what was not recorded in this process, and why."""
    from stretto import profilers

    problems = profilers.problems()
    if automatic := sys.modules.get("stretto.flows.automatic"):
        problems += automatic.problems
    return problems


def _lost_events() -> int:
    """Return the number of events lost because no chunk was free.

    The trace itself doesn't report all of these losses."""
    from stretto.client.track_event.source import TrackEventSource

    return TrackEventSource.counts[1]
