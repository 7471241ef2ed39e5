"""A copy of a running session, as a whole trace of its own."""

from __future__ import annotations

from stretto.base.errors import SessionError
from stretto.service.limits import FILE_BYTES_PER_STEP
from stretto.service.read_buffers import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto.service.id_allocator import IdAllocator
    from stretto.service.tracing_session import TracingSession


def take_snapshot(session: TracingSession, buffer_ids: IdAllocator) -> Iterator[bytes]:
    """Copy the session's buffers now and return an iterator over the copy's trace bytes.

    Raises:
        SessionError: There is no memory for the copy.
    """
    session.scrape()
    session.clocks.take()
    # The halves as for a clone: a name of its own, and in the second half that of the origin.
    uuid = session.service.new_uuid()[0], session.uuid[1]
    copies = _copy_buffers(session, buffer_ids)
    reader = Reader(session, copies, uuid, session.clocks.copy(), session.lifecycle.copy())
    reader.sync_due = reader.stats_due = True
    pieces = _pieces(reader, lambda: _free(session, copies, buffer_ids))
    next(pieces)  # Enters its `try`: from here on the copies are freed whatever happens.
    return pieces


def _copy_buffers(session: TracingSession, buffer_ids: IdAllocator) -> list[int]:
    copies: list[int] = []
    for original in session.buffers:
        ident = buffer_ids.allocate()
        try:
            session.service.table.clone(original, ident)
        except (MemoryError, OSError, ValueError) as error:
            buffer_ids.free(ident)
            _free(session, copies, buffer_ids)
            raise SessionError(
                f"A snapshot can't be taken: {str(error) or 'out of memory'}; use smaller buffers."
            ) from error
        copies.append(ident)
    return copies


def _free(session: TracingSession, copies: list[int], buffer_ids: IdAllocator) -> None:
    for ident in copies:
        session.service.table.remove(ident)
        buffer_ids.free(ident)


def _pieces(reader: Reader, free: Callable[[], object]) -> Iterator[bytes]:
    try:
        yield b""
        more = True
        while more:
            data, more = reader.read(FILE_BYTES_PER_STEP)
            yield data
    finally:
        free()
