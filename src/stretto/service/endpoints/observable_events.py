"""Reports events of a session to its consumer (ObservableEvents).

The events that one task of the service reports are sent together. The state of a data source
instance is sent only when the state has changed.
"""

from __future__ import annotations

from stretto.protos import ipc
from stretto.service.session import data_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from stretto.service.session.data_source import DataSourceInstance
    from stretto.service.session.service_tracing_session import ServiceTracingSession
    from stretto.service.session.triggers import ReceivedTrigger

_STOPPED: Final = 1
_STARTED: Final = 2
"""ObservableEvents.DataSourceInstanceState."""

_INSTANCES: Final = 1
_ALL_STARTED: Final = 2
_CLONE_TRIGGER_HIT: Final = 4
"""ObservableEvents.Type."""

_REPORTED_STATES: Final = {
    data_source.CONFIGURED: _STOPPED,
    data_source.STARTED: _STARTED,
    data_source.STOPPED: _STOPPED,
}
"""The reported state by the instance's state; other states are not reported."""


class Observer:
    """Sends the requested types of events to one consumer."""

    def __init__(self, post: Callable[[Callable[[], object]], None]) -> None:
        """Create an observer; `post` runs a callback as a task while the consumer is connected."""
        self._post = post
        self._types = 0
        self._callback: Callable[[ipc.ObservableEvents], object] | None = None
        self._pending: list[ipc.ObservableEvents] = []
        self._all_started_sent = False

    def observe(
        self,
        types: int,
        callback: Callable[[ipc.ObservableEvents], object],
        session: ServiceTracingSession | None,
    ) -> None:
        """Send events of `types` to `callback` from now on, beginning with the current states."""
        self._types = types
        self._callback = callback
        self._pending.clear()
        for instance in session.instances if session else ():
            self.instance_changed(instance)
        if session and session.all_started:
            self.all_started()

    def forget_session(self) -> None:
        """Let the next session report again that all its data sources have started."""
        self._all_started_sent = False

    def instance_changed(self, instance: DataSourceInstance) -> None:
        """Report the new state of an instance."""
        reported = _REPORTED_STATES.get(instance.state)
        if self._types & _INSTANCES and reported is not None:
            producer_name, name = instance.label
            change = ipc.ObservableEvents.DataSourceInstanceStateChange(
                producer_name=producer_name, data_source_name=name, state=reported
            )
            self._events().instance_state_changes.append(change)

    def all_started(self) -> None:
        """Report, once, that all data sources of the session have started."""
        requested = self._types & _ALL_STARTED
        if requested and not self._all_started_sent:
            self._all_started_sent = True
            self._events().all_data_sources_started = True

    def clone_trigger_hit(self, session_id: int, trigger: ReceivedTrigger) -> None:
        """Report a trigger of mode CLONE_SNAPSHOT."""
        if not self._types & _CLONE_TRIGGER_HIT:
            return
        events = self._events()
        if events.clone_trigger_hit is not None:  # A message can contain only one trigger.
            events = self._add()
        events.clone_trigger_hit = ipc.ObservableEvents.CloneTriggerHit(
            tracing_session_id=session_id,
            trigger_name=trigger.name,
            producer_name=trigger.producer_name,
            producer_uid=trigger.uid,
            boot_time_ns=trigger.boot_time_ns,
            trigger_delay_ms=trigger.stop_delay_ms,
        )

    def _events(self) -> ipc.ObservableEvents:
        return self._pending[-1] if self._pending else self._add()

    def _add(self) -> ipc.ObservableEvents:
        if not self._pending:
            self._post(self._send)
        events = ipc.ObservableEvents()
        self._pending.append(events)
        return events

    def _send(self) -> None:
        pending, self._pending = self._pending, []
        for events in pending:
            if self._callback:
                self._callback(events)
