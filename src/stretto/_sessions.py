"""What makes sessions possible, put together on first use: the client and its backends."""

from __future__ import annotations

from stretto.backends import in_process as _in_process
from stretto.client import fork as _fork
from stretto.client.backend import factories as _factories
from stretto.client.data_source import DataSource
from stretto.client.recording import recording
from stretto.client.tracing_session import TracingSession
from stretto.client.track_event import builtin_categories as _builtin_categories
from stretto.client.track_event.source import TrackEventSource as _TrackEventSource

__all__ = ["DataSource", "TracingSession", "recording"]

_factories["in_process"] = _in_process.InProcessBackend
_builtin_categories.announce()
_TrackEventSource.register()
_fork.install()
