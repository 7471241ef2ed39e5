"""`stretto.connect()`: makes the program a producer of the machine's tracing service.

From then on sessions of other processes (`stretto trace`, the Perfetto UI) record it whenever
they like, and it costs nothing while none does. A service that isn't there is waited for, one
that went away too; children of a fork connect by themselves.

A session hears of the program once it has connected. `stretto.setup_startup_tracing()`, or the
name of a config file in `STRETTO_STARTUP_CONFIG`, has it record before (`client.startup_tracing`).
"""

from __future__ import annotations

import atexit
import os

from stretto import _sessions  # noqa: F401  # puts the client together
from stretto.base.socket_names import producer_socket
from stretto.client import fork
from stretto.client.safe_call import call_safely
from stretto.client.tracing import tracing
from stretto.client.track_event import builtin_categories, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stretto.backends.always_on import AlwaysOnBackend
    from stretto.backends.system import SystemBackend

__all__ = ["Connection", "activate_triggers", "connect", "disconnect"]

BACKEND = "system"
STARTUP_CONFIG = "STRETTO_STARTUP_CONFIG"


class Connection:
    """The connection of this process; `connect` makes it."""

    __slots__ = ("_address", "_backend")

    def __init__(self) -> None:
        self._address = producer_socket()
        self._backend: AlwaysOnBackend | SystemBackend | None = None

    @property
    def connected(self) -> bool:
        """The service hears of this process, now."""
        return self._backend is not None and self._backend.connected

    @property
    def problem(self) -> str:
        """Why it isn't connected; empty while it is, or hasn't been tried."""
        return "" if self._backend is None else self._backend.problem

    def disconnect(self) -> None:
        """End it: sessions that run go on without this process. Again: harmless."""
        if _active.get(BACKEND) is self:
            disconnect()

    # --- for this module

    def start(self, prepare: Callable[[AlwaysOnBackend], object]) -> None:
        # Now, not in the middle of the first session: our imports are none of its events.
        builtin_categories.load_all()
        fork.after_in_child.append(self.start_backend)
        atexit.register(disconnect)
        self.start_backend(prepare)

    def start_backend(self, prepare: Callable[[AlwaysOnBackend], object] | None = None) -> None:
        from stretto.backends.always_on import AlwaysOnBackend
        from stretto.backends.system import SystemBackend

        before = tracing.connected(BACKEND)
        if isinstance(before, SystemBackend):
            if before.lasting:  # a recorder's: two would record everything twice
                self._backend = before
                return
            before.close()  # of a session that this process has started
            tracing.forget(BACKEND)
        self._backend = AlwaysOnBackend(self._address, process.process_name(), prepare)
        tracing.connect(BACKEND, self._backend)

    def prepare(self, prepare: Callable[[AlwaysOnBackend], object]) -> None:
        """Call that with the backend, unless that is a recorder's."""
        from stretto.backends.always_on import AlwaysOnBackend

        if isinstance(self._backend, AlwaysOnBackend):
            prepare(self._backend)

    def stop(self) -> None:
        fork.after_in_child.remove(self.start_backend)
        atexit.unregister(disconnect)
        if self._backend is not None and not self._backend.lasting:
            self._backend.close()
            tracing.forget(BACKEND)


_active: dict[str, Connection] = {}


def connect() -> Connection:
    """Have sessions from outside record this program, for as long as it lives.

    The service is the one at `PERFETTO_PRODUCER_SOCK_NAME`, or at Perfetto's default path. If
    there is none yet, it is waited for in the background. If `STRETTO_STARTUP_CONFIG` names the
    file of a trace config, it is as if `setup_startup_tracing` were called with that.

    Returns:
        The connection, at once; the same one every time.
    """
    return _connect(_set_up_from_environment)


def _set_up_from_environment(backend: AlwaysOnBackend) -> None:
    if path := os.environ.get(STARTUP_CONFIG):
        from stretto import _startup

        call_safely(_startup.set_up_from_file, backend, path)


def connect_after(prepare: Callable[[AlwaysOnBackend], object]) -> None:
    """Connect, and prepare startup tracing: before, if there is no connection yet."""
    connected = _active.get(BACKEND)
    connection = _connect(prepare)
    if connection is connected:
        connection.prepare(prepare)


def _connect(prepare: Callable[[AlwaysOnBackend], object]) -> Connection:
    this = Connection()
    winner = _active.setdefault(BACKEND, this)
    if winner is this:
        this.start(prepare)
    return winner


def disconnect() -> None:
    """Undo `connect`; harmless where there is no connection."""
    connection = _active.pop(BACKEND, None)
    if connection is not None:
        connection.stop()


def activate_triggers(names: Iterable[str], *, ttl_ms: float = 0) -> None:
    """Fire triggers: sessions that name one start, stop, or are copied (`trigger_config`).

    They go to every service that this program is connected to (`connect`, a session of its own, a
    recorder); what a service makes of them it doesn't say.

    Args:
        names: of the triggers.
        ttl_ms: how long to keep them for a service that isn't there yet; 0: not at all.

    Raises:
        TypeError: `names` is a single str.
    """
    if isinstance(names, str):
        raise TypeError(f"activate_triggers takes several names: write [{names!r}]")
    tracing.activate_triggers(list(names), ttl_ms)
