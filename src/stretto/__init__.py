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

Importing this module starts nothing and connects to nothing. On platforms without the native
part every call is accepted and has no effect; then `available()` returns False.

PYTEST_DONT_REWRITE: this word tells pytest not to rewrite this module. The distribution has a
pytest plugin, so pytest rewrites its modules, and warns of a module that is imported already.
"""

try:
    from stretto import _bundle

    _bundle.load("events")
except ImportError:  # This isn't CPython on Linux.
    pass

from stretto.base.errors import StrettoError
from stretto.base.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:  # `client.pure` has the same names with looser types.
    from stretto.client.api import (
        Category,
        Flow,
        Track,
        available,  # noqa: TC004  # the other branch imports it, too
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
    from stretto.client.connection import (
        activate_triggers,
        connect,
        disconnect,
        setup_startup_tracing,
    )
    from stretto.client.data_source import DataSource
    from stretto.client.recording import recording
    from stretto.client.tracing_session import TracingSession
else:
    try:
        from stretto import _package_finder

        _package_finder.install(__path__[0])
        from stretto.client.api import *  # noqa: F403  # its names are listed above
    except ImportError:
        from stretto.client.pure import *  # noqa: F403  # it has the same public names

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


_MODULES = {
    "DataSource": "stretto.client.data_source",
    "TracingSession": "stretto.client.tracing_session",
    "activate_triggers": "stretto.client.connection",
    "connect": "stretto.client.connection",
    "disconnect": "stretto.client.connection",
    "recording": "stretto.client.recording",
    "setup_startup_tracing": "stretto.client.connection",
}
"""Names beyond events, with the modules that define them; loaded on first use."""


_SUBPACKAGES = ("analysis", "flows", "testing")
"""Public subpackages that are attributes of this module before they are imported."""


def __dir__() -> list[str]:
    """Return the public names, for completion and `help`, also those that aren't loaded yet."""
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_SUBPACKAGES})


def __getattr__(name: str) -> object:
    """Load a name of `_MODULES` or `_SUBPACKAGES` at its first use."""
    if name in _SUBPACKAGES:
        return _subpackage(name)
    if name not in _MODULES:
        raise AttributeError(f"module 'stretto' has no attribute {name!r}")
    if available():
        _bundle.load("sessions")
        from stretto import _wiring

        _wiring.install()
        module = __import__(_MODULES[name], fromlist=[name])
    else:
        module = __import__("stretto.client.pure_sessions", fromlist=[name])
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def _subpackage(name: str) -> object:
    try:
        return __import__(f"{__name__}.{name}", fromlist=["__name__"])
    except ImportError as error:  # It may need the native part.
        raise AttributeError(f"{__name__}.{name} can't be imported: {error}") from error
