"""What the client needs of a backend: a way to a service, as a producer and for sessions.

Implementations live in `stretto.backends` and register themselves under a name; the client
finds them there by name and never imports a service.
"""

from __future__ import annotations

from stretto.base.errors import StrettoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    from stretto.client.producer_connection import ProducerConnection
    from stretto.ports.endpoints import Consumer, ConsumerEndpoint

    T = TypeVar("T")

    class Backend(Protocol):
        """A tracing service that records this process."""

        def connect_producer(self, producer: ProducerConnection) -> None:
            """Connect, and `producer.attach` to the endpoint."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` where requests may be made, and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` there, soon; never waits."""

        def after_fork_in_child(self) -> None:
            """Forget the parent's connection."""

    class SessionBackend(Protocol):
        """A tracing service that this process may start sessions on, by a thread of ours."""

        def prepare(self) -> None:
            """Have the next session record this process, too."""

        def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
            """A consumer's endpoint. Here and there, `call` only."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` on the backend's thread and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` on the backend's thread, soon; never waits."""

        def after_fork_in_child(self) -> None:
            """Forget the parent's connections."""


factories: dict[str, Callable[[], Backend]] = {}
"""Backends by name; filled in by the façade."""

session_factories: dict[str, Callable[[], SessionBackend]] = {}
"""The same for those that sessions are started on; after a fork they are made anew."""


def make_backend(name: str) -> Backend:
    """A new connection to the service called `name`.

    Raises:
        StrettoError: there is no backend of that name.
    """
    return _make(factories, name)


def make_session_backend(name: str) -> SessionBackend:
    """A new way to start sessions on the service called `name`.

    Raises:
        StrettoError: there is no backend of that name.
    """
    return _make(session_factories, name)


def _make(makers: dict[str, Callable[[], T]], name: str) -> T:
    if name not in makers:
        known = ", ".join(sorted(makers)) or "none"
        raise StrettoError(f"There is no backend {name!r}; use one of: {known}.")
    return makers[name]()
