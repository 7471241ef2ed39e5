"""Builds the service's own packets for each read of a trace.

::

    every read   queued clock snapshots, synchronisation marker if due, new triggers,
                 service events, events of concurrent sessions
    first read   the initial clock snapshot before all; config, trigger of a clone, uuid,
                 extension descriptors, provenance, system info of all machines
    once         clock synchronisation with other machines

The order is defined in docs/formats/service.md, "Order of packets".
"""

from __future__ import annotations

from stretto.base.clock import BOOTTIME
from stretto.service.output.service_packets import READ_TRACING_BUFFERS_COMPLETED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from stretto import _native
    from stretto.protos.config import TraceConfig
    from stretto.service.output.clock_snapshots import ClockSnapshots
    from stretto.service.output.concurrent_sessions import ConcurrentSessions
    from stretto.service.output.lifecycle_events import LifecycleEvents
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.triggers import ReceivedTrigger, SessionTriggers

    class SessionOfPackets(Protocol):
        """The members of a session that the builder of the service's packets uses."""

        context: ServiceContext
        config_bytes: bytes
        builtin: TraceConfig.BuiltinDataSource
        triggers: SessionTriggers
        clone_trigger: ReceivedTrigger | None
        concurrent: ConcurrentSessions | None


class OwnPackets:
    """Builds the service's packets for one reader; each packet is returned once.

    Attributes:
        begun: Whether the first read was done.
    """

    def __init__(
        self,
        session: SessionOfPackets,
        buffers: Sequence[int],
        uuid: tuple[int, int],
        clocks: ClockSnapshots,
        lifecycle: LifecycleEvents,
    ) -> None:
        self._session = session
        self._buffers = buffers
        self._uuid = uuid
        self._clocks = clocks
        self._lifecycle = lifecycle
        self._synced = False
        self.begun = False

    def opening(self, readback: _native.Readback, *, sync_due: bool) -> list[bytes]:
        """Return the packets at the start of a read.

        Args:
            readback: Maps (producer, writer) to sequence ids.
            sync_due: Whether a synchronisation marker is due.
        """
        session, build = self._session, self._session.context.packets
        first, self.begun = not self.begun, True
        out = self._clock_snapshots(first)
        if sync_due:
            out.append(build.sync_marker())
        if not session.builtin.disable_trace_config:
            out += self._config_and_triggers(first)
        if first:
            out += self._first_packets(readback)
        if not session.builtin.disable_service_events:
            out += self._lifecycle.packets(build)
            self._lifecycle.clear()
        if session.concurrent:
            out += session.concurrent.take(build)
        return out + self._remote_clocks()

    def closing(self) -> list[bytes]:
        """Return the packets at the end of a pass."""
        session, context = self._session, self._session.context
        if session.builtin.disable_service_events:
            return []
        now = context.clock.boottime_ns()
        return [context.packets.service_event(now, READ_TRACING_BUFFERS_COMPLETED)]

    def _clock_snapshots(self, first: bool) -> list[bytes]:
        primary = self._session.builtin.primary_trace_clock or BOOTTIME
        snapshots = self._clocks.queued()
        self._clocks.clear()
        if first and self._clocks.initial:
            snapshots.insert(0, self._clocks.initial)
        build = self._session.context.packets
        return [build.clock_snapshot(snapshot, primary) for snapshot in snapshots]

    def _config_and_triggers(self, first: bool) -> list[bytes]:
        session, build = self._session, self._session.context.packets
        out = []
        if first:
            out.append(build.trace_config(session.config_bytes))
        if first and session.clone_trigger:
            out.append(build.trigger(session.clone_trigger, of_clone=True))
        return out + [build.trigger(trigger) for trigger in session.triggers.take_new()]

    def _first_packets(self, readback: _native.Readback) -> list[bytes]:
        session, context = self._session, self._session.context
        build = context.packets
        out = [build.trace_uuid(*self._uuid)]
        if not session.builtin.disable_extension_descriptors:
            out += [build.extension_descriptor(*each) for each in context.extension_descriptors]
        now = context.clock.boottime_ns()
        out.append(build.trace_provenance(now, [self._writers(readback, b) for b in self._buffers]))
        if not session.builtin.disable_system_info:
            out.append(build.system_info(context.system_info, context.version))
            out += [
                build.remote_system_info(relay.machine_id, relay.system_info)
                for relay in context.relays
                if relay.system_info
            ]
        return out

    def _writers(self, readback: _native.Readback, buffer_id: int) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []

        def add(producer: int, writer: int, *_: object) -> None:
            out.append((readback.sequence_id(producer, writer), producer))

        self._session.context.buffers.table.visit_writers(buffer_id, add)
        return out

    def _remote_clocks(self) -> list[bytes]:
        relays = [relay for relay in self._session.context.relays if relay.synced_clocks]
        if self._synced or not relays:
            return []
        self._synced = True
        build = self._session.context.packets
        return [build.remote_clock_sync(relay.machine_id, relay.synced_clocks) for relay in relays]
