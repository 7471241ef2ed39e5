"""What the client needs of the layers above it: backends, which connect it to a service.

Implementations are in `stretto.backends`. `stretto._wiring` enters their factories here, so
the client never imports a service.
"""

from __future__ import annotations

from stretto.base.errors import StrettoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Never, Protocol, TypeVar

    from stretto.client.producer_connection import ProducerConnection
    from stretto.client.startup_tracing import StartupTracingSession
    from stretto.ports.endpoints import Consumer, ConsumerEndpoint
    from stretto.protos.config import DataSourceConfig

    T = TypeVar("T")

    class Backend(Protocol):
        """A tracing service that records this process."""

        def connect_producer(self, producer: ProducerConnection) -> None:
            """Connect, and `producer.attach` to the endpoint."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` where requests may be made, and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` there soon; never blocks."""

        def after_fork_in_child(self) -> None:
            """Forget the parent's connection."""

    class ServiceConnection(Backend, Protocol):
        """A backend whose service is another process."""

        lasting: bool
        """Whether it belongs to a recorder, and stays until the process ends."""
        problem: str
        """Why there is no connection; empty while there is one."""

        @property
        def connected(self) -> bool:
            """Whether the service knows this process now."""

        def close(self) -> None:
            """Stop recording and disconnect. What was written stays with the service."""

        def setup_startup_tracing(
            self,
            session: StartupTracingSession,
            configs: Sequence[DataSourceConfig],
            timeout_ms: float,
        ) -> None:
            """Start recording for a service that may set up the same data sources later."""

    class SessionBackend(Protocol):
        """A tracing service that this process may start sessions on, from a helper thread."""

        def prepare(self) -> None:
            """Make this process a producer of the service, so that sessions record it too."""

        def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
            """A consumer's endpoint. To be called, like the endpoint itself, by `call` only."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` on the backend's thread and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` on the backend's thread soon; never blocks."""

        def after_fork_in_child(self) -> None:
            """Forget the parent's connections."""

    class StartedRecorder(Protocol):
        """A recorder process, which records the child processes too."""

        def stop(self) -> None: ...
        def abandon(self) -> None: ...

    Prepare = Callable[[ServiceConnection], object]
    """Called with a connection before its first attempt to connect."""

IN_PROCESS, SYSTEM = "in_process", "system"
"""Names of backends: the service inside this process, and that of the machine."""


class Factories:
    """How backends are made; `stretto._wiring.install` enters them.

    Attributes:
        backends: Makes the backend of each name.
        session_backends: Makes the session backend of each name; again after a fork.
        connect_to_service: Connects to the producer socket at an address, unless a recorder
            has done so.
        start_recorder: Starts a recorder process, given its output path and options.
    """

    def __init__(self) -> None:
        self.backends: dict[str, Callable[[], Backend]] = {}
        self.session_backends: dict[str, Callable[[], SessionBackend]] = {}
        self.connect_to_service: Callable[[str, Prepare | None], ServiceConnection] = _missing
        self.start_recorder: Callable[[str, Sequence[str]], StartedRecorder] = _missing


def _missing(*_arguments: object) -> Never:
    raise StrettoError("The client has no backends: use it by the names of `stretto`.")


factories = Factories()
"""Those of this process."""


def make_backend(name: str) -> Backend:
    """A new connection to the service called `name`.

    Raises:
        StrettoError: There is no backend of that name.
    """
    return _make(factories.backends, name)


def make_session_backend(name: str) -> SessionBackend:
    """A new session backend for the service called `name`.

    Raises:
        StrettoError: There is no backend of that name.
    """
    return _make(factories.session_backends, name)


def _make(makers: dict[str, Callable[[], T]], name: str) -> T:
    if name not in makers:
        known = ", ".join(sorted(makers)) or "none"
        raise StrettoError(f"There is no backend {name!r}; use one of: {known}.")
    return makers[name]()
