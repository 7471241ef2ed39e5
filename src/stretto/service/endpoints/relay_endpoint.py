"""The service's endpoint for a relay: stores the clocks and the system of another machine.

::

    relay --SyncClock(PING)-->  our clocks are read at once      pair 1
          --SyncClock(UPDATE)-> our clocks are read again        pair 2
          ... every 30 s; the five newest pairs are kept
"""

from __future__ import annotations

from stretto.base.c_modules import deque
from stretto.service.limits import MAX_SYNCED_CLOCKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.base.clock import Clock
    from stretto.service.output.clock_snapshots import Snapshot


class RelayEndpoint:
    """Implements `ports.endpoints.RelayEndpoint` for one relay.

    Attributes:
        machine_id: Id of the relay's machine.
        system_info: The machine's encoded SystemInfo; b"" until it is received.
        synced_clocks: Pairs (clocks of the relay's machine, clocks of this machine at arrival),
            oldest first.
    """

    def __init__(
        self, clock: Clock, machine_id: int, on_disconnect: Callable[[RelayEndpoint], object]
    ) -> None:
        self._clock = clock
        self._on_disconnect = on_disconnect
        self.machine_id = machine_id
        self.system_info = b""
        self.synced_clocks: deque[tuple[Snapshot, Snapshot]] = deque(maxlen=MAX_SYNCED_CLOCKS)

    def init_relay(self, system_info: bytes) -> None:
        """Store the encoded SystemInfo of the other machine."""
        self.system_info = system_info

    def sync_clock(self, clocks: Sequence[tuple[int, int]], *, update: bool) -> None:
        """Store the other machine's clocks as (id, ns), with this machine's clocks read now.

        Args:
            clocks: The clocks as the other machine read them just before sending.
            update: Whether the call is the second half of an exchange. The argument isn't stored,
                because readers of a trace distinguish the halves by their order.
        """
        del update
        self.synced_clocks.append((list(clocks), self._clock.snapshot()))

    def disconnect(self) -> None:
        """Remove the relay, because its clocks are no longer valid."""
        self._on_disconnect(self)
