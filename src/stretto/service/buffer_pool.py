"""The trace buffers of a service: their global ids and their memory."""

from __future__ import annotations

from stretto import _native
from stretto.base.errors import SessionError
from stretto.base.ids import MAX_BUFFER_ID
from stretto.service.id_allocator import IdAllocator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stretto.protos.config import TraceConfig


class BufferPool:
    """Creates, copies and frees buffers. A failed call frees the memory that it has allocated."""

    def __init__(self) -> None:
        self.table = _native.BufferTable()
        self.ids = IdAllocator(MAX_BUFFER_ID)

    def create_all(self, config: TraceConfig, ring_fds: Mapping[int, int]) -> list[int]:
        """Create the buffers of a session.

        Args:
            config: The session's config.
            ring_fds: Files that hold the memory of buffers, by buffer index; owned by the caller.

        Raises:
            SessionError: Not enough memory.
        """
        made: list[int] = []
        for index, buffer in enumerate(config.buffers):
            try:
                made.append(self.create(buffer, ring_fds.get(index, -1)))
            except SessionError:
                self.free(made)
                raise
        return made

    def create(self, buffer: TraceConfig.BufferConfig, fd: int = -1) -> int:
        """Create a buffer and return its id.

        Raises:
            SessionError: Not enough memory.
        """
        policy = buffer.fill_policy or _native.RING

        def make(ident: int) -> None:
            self.table.create(ident, buffer.size_kb * 1024, policy, fd)

        return self._new(make, f"A buffer of {buffer.size_kb} KiB can't be made")

    def clone(self, original: int) -> int:
        """Copy a buffer, with its read position, and return the id of the copy.

        Raises:
            SessionError: Not enough memory.
        """
        return self._new(lambda ident: self.table.clone(original, ident), "A copy can't be made")

    def _new(self, make: Callable[[int], None], failure: str) -> int:
        ident = self.ids.allocate()
        try:
            make(ident)
        except (MemoryError, OSError, ValueError) as error:
            self.ids.free(ident)
            raise SessionError(
                f"{failure}: {str(error) or 'out of memory'}; use fewer or smaller buffers."
            ) from error
        return ident

    def free(self, idents: Iterable[int]) -> None:
        """Free buffers and their ids."""
        for ident in idents:
            self.table.remove(ident)
            self.ids.free(ident)
