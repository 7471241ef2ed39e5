"""What the client needs of a backend: a thread of its own, and a way to the service.

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
        """A tracing service that this process can use."""

        def connect_producer(self, producer: ProducerConnection) -> None:
            """Connect, and `producer.attach` to the endpoint."""

        def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
            """A consumer's endpoint, to be used within `call` only."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` on the backend's thread and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` on the backend's thread, soon; never waits."""

        def after_fork_in_child(self) -> None:
            """Forget the parent's connection."""


factories: dict[str, Callable[[], Backend]] = {}
"""Backends by name; filled in by `stretto.backends`."""


def make_backend(name: str) -> Backend:
    """A new connection to the service called `name`.

    Raises:
        StrettoError: there is no backend of that name.
    """
    if name not in factories:
        known = ", ".join(sorted(factories)) or "none"
        raise StrettoError(f"There is no backend {name!r}; use one of: {known}.")
    return factories[name]()
