"""Clones a session: another consumer gets a copy of its data.

::

    clone --> flush of the transferred buffers --> these are moved     --+
          `-> flush of the other buffers       --> these are copied    --+--> session

The source continues unchanged. If it ends before the flushes are done, the clone fails.
"""

from __future__ import annotations

import os
from functools import partial

from stretto.base.errors import SessionError
from stretto.protos.ipc import CloneSessionRequest, CloneSessionResponse
from stretto.service.output.file_drain import FileDrain
from stretto.service.output.output_file import OutputFile
from stretto.service.output.service_packets import BUFFER_CLONED, CLONE_STARTED, TRACING_DISABLED
from stretto.service.output.trace_stats import FINAL_FLUSH_FAILED, FINAL_FLUSH_SUCCEEDED
from stretto.service.session.triggers import ReceivedTrigger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final, Protocol

    from stretto.service.session.service_tracing_session import ServiceTracingSession
    from stretto.service.session.session_owner import SessionOwner
    from stretto.service.session.session_registry import SessionRegistry

    class CloneOwner(SessionOwner, Protocol):
        """The members of `ConsumerEndpoint` that cloning uses."""

        def adopt(self, session: ServiceTracingSession) -> None: ...


BUGREPORT_SESSION_ID: Final = (1 << 64) - 1
"""Selects the session with the highest bugreport_score."""

_FLUSH_FOR_CLONE: Final = 0x13
_FLUSH_FOR_BUGREPORT: Final = 0x113


def start_clone(
    sessions: SessionRegistry,
    consumer: CloneOwner,
    request: CloneSessionRequest,
    fd: int | None,
    callback: Callable[[CloneSessionResponse], object],
) -> None:
    """Start cloning; the result follows after the flushes.

    Args:
        sessions: The registry of both sessions.
        consumer: The owner of the clone.
        request: Selects the session to clone.
        fd: Output file for a clone of a session that writes a file; owned by the caller.
        callback: Called once with the result.
    """
    try:
        source = _find_source(sessions, consumer, request)
        PendingClone(sessions, consumer, source, request, fd=fd, callback=callback).start()
    except SessionError as error:
        callback(CloneSessionResponse(success=False, error=str(error)))


def _find_source(
    sessions: SessionRegistry, consumer: CloneOwner, request: CloneSessionRequest
) -> ServiceTracingSession:
    if consumer.has_session or consumer.pending_clone is not None:
        raise SessionError("This consumer has a session: free its buffers before it clones one.")
    source = _select(sessions.all(), request)
    if source is None and request.session_id == BUGREPORT_SESSION_ID:
        raise SessionError("No tracing sessions eligible for bugreport found")
    if source is None:
        raise SessionError("There is no such session to clone: it has ended, or never existed.")
    if not source.may_be_cloned_by(consumer.uid):
        raise SessionError(
            f"Session {source.session_id} is another user's: only root may clone it."
        )
    return source


def _select(
    sessions: list[ServiceTracingSession], request: CloneSessionRequest
) -> ServiceTracingSession | None:
    if request.unique_session_name:
        named = [
            each
            for each in sessions
            if each.config.unique_session_name == request.unique_session_name and not each.is_clone
        ]
        return named[0] if named else None
    if request.session_id == BUGREPORT_SESSION_ID:
        scored = [each for each in sessions if each.started and each.config.bugreport_score > 0]
        return max(scored, key=lambda each: each.config.bugreport_score, default=None)
    return next((each for each in sessions if each.session_id == request.session_id), None)


class PendingClone:
    """A clone that waits for the flushes of its source."""

    def __init__(
        self,
        sessions: SessionRegistry,
        consumer: CloneOwner,
        source: ServiceTracingSession,
        request: CloneSessionRequest,
        *,
        fd: int | None,
        callback: Callable[[CloneSessionResponse], object],
    ) -> None:
        self._sessions = sessions
        self._context = sessions.context
        self._consumer = consumer
        self._source = source
        self._request = request
        self._callback: Callable[[CloneSessionResponse], object] | None = callback
        bugreport = request.session_id == BUGREPORT_SESSION_ID
        self._skip_filter = request.skip_trace_filter or bugreport
        bugreport = bugreport or request.for_bugreport
        self._flags = _FLUSH_FOR_BUGREPORT if bugreport else _FLUSH_FOR_CLONE
        self._copies_file = source.writes_file
        self._fd = fd
        self._copy: Iterator[bytes] = iter(())  # The copy of the source's file, in pieces.
        self._buffers: dict[int, int] = {}  # Global ids of the clone's buffers, by index.
        self._cloned_at: list[tuple[int, int]] = []  # (boottime in ns, index of buffer)
        self._started_at = 0
        self._waiting = 0
        self._flushed = True

    def start(self) -> None:
        """Clear buffers with `clear_before_clone`, and start the flushes.

        Raises:
            SessionError: The file can't be used, or memory for a buffer is missing.
        """
        source = self._source
        self._fd = self._open_file()
        self._started_at = self._context.clock.boottime_ns()
        self._clear_buffers()
        groups = self._groups()  # As in Perfetto, producers are flushed even for an empty group.
        self._waiting = len(groups)
        source.clones.append(self)
        self._consumer.pending_clone = self
        for group in groups:
            source.flushes.start(
                0,
                self._flags,
                partial(self._on_flushed, group),
                buffers={source.buffers[index] for index in group},
            )

    def _clear_buffers(self) -> None:
        try:
            for index, buffer in enumerate(self._source.config.buffers):
                if buffer.clear_before_clone:
                    self._context.buffers.free([self._take(index)])
        except SessionError:
            self._close_file()
            raise

    def _close_file(self) -> None:
        self._copy = iter(())
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _open_file(self) -> int | None:
        if not self._copies_file:
            return None
        if self._fd is None:
            raise SessionError("This session writes into a file: pass a descriptor for its copy.")
        assert self._source.drain is not None  # The source writes into a file.
        self._context.file_threads.check()
        fd = os.dup(self._fd)
        try:
            self._copy = self._source.drain.copy()
        except OSError as error:
            os.close(fd)
            raise SessionError(
                f"The session's file can't be copied ({error.strerror}): it must be a regular file."
            ) from error
        return fd

    def _groups(self) -> tuple[list[int], list[int]]:
        moved: list[int] = []
        copied: list[int] = []
        for index, buffer in enumerate(self._source.config.buffers):
            (moved if buffer.transfer_on_clone else copied).append(index)
        return moved, copied

    def _take(self, index: int) -> int:
        """Replace a buffer of the source by an empty buffer; return the full buffer."""
        pool, source = self._context.buffers, self._source
        taken = pool.create(source.config.buffers[index])
        pool.table.exchange(source.buffers[index], taken)
        for producer in self._sessions.producers():
            producer.introduce_to(source.buffers[index])
        return taken

    def _on_flushed(self, group: list[int], success: bool) -> None:
        if self._callback is None:  # The clone has failed already.
            return
        self._flushed = self._flushed and success
        self._waiting -= 1
        try:
            for index in group:
                self._buffers[index] = self._snapshot(index)
                self._cloned_at.append((self._context.clock.boottime_ns(), index))
        except SessionError as error:
            self.fail(str(error))
            return
        if not self._waiting:
            self._finish()

    def _snapshot(self, index: int) -> int:
        if self._source.config.buffers[index].transfer_on_clone:
            return self._take(index)
        return self._context.buffers.clone(self._source.buffers[index])

    def fail(self, error: str) -> None:
        """Fail the clone with `error`. No effect if it is complete."""
        callback = self._leave()
        self._context.buffers.free(self._buffers.values())
        self._buffers.clear()
        self._close_file()
        if callback:
            callback(CloneSessionResponse(success=False, error=error))

    def _leave(self) -> Callable[[CloneSessionResponse], object] | None:
        callback, self._callback = self._callback, None
        if callback:
            self._source.clones.remove(self)
            self._consumer.pending_clone = None
        return callback

    def _finish(self) -> None:
        callback = self._leave()
        if callback is None:
            return
        if self._consumer.has_session:
            self.fail("")
            callback(CloneSessionResponse(success=False, error="This consumer has a session now."))
            return
        clone = self._make_session()
        self._consumer.adopt(clone)
        if clone.drain:
            clone.write_file(lambda: self._answer(clone, callback))
        else:
            self._answer(clone, callback)

    def _answer(
        self, clone: ServiceTracingSession, callback: Callable[[CloneSessionResponse], object]
    ) -> None:
        if clone.drain and clone.drain.error:
            callback(CloneSessionResponse(success=False, error=clone.drain.error))
            clone.free()
        else:
            callback(self._success(clone))

    def _success(self, clone: ServiceTracingSession) -> CloneSessionResponse:
        response = CloneSessionResponse(success=True, was_write_into_file=self._copies_file)
        msb, lsb = clone.uuid
        response.uuid_msb, response.uuid_lsb = _signed(msb), _signed(lsb)
        return response

    def _make_session(self) -> ServiceTracingSession:
        source = self._source
        fd, self._fd = self._fd, None
        clone = self._sessions.add(
            self._consumer,
            source.compiled,
            config_bytes=source.config_bytes,
            buffers=[self._buffers[index] for index in sorted(self._buffers)],
            output_fd=None,
            uuid=(self._context.new_uuid()[0], source.uuid[1]),
        )
        clone.become_clone(self._copy_state)
        if fd is not None:
            clone.drain = FileDrain(clone, OutputFile(fd, interruptible=True))
            clone.drain.begin_with(self._copy)
        return clone

    def _copy_state(self, clone: ServiceTracingSession) -> None:
        source = self._source
        source.triggers.hand_over_to(clone.triggers)
        source.flushes.copy_counts_to(clone.flushes)
        clone.clocks = source.clocks.copy()
        if self._copies_file and source.reader.has_begun:
            clone.clocks.initial = None  # The copied file contains the initial clock snapshot.
        clone.lifecycle = source.lifecycle.copy()
        clone.lifecycle.add_at(self._started_at, CLONE_STARTED)
        for time_ns, index in self._cloned_at:
            clone.lifecycle.add_at(time_ns, BUFFER_CLONED, index)
        clone.lifecycle.add(TRACING_DISABLED)
        clone.final_flush_outcome = FINAL_FLUSH_SUCCEEDED if self._flushed else FINAL_FLUSH_FAILED
        clone.clone_trigger = self._trigger()
        clone.reader = source.reader.for_clone(clone, skip_filter=self._skip_filter)

    def _trigger(self) -> ReceivedTrigger | None:
        request = self._request
        if not request.clone_trigger_name:
            return None
        return ReceivedTrigger(
            request.clone_trigger_name,
            request.clone_trigger_producer_name,
            request.clone_trigger_trusted_producer_uid,
            request.clone_trigger_boot_time_ns,
            request.clone_trigger_delay_ms,
        )


def _signed(value: int) -> int:
    value &= (1 << 64) - 1  # A value from a config may be negative.
    return value - (1 << 64) if value >> 63 else value
