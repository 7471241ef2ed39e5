"""Formats lines of the summary that are read from the trace, if it is small."""

from __future__ import annotations

import os

from stretto.base.errors import DecodeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

LARGEST_BYTES = 32 << 20
"""Of a larger trace these lines are left out: reading it would take longer than a second."""


def lines_of_trace(path: str, read: Callable[[BinaryIO], list[str]]) -> list[str]:
    """Return the lines that a function makes of a trace.

    Args:
        path: the path of the trace; "" for a pipe.
        read: gets the open file, and returns the lines.

    Returns:
        No line if the trace is too large or can't be read.
    """
    try:
        if not path or os.path.getsize(path) > LARGEST_BYTES:
            return []
        with open(path, "rb") as file:
            return read(file)
    except (OSError, DecodeError):
        return []
