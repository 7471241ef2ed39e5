"""`stretto.setup_startup_tracing()`: records before a session has heard of the program."""

from __future__ import annotations

from stretto import _connection
from stretto.client.startup_tracing import ABORTED, TIMEOUT_MS, StartupTracingSession
from stretto.client.tracing_session import decode_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.backends.always_on import AlwaysOnBackend
    from stretto.protos.config import DataSourceConfig, TraceConfig

__all__ = ["StartupTracingSession", "setup_startup_tracing"]


def setup_startup_tracing(
    config: TraceConfig | bytes | str,
    *,
    timeout_ms: float = TIMEOUT_MS,
    on_adopted: Callable[[], object] | None = None,
    on_aborted: Callable[[], object] | None = None,
) -> StartupTracingSession:
    """Record from now on, for a session that asks for the same once this program is connected.

    Connects, as `stretto.connect` does. The data sources of `config` that this program has start
    at once, and write into memory of its own (8 MiB). A session that sets up one with an equal
    config, be it running already or yet to come, gets everything from here on. What no session has
    asked for in time ends, and is discarded. When the memory is full, events are dropped and
    counted.

    In a program of `stretto record --system` nothing is set up: the service has it from its start.
    Children of a fork have no part in it.

    Args:
        config: the session's: a `stretto.protos.config.TraceConfig`, one encoded, or its text form.
        timeout_ms: how long to wait for a session.
        on_adopted: called when a session has taken everything over.
        on_aborted: called when it has ended otherwise. Either on a thread of Stretto's.

    Returns:
        The startup session: its `state` is "recording", then "adopted" or "aborted".

    Raises:
        ConfigError: the config is none.
        TransportError: there is no memory to be had.
    """
    sources = _sources(config)
    session = StartupTracingSession(on_adopted, on_aborted)
    _connection.connect_after(
        lambda backend: backend.setup_startup_tracing(session, sources, timeout_ms)
    )
    if not session.is_set_up:
        session.end(ABORTED)
    return session


def set_up_from_file(backend: AlwaysOnBackend, path: str) -> None:
    """The same with the config in a file: text, or encoded if it is called *.pb.

    Raises:
        OSError: it can't be read.
        ConfigError: it holds no config.
        TransportError: there is no memory to be had.
    """
    with open(path, "rb") as file:
        data = file.read()
    config = data if path.endswith(".pb") else data.decode(errors="replace")
    backend.setup_startup_tracing(StartupTracingSession(), _sources(config), TIMEOUT_MS)


def _sources(config: TraceConfig | bytes | str) -> list[DataSourceConfig]:
    # Of other programs' data sources we needn't know everything.
    decoded = decode_config(config, allow_unknown_fields=True)
    return [source.config for source in decoded.data_sources if source.config is not None]
