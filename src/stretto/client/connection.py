"""`stretto.connect()`: makes this process a producer of the machine's tracing service.

From then on sessions of other processes (`stretto trace`, the Perfetto UI) can record this process
at any time; while no session runs, the connection costs nothing. While no service runs, the
connection is retried in the background. The child of a fork gets a connection of its own.

A session records a process only after the process has connected. `stretto.setup_startup_tracing()`,
or a config file named by `STRETTO_STARTUP_CONFIG`, starts recording earlier
(`client.startup_tracing`).
"""

from __future__ import annotations

import atexit
import os

from stretto.base.socket_names import producer_socket
from stretto.client import builtin_sources, fork
from stretto.client.backend import SYSTEM, factories
from stretto.client.safe_call import call_safely
from stretto.client.startup_tracing import ABORTED, TIMEOUT_MS, StartupTracingSession
from stretto.client.tracing import tracing
from stretto.client.tracing_session import decode_config
from stretto.client.track_event import builtin_categories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.client.backend import Prepare, ServiceConnection
    from stretto.protos.config import DataSourceConfig, TraceConfig

__all__ = [
    "Connection",
    "StartupTracingSession",
    "activate_triggers",
    "connect",
    "disconnect",
    "setup_startup_tracing",
]

STARTUP_CONFIG = "STRETTO_STARTUP_CONFIG"


class Connection:
    """The connection of this process to the tracing service; made by `connect`."""

    def __init__(self) -> None:
        self._address = producer_socket()
        self._backend: ServiceConnection | None = None

    @property
    def connected(self) -> bool:
        """Whether this process is connected to the service now."""
        return self._backend is not None and self._backend.connected

    @property
    def problem(self) -> str:
        """Why there is no connection; empty while connected, or before the first attempt."""
        return "" if self._backend is None else self._backend.problem

    def disconnect(self) -> None:
        """Close the connection; running sessions go on without this process. Idempotent."""
        if _active.get(_CONNECTION) is self:
            disconnect()

    # --- for the functions of this module

    def start(self, prepare: Prepare) -> None:
        # Import the profilers now: later, function tracing could record the imports.
        builtin_categories.load_all()
        builtin_sources.register_all()
        fork.after_in_child.append(self.start_backend)
        atexit.register(disconnect)
        self.start_backend(prepare)

    def start_backend(self, prepare: Prepare | None = None) -> None:
        self._backend = factories.connect_to_service(self._address, prepare)

    def prepare(self, prepare: Prepare) -> None:
        """Call `prepare` with the backend."""
        if self._backend is not None:
            prepare(self._backend)

    def stop(self) -> None:
        fork.after_in_child.remove(self.start_backend)
        atexit.unregister(disconnect)
        if self._backend is not None and not self._backend.lasting:
            self._backend.close()
            tracing.forget(SYSTEM)


_CONNECTION = "connection"
_active: dict[str, Connection] = {}
"""Has one entry while there is a connection; a dict, as `setdefault` and `pop` are atomic."""


def connect() -> Connection:
    """Let sessions of other processes record this process until it ends.

    The service is the one at `PERFETTO_PRODUCER_SOCK_NAME`, or at Perfetto's default path. If
    none runs yet, the connection is retried in the background. If `STRETTO_STARTUP_CONFIG`
    names the file of a trace config, startup tracing is set up with that config, as
    `setup_startup_tracing` does.

    Returns:
        The connection, before it is established; every call returns the same one.
    """
    return _connect(_set_up_from_environment)


def _connect(prepare: Prepare) -> Connection:
    this = Connection()
    winner = _active.setdefault(_CONNECTION, this)
    if winner is this:
        this.start(prepare)
    return winner


def disconnect() -> None:
    """Undo `connect`. No effect if there is no connection."""
    connection = _active.pop(_CONNECTION, None)
    if connection is not None:
        connection.stop()


def activate_triggers(names: Iterable[str], *, ttl_ms: float = 0) -> None:
    """Activate triggers: sessions with these triggers in their config start, stop or are cloned.

    The triggers are sent to every service that this process is connected to: by `connect`, by its
    own session, by a recorder. Services send no reply.

    Args:
        names: Names of the triggers in the sessions' `trigger_config`.
        ttl_ms: How long to keep the triggers, in ms, for a service that isn't connected yet; 0:
            they are not kept.

    Raises:
        TypeError: `names` is a single str.
    """
    if isinstance(names, str):
        raise TypeError(f"activate_triggers takes several names: write [{names!r}]")
    tracing.activate_triggers(list(names), ttl_ms)


def setup_startup_tracing(
    config: TraceConfig | bytes | str,
    *,
    timeout_ms: float = TIMEOUT_MS,
    on_adopted: Callable[[], object] | None = None,
    on_aborted: Callable[[], object] | None = None,
) -> StartupTracingSession:
    """Start recording now, before a session of the tracing service includes this process.

    This function connects, as `stretto.connect` does. The data sources of `config` that are
    registered in this process start at once, and write into 8 MiB of memory of this process. When
    the memory is full, events are dropped and counted.

    A session that exists already, or starts later, may set up a data source with an equal config.
    It then adopts the running data source, with everything recorded since the start. A data source
    that no session adopts in time stops, and its data is discarded.

    In a program run by `stretto record --system` nothing is set up, because the recorder's session
    records the program from the start. The child of a fork has no startup session.

    Args:
        config: The config of the expected session: a `stretto.protos.config.TraceConfig`, its
            encoding, or its text form.
        timeout_ms: How long to wait for a session, in ms.
        on_adopted: Called when a session has adopted every data source.
        on_aborted: Called when the startup session has ended without being adopted. Both functions
            are called on a thread of Stretto.

    Returns:
        The startup session: its `state` is "recording", then "adopted" or "aborted".

    Raises:
        ConfigError: The config is malformed.
        TransportError: The memory could not be allocated.
    """
    sources = _sources(config)
    session = StartupTracingSession(on_adopted, on_aborted)

    def prepare(backend: ServiceConnection) -> None:
        backend.setup_startup_tracing(session, sources, timeout_ms)

    _connect_and_prepare(prepare)
    if not session.is_set_up:
        session.end(ABORTED)
    return session


def _connect_and_prepare(prepare: Prepare) -> None:
    """Call `prepare` before the first attempt to connect, or now if a connection exists."""
    connected = _active.get(_CONNECTION)
    connection = _connect(prepare)
    if connection is connected:
        connection.prepare(prepare)


def _set_up_from_environment(backend: ServiceConnection) -> None:
    if path := os.environ.get(STARTUP_CONFIG):
        call_safely(_set_up_from_file, backend, path)


def _set_up_from_file(backend: ServiceConnection, path: str) -> None:
    """Set up startup tracing with a config file: encoded if its name ends in .pb, else text.

    Raises:
        OSError: The file can't be read.
        ConfigError: The file contains no valid config.
        TransportError: The memory could not be allocated.
    """
    with open(path, "rb") as file:
        data = file.read()
    config = data if path.endswith(".pb") else data.decode(errors="replace")
    backend.setup_startup_tracing(StartupTracingSession(), _sources(config), TIMEOUT_MS)


def _sources(config: TraceConfig | bytes | str) -> list[DataSourceConfig]:
    # Configs of other programs' data sources may have fields that Stretto doesn't know.
    decoded = decode_config(config, allow_unknown_fields=True)
    return [source.config for source in decoded.data_sources if source.config is not None]
