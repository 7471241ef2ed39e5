"""Runs code as another user of this machine, in tests that run as root."""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401 – `connect` needs it, and another user may not read it
import os
from collections.abc import Iterator
from contextlib import contextmanager

ROOT_ONLY = "only root can be another user for a while"


def can_be_another_user() -> bool:
    """Return whether this process may use `as_user`."""
    return os.geteuid() == 0


@contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Run the block as another user; sockets created in the block belong to that user."""
    libc = ctypes.CDLL(None)
    libc.setfsuid(uid)
    try:
        yield
    finally:
        libc.setfsuid(os.geteuid())
