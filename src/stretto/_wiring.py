"""Connects the client to its backends, at the first use of a name of `stretto` that needs one.

Importing this module has no effect: `install` registers the backends. The backends themselves are
imported at their first use.
"""

from __future__ import annotations

from stretto.client import fork
from stretto.client.backend import IN_PROCESS, SYSTEM, factories, load_in_process
from stretto.client.tracing import tracing
from stretto.client.track_event import builtin_categories, slots
from stretto.client.track_event.source import TrackEventSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.client.backend import (
        Backend,
        Prepare,
        ServiceConnection,
        SessionBackend,
        StartedRecorder,
    )


def install() -> None:
    """Register the backends, data source and categories of this process in the client.

    May be called repeatedly, and by several threads at once: each step has its effect once.
    """
    factories.backends[IN_PROCESS] = _in_process_backend
    factories.session_backends[IN_PROCESS] = _in_process_sessions
    factories.session_backends[SYSTEM] = _system_sessions
    factories.connect_to_service = _connect_to_service
    factories.start_recorder = _start_recorder
    slots.install(TrackEventSource.announce_categories)
    builtin_categories.announce()
    TrackEventSource.register()
    fork.install()


def _in_process_backend() -> Backend:
    from stretto.backends.in_process import InProcessBackend

    return InProcessBackend()


def _in_process_sessions() -> SessionBackend:
    load_in_process()
    from stretto.backends.in_process import InProcessBackend

    backend = tracing.backend(IN_PROCESS)
    assert isinstance(backend, InProcessBackend)  # `_in_process_backend` made it.

    return backend


def _system_sessions() -> SessionBackend:
    from stretto.backends.system_sessions import SystemSessions

    return SystemSessions()


def _connect_to_service(address: str, prepare: Prepare | None) -> ServiceConnection:
    from stretto.backends.always_on import connect_to_service

    return connect_to_service(address, prepare)


def _start_recorder(path: str, options: Sequence[str]) -> StartedRecorder:
    from stretto.backends.recorder_process import RecorderProcess

    return RecorderProcess(path, options)
