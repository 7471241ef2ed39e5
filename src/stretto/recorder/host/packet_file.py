"""Walks over the packets of a trace file, while it is written or when it is finished."""

from __future__ import annotations

import mmap
import os

STEP_BYTES = 1 << 20


class PacketFile:
    """Passes the packets of a file to `add`, a part at a time.

    Only a part of the file is mapped, because mapped pages are memory of this process.
    """

    def __init__(self) -> None:
        self._done = 0  # Size of the packets that `add` has taken, in bytes.
        self._step = STEP_BYTES

    def add(self, data: bytes | bytearray | memoryview) -> int:
        """Take the complete packets at the start of `data`; return their size in bytes."""
        raise NotImplementedError

    def add_file(self, fd: int) -> None:
        """Take the packets of a file that aren't taken yet."""
        while self.add_next(fd):
            pass

    def add_next(self, fd: int) -> bool:
        """Take the next packets of a growing file, about STEP_BYTES.

        Returns:
            False if the next packet isn't complete yet.
        """
        size = os.fstat(fd).st_size
        skip = self._done % mmap.ALLOCATIONGRANULARITY
        start = self._done - skip
        length = min(skip + self._step, size - start)
        if length <= skip:
            return False
        with (
            mmap.mmap(fd, length, prot=mmap.PROT_READ, offset=start) as mapped,
            memoryview(mapped) as view,
            view[skip:] as part,
        ):
            parsed = self.add(part)
        self._done += parsed
        self._step = STEP_BYTES if parsed else self._step * 2
        return start + length < size
