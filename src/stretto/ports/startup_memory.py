"""Shared memory of the producer, filled by its writers before a service has answered.

StartupMemory(...)      writers fill chunks, which are kept
offered to the service  by a `ProducerIPCClient`, with InitializeConnection
`settle`                accepted: chunks are committed; over a network: chunks are sent inside
                        messages; refused: their data is lost, and counted as lost
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
    """A sealed memfd, and the arbiter of its chunks.

    Args:
        size: Size in bytes; a multiple of `page_size`.
        page_size: Size of a page in bytes.

    Raises:
        TransportError: The memory could not be allocated.
    """

    def __init__(self, size: int, page_size: int) -> None:
        self.size = size
        self.page_size = page_size
        self._fd = create_sealed_memfd(size)
        self.arbiter = _native.Arbiter.unbound(self._fd, page_size)
        self.on_refused: Callable[[_native.Arbiter], object] = lambda _arbiter: None
        """Called when a service refuses the memory: from then on nothing can be written."""

    def fileno(self) -> int:
        """Return the descriptor of the memory, owned by this object."""
        return self._fd

    def settle(
        self,
        reply: InitializeConnectionResponse,
        commit_channel: tuple[_native.SendQueue, int, int, int, int],
        *,
        scrapable: bool,
    ) -> bool:
        """Use, emulate or disable the memory according to the service's reply.

        Args:
            reply: The service's reply to InitializeConnection.
            commit_channel: The queue to the service, the service id, and the method ids of
                CommitData, RegisterTraceWriter and UnregisterTraceWriter.
            scrapable: With emulated memory, whether incomplete chunks are also sent before a flush
                is acknowledged.

        Returns:
            Whether the memory is used; False if the service refused it.
        """
        if reply.use_shmem_emulation:
            self.arbiter.emulate(scrapable)
            self.arbiter.bind(*commit_channel)
        elif reply.using_shmem_provided_by_producer:
            self.arbiter.bind(*commit_channel, reply.direct_smb_patching_supported)
        else:
            self.arbiter.disable()
            self.on_refused(self.arbiter)
            return False
        return True

    def __del__(self) -> None:
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)
