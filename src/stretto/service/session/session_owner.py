"""The interface through which sessions use their consumers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from stretto.service.session.data_source import DataSourceInstance
    from stretto.service.session.triggers import ReceivedTrigger

    class SessionObserver(Protocol):
        """Reports events of a session to its consumer."""

        def instance_changed(self, instance: DataSourceInstance) -> None: ...
        def all_started(self) -> None: ...
        def clone_trigger_hit(self, session_id: int, trigger: ReceivedTrigger) -> None: ...

    class UnfinishedClone(Protocol):
        """A clone that is waiting for flushes of its source."""

        def fail(self, error: str) -> None: ...

    class SessionOwner(Protocol):
        """The members of a consumer that its session uses; implemented by `ConsumerEndpoint`."""

        uid: int
        pending_clone: UnfinishedClone | None

        @property
        def observer(self) -> SessionObserver: ...
        @property
        def has_session(self) -> bool: ...
        def on_tracing_disabled(self, error: str) -> None: ...
        def forget_session(self) -> None: ...
