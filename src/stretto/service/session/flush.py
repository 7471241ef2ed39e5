"""Flushes of one session: each waits for its producers, up to a timeout.

::

    start --> flush(id) to each producer --> ack(id) of each, or disconnect -> done(True)
                                         `-> timeout ----------------------> done(False)

Ids ascend, and an ack acknowledges every flush up to its id: a slow producer may acknowledge
several flushes at once.
"""

from __future__ import annotations

from stretto.service import limits
from stretto.service.output import service_packets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Final, Protocol

    from stretto.protos.config import TraceConfig
    from stretto.service.output.lifecycle_events import LifecycleEvents
    from stretto.service.service_context import ServiceContext
    from stretto.service.session.instances import Instances
    from stretto.service.session.session_producer import SessionProducer
    from stretto.service.timers import Timers

    class FlushedSession(Protocol):
        """The members of a session that its flushes use."""

        context: ServiceContext
        config: TraceConfig
        instances: Instances
        lifecycle: LifecycleEvents
        timers: Timers

        @property
        def started(self) -> bool: ...
        def note(self, event: int) -> None: ...
        def scrape(self) -> None: ...


# FlushFlags: the initiator in bits 4-7, the reason in bits 0-3.
_REASON_MASK: Final = 0xF
_REASON_TRACE_STOP: Final = 2
_REASON_TRACE_CLONE: Final = 3
PERIODIC: Final = 0x11
TRACE_STOP: Final = 0x12


class _PendingFlush:
    __slots__ = ("done", "flags", "waiting")

    def __init__(
        self, waiting: set[SessionProducer], flags: int, done: Callable[[bool], object]
    ) -> None:
        self.waiting = waiting
        self.flags = flags
        self.done = done


class Flushes:
    """The pending flushes of a session, and counters of all its flushes."""

    def __init__(self, session: FlushedSession) -> None:
        self._session = session
        self._pending: dict[int, _PendingFlush] = {}
        self._unanswered: dict[SessionProducer, dict[int, None]] = {}
        """Pending flush ids of each producer, in ascending order."""
        self.requested = 0
        self.succeeded = 0
        self.failed = 0

    def start(
        self,
        timeout_ms: int,
        flags: int,
        done: Callable[[bool], object],
        buffers: Collection[int] | None = None,
    ) -> None:
        """Request a flush from all producers of the session, then call `done`.

        A request is refused, and not counted, if the session is not started or has ended, or too
        many flushes are pending.

        Args:
            timeout_ms: Timeout in ms; 0 for the session's default.
            flags: FlushFlags, sent to the producers.
            done: Called once, from a task; the argument is True if all producers answered in time.
            buffers: Only data sources with these target buffers are flushed; None for all.
        """
        session = self._session
        session.lifecycle.add(service_packets.FLUSH_STARTED)
        if not session.started or len(self._pending) >= limits.MAX_PENDING_FLUSHES:
            session.context.task_runner.post(lambda: done(False))
            return
        self.requested += 1
        request_id = session.context.next_flush_id()
        targets = self._targets(buffers)
        self._pending[request_id] = _PendingFlush(set(targets), flags, done)
        timeout = self._timeout(timeout_ms) if targets else 0
        session.timers.once(_timer(request_id), timeout, lambda: self._finish([request_id]))
        for producer, instance_ids in targets.items():
            self._unanswered.setdefault(producer, {})[request_id] = None
            producer.flush(request_id, instance_ids, flags)

    def start_periodic(self, done: Callable[[bool], object]) -> None:
        """Flush for a timer, then call `done`; only call it if the data sources stop already.

        A data source that stops commits its data without a flush, so nothing has failed.
        """
        if self._session.started:
            self.start(0, PERIODIC, done)
        else:
            done(False)

    def _targets(self, buffers: Collection[int] | None) -> dict[SessionProducer, list[int]]:
        targets: dict[SessionProducer, list[int]] = {}
        for instance in self._session.instances:
            if buffers is not None and instance.config.target_buffer not in buffers:
                continue
            if not instance.source.header.no_flush:
                targets.setdefault(instance.producer, []).append(instance.instance_id)
            elif instance.producer.scrapes_itself:
                targets.setdefault(instance.producer, [])
        return targets

    def copy_counts_to(self, other: Flushes) -> None:
        """Copy the counters to the flushes of a clone."""
        other.requested = self.requested
        other.succeeded = self.succeeded
        other.failed = self.failed

    def _timeout(self, timeout_ms: int) -> int:
        configured = self._session.config.flush_timeout_ms
        return timeout_ms or configured or limits.DEFAULT_FLUSH_TIMEOUT_MS

    def ack(self, producer: SessionProducer, request_id: int) -> None:
        """Handle the ack of a producer for all flushes up to `request_id`."""
        unanswered = self._unanswered.get(producer, {})
        answered = []
        for ident in unanswered:
            if ident > request_id:
                break
            answered.append(ident)
        self._answered(producer, answered)

    def producer_gone(self, producer: SessionProducer) -> None:
        """Stop waiting for a disconnected producer, whose chunks were scraped already."""
        self._answered(producer, list(self._unanswered.get(producer, ())))

    def _answered(self, producer: SessionProducer, request_ids: list[int]) -> None:
        for request_id in request_ids:
            self._pending[request_id].waiting.remove(producer)
            self._forget(producer, request_id)
        self._finish([each for each in request_ids if not self._pending[each].waiting])

    def _forget(self, producer: SessionProducer, request_id: int) -> None:
        unanswered = self._unanswered[producer]
        del unanswered[request_id]
        if not unanswered:
            del self._unanswered[producer]

    def _finish(self, request_ids: list[int]) -> None:
        """End flushes; scrape uncommitted chunks only once, not once for each flush."""
        session = self._session
        if request_ids:
            session.scrape()
        for request_id in request_ids:
            flush = self._pending.pop(request_id)
            session.timers.cancel(_timer(request_id))
            for producer in flush.waiting:
                self._forget(producer, request_id)
            success = not flush.waiting
            self.succeeded += success
            self.failed += not success
            self._note_slow(flush)
            session.note(service_packets.ALL_DATA_SOURCES_FLUSHED)
            self._report(flush, success=success)

    def _report(self, flush: _PendingFlush, *, success: bool) -> None:
        self._session.context.task_runner.post(lambda: flush.done(success))

    def _note_slow(self, flush: _PendingFlush) -> None:
        reason = flush.flags & _REASON_MASK
        if flush.waiting and reason in (_REASON_TRACE_STOP, _REASON_TRACE_CLONE):
            slow = [
                instance.label
                for instance in self._session.instances
                if instance.producer in flush.waiting
            ]
            self._session.lifecycle.add(service_packets.LAST_FLUSH_SLOW_DATA_SOURCES, slow)

    def abandon(self) -> None:
        """Fail all pending flushes, because the session is freed."""
        for request_id, flush in self._pending.items():
            self._session.timers.cancel(_timer(request_id))
            self._report(flush, success=False)
        self._pending.clear()
        self._unanswered.clear()


def _timer(request_id: int) -> str:
    return f"flush {request_id}"
