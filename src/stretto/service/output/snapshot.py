"""Snapshots: the current data of a running session as a complete trace."""

from __future__ import annotations

from stretto.base.errors import SessionError
from stretto.service.limits import FILE_BYTES_PER_STEP
from stretto.service.output.read_buffers import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from stretto.service.buffer_pool import BufferPool
    from stretto.service.output.read_buffers import ReadSession

    class CopiedSession(ReadSession, Protocol):
        """The members of a session that a snapshot uses."""

        def scrape(self) -> None: ...


def take_snapshot(session: CopiedSession, pool: BufferPool) -> Iterator[bytes]:
    """Copy the session's buffers and return an iterator over the trace bytes of the copy.

    Raises:
        SessionError: Not enough memory for the copy.
    """
    session.scrape()
    session.clocks.take()
    # Like a clone, the snapshot has the second half of the session's uuid.
    uuid = session.context.new_uuid()[0], session.uuid[1]
    copies = copy_buffers(session.buffers, pool)
    reader = Reader(session, copies, uuid, session.clocks.copy(), session.lifecycle.copy())
    reader.sync_due = reader.stats_due = True
    pieces = _pieces(reader, lambda: pool.free(copies))
    # Run the generator to its first `yield`, inside `try`: closing it then frees the copies.
    next(pieces)
    return pieces


def copy_buffers(originals: list[int], pool: BufferPool) -> list[int]:
    """Copy all buffers; on failure, free the copies.

    Raises:
        SessionError: Not enough memory for the copies.
    """
    copies: list[int] = []
    for original in originals:
        try:
            copies.append(pool.clone(original))
        except SessionError:
            pool.free(copies)
            raise
    return copies


def _pieces(reader: Reader, free: Callable[[], object]) -> Iterator[bytes]:
    try:
        yield b""
        more = True
        while more:
            data, more = reader.read(FILE_BYTES_PER_STEP)
            yield data
    finally:
        free()
