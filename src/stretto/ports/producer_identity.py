"""The identity of a producer, and its requirements for shared memory.

This is a plain class, because programs that record themselves import it: `dataclasses` and
`typing` take longer to import than the service.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class ProducerIdentity:
    """The identity of a producer, fixed when it connects.

    Args:
        name: Name of the producer, chosen by the producer itself.
        uid: User id of the producer's process, from the kernel.
        pid: Process id, from the kernel; 0 if unknown.
        machine_id: Id of the producer's machine; 0 for the machine of the service.
        machine_name: Name of the producer's machine.
        sdk_version: Version of the producer's tracing library, sent by the producer.
        in_process: Whether its trace writers run in the service's process; the memory is private.
        shm_emulation: Whether its chunks arrive in messages, because no memory can be shared.
        smb_scraping: Whether the service may read chunks that the producer has not committed.
        page_size_hint: Requested page size in bytes; 0 for the service's default.
        shm_size_hint: Requested shared memory in bytes; 0 for the service's default.
    """

    __slots__ = (
        "in_process", "machine_id", "machine_name", "name", "page_size_hint", "pid", "sdk_version",
        "shm_emulation", "shm_size_hint", "smb_scraping", "uid",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        uid: int,
        pid: int = 0,
        machine_id: int = 0,
        machine_name: str = "",
        sdk_version: str = "",
        in_process: bool = False,
        shm_emulation: bool = False,
        smb_scraping: bool = True,
        page_size_hint: int = 0,
        shm_size_hint: int = 0,
    ) -> None:
        self.name: Final = name
        self.uid: Final = uid
        self.pid: Final = pid
        self.machine_id: Final = machine_id
        self.machine_name: Final = machine_name
        self.sdk_version: Final = sdk_version
        self.in_process: Final = in_process
        self.shm_emulation: Final = shm_emulation
        self.smb_scraping: Final = smb_scraping
        self.page_size_hint: Final = page_size_hint
        self.shm_size_hint: Final = shm_size_hint

    @property
    def is_remote(self) -> bool:
        """Whether the producer can't share memory with the service."""
        return self.shm_emulation or (self.machine_id != 0 and not self.in_process)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerIdentity) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"ProducerIdentity({self.name!r}, uid={self.uid}, pid={self.pid})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)
