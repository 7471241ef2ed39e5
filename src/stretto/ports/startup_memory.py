"""Shared memory of the producer's own, which is written to before any service has answered.

StartupMemory(...)      writers fill it; their chunks wait
offer, with a request   a `ProducerIPCClient` that is given it hands it to its service
`settle`                taken: chunks flow. Not shared (network): chunks go inside of
                        messages. Refused: what was written is lost, and said to be.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.memory import create_sealed_memfd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.protos.ipc import InitializeConnectionResponse


class StartupMemory:
    """A sealed memfd, and the arbiter over it.

    Args:
        size: Bytes; a multiple of `page_size`.
        page_size: Bytes of a page.

    Raises:
        TransportError: The kernel has no such memory.
    """

    __slots__ = ("_fd", "arbiter", "on_refused", "page_size", "size")

    def __init__(self, size: int, page_size: int) -> None:
        self.size = size
        self.page_size = page_size
        self._fd = create_sealed_memfd(size)
        self.arbiter = _native.Arbiter.unbound(self._fd, page_size)
        self.on_refused: Callable[[_native.Arbiter], object] = lambda _arbiter: None
        """Called when a service doesn't take it: from then on nothing can be written."""

    def fileno(self) -> int:
        """Its descriptor, which stays this object's."""
        return self._fd

    def settle(
        self,
        reply: InitializeConnectionResponse,
        way: tuple[_native.SendQueue, int, int, int, int],
        *,
        scrapable: bool,
    ) -> bool:
        """Do what the service wants with it.

        Args:
            reply: What the service says.
            way: The queue to it, and its ids: service, CommitData, RegisterTraceWriter,
                UnregisterTraceWriter.
            scrapable: See `_native.Arbiter.emulate`.

        Returns:
            False: it is of no more use.
        """
        if reply.use_shmem_emulation:
            self.arbiter.emulate(scrapable)
            self.arbiter.bind(*way)
        elif reply.using_shmem_provided_by_producer:
            self.arbiter.bind(*way, reply.direct_smb_patching_supported)
        else:
            self.arbiter.disable()
            self.on_refused(self.arbiter)
            return False
        return True

    def __del__(self) -> None:
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)
