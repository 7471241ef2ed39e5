"""The backends of this process, and the producer connections to their services.

One object per process (Perfetto's muxer). A backend is connected on first use, never at
import. After a fork the child keeps the data sources and has no connection.
"""

from __future__ import annotations

from stretto.client import data_source, postponed
from stretto.client.backend import IN_PROCESS, make_backend, make_session_backend
from stretto.client.producer_connection import ProducerConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto import _native
    from stretto.client.backend import Backend, SessionBackend
    from stretto.client.data_source import DataSource


class Tracing:
    """The backends of this process, by name."""

    def __init__(self) -> None:
        self._backends: dict[str, Backend] = {}
        self._session_backends: dict[str, SessionBackend] = {}
        self._producers: dict[str, ProducerConnection] = {}

    def add_data_source(self, source: type[DataSource]) -> None:
        """Register a data source with all connected backends."""
        postponed.run()
        for name, producer in self._producers.items():
            self._backends[name].call(lambda p=producer: p.add_data_source(source))  # type: ignore[misc]

    def update_data_source(self, source: type[DataSource]) -> None:
        """Send a changed descriptor to all backends soon; several changes may share a message."""
        for name, producer in list(self._producers.items()):
            if not producer.will_update:
                producer.will_update = True
                self._backends[name].post(lambda p=producer: p.update_data_source(source))  # type: ignore[misc]

    def activate_triggers(self, names: Sequence[str], ttl_ms: float) -> None:
        """Activate triggers at each service with a connection, also if it is still being made."""
        postponed.run()
        for name, producer in list(self._producers.items()):
            self._backends[name].call(lambda p=producer: p.activate_triggers(names, ttl_ms))  # type: ignore[misc]

    def backend(self, name: str) -> Backend:
        """Return the backend of that name; at its first use, connect this process as a producer."""
        postponed.run()
        if name not in self._backends:
            self.connect(name, make_backend(name))
        return self._backends[name]

    def session_backend(self, name: str) -> SessionBackend:
        """Return the backend for sessions of this process, after connecting it as a producer too.

        Raises:
            StrettoError: There is no such backend, or its service can't be reached.
        """
        postponed.run()
        backend = self._session_backends.get(name)
        if backend is None:
            backend = self._session_backends[name] = make_session_backend(name)
        backend.prepare()
        return backend

    def connected(self, name: str) -> Backend | None:
        """Return the backend of that name if it is connected, else None."""
        postponed.run()
        return self._backends.get(name)

    def sources(self, name: str) -> list[DataSource]:
        """Return the running data sources of a backend; empty if there is no such backend."""
        producer = self._producers.get(name)
        return [] if producer is None else producer.instances

    def is_in_process(self, arbiter: _native.Arbiter) -> bool:
        """Whether the memory of `arbiter` belongs to the service in this process."""
        producer = self._producers.get(IN_PROCESS)
        return producer is not None and producer.arbiter is arbiter

    def connect(self, name: str, backend: Backend) -> None:
        """Store `backend` under `name`, and register all data sources with this backend."""
        producer = ProducerConnection(list(data_source.registered.values()))
        self._backends[name] = backend
        self._producers[name] = producer
        backend.connect_producer(producer)

    def forget(self, name: str) -> None:
        """Drop the backend called `name`, which its owner has closed."""
        self._producers.pop(name, None)
        self._backends.pop(name, None)

    def after_fork_in_child(self) -> None:
        """In the child of a fork: drop all connections, which belong to the parent."""
        for producer in self._producers.values():
            producer.abandon()
        backends: set[Backend | SessionBackend] = set(self._backends.values())
        for backend in backends.union(self._session_backends.values()):
            backend.after_fork_in_child()
        self._producers.clear()
        self._backends.clear()
        self._session_backends.clear()


tracing = Tracing()
"""The only `Tracing` object of this process."""

data_source.on_registered.append(tracing.add_data_source)
