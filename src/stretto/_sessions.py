"""What makes sessions possible, put together on first use: the client and its backends."""

from __future__ import annotations

from stretto.client import fork as _fork
from stretto.client.backend import factories as _factories
from stretto.client.backend import session_factories as _session_factories
from stretto.client.data_source import DataSource
from stretto.client.recording import recording
from stretto.client.recording import start_recorder as _start_recorder
from stretto.client.tracing import tracing as _tracing
from stretto.client.tracing_session import TracingSession
from stretto.client.track_event import builtin_categories as _builtin_categories
from stretto.client.track_event import slots as _slots
from stretto.client.track_event.source import TrackEventSource as _TrackEventSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence as _Sequence

    from stretto.client.backend import Backend as _Backend
    from stretto.client.backend import SessionBackend as _SessionBackend
    from stretto.client.recording import Recorder as _Recorder

__all__ = ["DataSource", "TracingSession", "recording"]


def _in_process() -> _Backend:
    from stretto.backends.in_process import InProcessBackend

    return InProcessBackend()


def _in_process_sessions() -> _SessionBackend:
    from stretto.backends.in_process import InProcessBackend

    backend = _tracing.backend("in_process")
    assert isinstance(backend, InProcessBackend)  # of the factory above
    return backend


def _system_sessions() -> _SessionBackend:
    from stretto.backends.system_sessions import SystemSessions

    return SystemSessions()


def _recorder(path: str, options: _Sequence[str]) -> _Recorder:
    from stretto.backends.recorder_process import RecorderProcess

    return RecorderProcess(path, options)


_factories["in_process"] = _in_process
_session_factories["in_process"] = _in_process_sessions
_session_factories["system"] = _system_sessions
_start_recorder.append(_recorder)
_slots.install()
_builtin_categories.announce()
_TrackEventSource.register()
_fork.install()
