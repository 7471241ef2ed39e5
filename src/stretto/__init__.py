"""Stretto: Perfetto's tracing stack for Python.

    import stretto

    render = stretto.Category("render", description="frames")

    with stretto.recording("trace.pftrace"):
        with render.slice("frame", number=3):
            render.instant("vsync", line=7)
        render.counter("queue", 3)

Open the file at https://ui.perfetto.dev. To record a whole program without changing it:
`stretto record app.py`. To have a program recorded from outside at any time while it runs:

    stretto.connect()

Importing this module starts nothing and connects to nothing. Where the native parts are
missing every call does nothing, correctly; `available()` says so.
"""

from __future__ import annotations

from stretto.base.errors import StrettoError
from stretto.base.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:  # the pure side has the same names, and looser types
    from stretto._connection import activate_triggers, connect, disconnect
    from stretto._startup import setup_startup_tracing
    from stretto.client.api import (
        Category,
        Flow,
        Track,
        available,
        begin,
        counter,
        end,
        flow_id,
        in_event,
        instant,
        now,
        process_track,
        slice,
        thread_track,
        traced,
    )
    from stretto.client.data_source import DataSource
    from stretto.client.recording import recording
    from stretto.client.tracing_session import TracingSession
else:
    try:
        from stretto.client.api import (
            Category,
            Flow,
            Track,
            available,
            begin,
            counter,
            end,
            flow_id,
            in_event,
            instant,
            now,
            process_track,
            slice,
            thread_track,
            traced,
        )
    except ImportError:
        from stretto.client.pure import (
            Category,
            Flow,
            Track,
            available,
            begin,
            counter,
            end,
            flow_id,
            in_event,
            instant,
            now,
            process_track,
            slice,
            thread_track,
            traced,
        )

__version__ = VERSION

__all__ = [
    "Category",
    "DataSource",
    "Flow",
    "StrettoError",
    "Track",
    "TracingSession",
    "activate_triggers",
    "available",
    "begin",
    "connect",
    "counter",
    "disconnect",
    "end",
    "flow_id",
    "in_event",
    "instant",
    "now",
    "process_track",
    "recording",
    "setup_startup_tracing",
    "slice",
    "thread_track",
    "traced",
]


_SESSIONS = ("DataSource", "TracingSession", "recording")
_CONNECTION = ("activate_triggers", "connect", "disconnect")
_STARTUP = ("setup_startup_tracing",)


def __getattr__(name: str) -> object:
    """What more there is than events, loaded when first used."""
    if name not in _SESSIONS and name not in _CONNECTION and name not in _STARTUP:
        raise AttributeError(f"module 'stretto' has no attribute {name!r}")
    if not available():
        from stretto.client import pure_sessions as module
    elif name in _SESSIONS:
        from stretto import _sessions as module  # type: ignore[no-redef]
    elif name in _CONNECTION:
        from stretto import _connection as module  # type: ignore[no-redef]
    else:
        from stretto import _startup as module  # type: ignore[no-redef]
    value: object = getattr(module, name)
    globals()[name] = value
    return value
