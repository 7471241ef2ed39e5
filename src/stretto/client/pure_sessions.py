"""Sessions without the native part: blocks run, and nothing is recorded."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class recording:  # noqa: N801  # used like a function
    """`stretto.recording` without the native part: no file is written."""

    error = None

    def __init__(self, path: object, **options: Any) -> None:
        self._path = path

    def __enter__(self) -> TracingSession:
        return TracingSession(b"")

    def __exit__(self, *exc_info: object) -> None:
        return None


class TracingSession:
    """A session that records nothing; its trace is empty."""

    def __init__(self, config: object, backend: str = "in_process") -> None:
        self._config = config

    def setup(self, fd: int | None = None) -> None:
        return None

    def start(self) -> None:
        return None

    def flush(self, timeout_ms: int = 5000) -> bool:
        return True

    def stop(self) -> None:
        return None

    def wait(self, timeout_s: float = 0) -> None:
        return None

    def read(self) -> bytes:
        return b""

    def close(self) -> None:
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


class Connection:
    """A connection object without a service."""

    connected = False
    problem = "stretto is here without its native part: nothing can be recorded"

    def disconnect(self) -> None:
        return None


def connect() -> Connection:
    """`stretto.connect` without the native part: makes no connection."""
    return Connection()


def disconnect() -> None:
    """`stretto.disconnect` without the native part: has no effect."""


def activate_triggers(_names: object, *, ttl_ms: float = 0) -> None:
    """`stretto.activate_triggers` without the native part: has no effect."""


class StartupTracingSession:
    """A startup session that records nothing."""

    state = "aborted"
    num_data_sources_started = 0

    def abort(self) -> None:
        return None


def setup_startup_tracing(_config: object, **_options: object) -> StartupTracingSession:
    """`stretto.setup_startup_tracing` without the native part: records nothing."""
    return StartupTracingSession()


class DataSource:
    """A data source that never has instances, because nothing can be recorded."""

    name = ""

    @classmethod
    def register(cls) -> None:
        return None

    @classmethod
    def instances(cls) -> Sequence[Self]:
        return ()
