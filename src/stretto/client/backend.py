"""Interfaces of the backends, which connect the client to a tracing service.

The implementations are in `stretto.backends`. `stretto._wiring` registers the factories of the
backends in this module, so the client never imports a service.
"""

from __future__ import annotations

from stretto import _bundle
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
    Stats = list[dict[str, int]]

    class Backend(Protocol):
        """A connection to a tracing service that records this process."""

        def connect_producer(self, producer: ProducerConnection) -> None:
            """Connect, and pass the endpoint to `producer.attach`."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` on a thread that may send requests, and return its result."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` soon on a thread that may send requests; never blocks."""

        def after_fork_in_child(self) -> None:
            """In the child of a fork: drop the parent's connection."""

    class ServiceConnection(Backend, Protocol):
        """A backend whose service is another process."""

        lasting: bool
        """Whether the connection belongs to a recorder, and is kept until the process ends."""
        problem: str
        """Why there is no connection; "" while there is one."""

        @property
        def connected(self) -> bool:
            """Whether this process is connected to the service now."""

        def close(self) -> None:
            """Stop recording and disconnect. Written data stays in the service."""

        def setup_startup_tracing(
            self,
            session: StartupTracingSession,
            configs: Sequence[DataSourceConfig],
            timeout_ms: float,
        ) -> None:
            """Start recording for a service that may set up the same data sources later."""

    class SessionBackend(Protocol):
        """A tracing service on which this process may start sessions, inside of `call`."""

        def prepare(self) -> None:
            """Make this process a producer of the service, so that sessions record it too."""

        def connect_consumer(self, consumer: Consumer) -> ConsumerEndpoint:
            """Return a consumer's endpoint. It may be made and used only inside of `call`."""

        def call(self, function: Callable[[], T]) -> T:
            """Run `function` on the backend's thread and return what it returns."""

        def post(self, function: Callable[[], object]) -> None:
            """Run `function` on the backend's thread soon; never blocks."""

        def after_fork_in_child(self) -> None:
            """In the child of a fork: drop the parent's connections."""

    class StartedRecorder(Protocol):
        """A running recorder process, which also records child processes."""

        def stop(self) -> None: ...
        def abandon(self) -> None: ...

    Prepare = Callable[[ServiceConnection], object]
    """Called with a connection before its first attempt to connect."""

IN_PROCESS, SYSTEM = "in_process", "system"
"""Names of backends: the service inside this process, and the service of the machine."""


class Factories:
    """The factories of the backends, registered by `stretto._wiring.install`.

    Attributes:
        backends: Factories of backends, by name.
        session_backends: Factories of session backends, by name; called again after a fork.
        connect_to_service: Connects to the producer socket at an address, unless a recorder has
            connected the process.
        start_recorder: Starts a recorder process; its arguments are the output path and options.
    """

    def __init__(self) -> None:
        self.backends: dict[str, Callable[[], Backend]] = {}
        self.session_backends: dict[str, Callable[[], SessionBackend]] = {}
        self.connect_to_service: Callable[[str, Prepare | None], ServiceConnection] = _missing
        self.start_recorder: Callable[[str, Sequence[str]], StartedRecorder] = _missing


def _missing(*_arguments: object) -> Never:
    raise StrettoError("The client has no backends: use it by the names of `stretto`.")


factories = Factories()
"""The factories of this process."""


def make_backend(name: str) -> Backend:
    """Return a new connection to the service called `name`.

    Raises:
        StrettoError: There is no backend of that name.
    """
    return _make(factories.backends, name)


def make_session_backend(name: str) -> SessionBackend:
    """Return a new session backend for the service called `name`.

    Raises:
        StrettoError: There is no backend of that name.
    """
    return _make(factories.session_backends, name)


def load_in_process() -> None:
    """Import the modules of a session in this process, and those of its service."""
    _bundle.load("in_process", exempt=_exempt)


def _exempt(made: list[tuple[Stats, Stats]]) -> None:
    from stretto import _native

    for first, last in made:
        _native.exempt_between(first, last)
    # The end of the process need not free the functions and classes, one by one.
    _native.keep_exempt(False)


def _make(makers: dict[str, Callable[[], T]], name: str) -> T:
    if name not in makers:
        known = ", ".join(sorted(makers)) or "none"
        raise StrettoError(f"There is no backend {name!r}; use one of: {known}.")
    return makers[name]()
