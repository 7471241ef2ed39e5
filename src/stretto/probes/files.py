"""Reads files of the kernel, without the buffers and the decoder that `open` makes."""

from __future__ import annotations

import os

READ_BYTES = 1 << 16


def read(path: str) -> bytes:
    """Return the contents of a file; empty if it can't be read.

    A file of /proc has ended when a read returns no bytes, but not when it returns few bytes.
    """
    data = b""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return data
    try:
        while part := os.read(fd, READ_BYTES):
            data += part
    except OSError:
        pass  # The process has ended, or the device refuses to be read.
    finally:
        os.close(fd)
    return data
