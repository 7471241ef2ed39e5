"""Valid messages, of which tests make invalid ones, and checks for every decoded message."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fidl_support.vectors.groups import GROUPS
from stretto_fidl import codec
from stretto_fidl.codec.handle import EVENT, SAME_RIGHTS, Handle

SEEDS = [
    (case.type, case.data, len(case.handles), case.wire)
    for found in GROUPS.values()
    for case in found
    if case.data is not None and len(case.data) <= 4096
]
WORDS = [0, 1, 8, 16, 32, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 48, 1 << 63, (1 << 64) - 1]


@contextmanager
def open_handles(count: int) -> Iterator[list[Handle]]:
    found = [Handle(os.open(os.devnull, os.O_RDONLY), EVENT, SAME_RIGHTS) for _ in range(count)]
    try:
        yield found
    finally:
        for handle in found:
            handle.close()


def check(cls: Any, message: bytes, handles: list[Handle], wire: int = codec.V2) -> None:
    """Check that decoding raises WireError, or that the value encodes to the same message."""
    try:
        value = codec.decode(cls, message, handles, wire=wire)
    except codec.WireError as error:
        assert not any(handle.is_open for handle in handles)
        assert error.offset is None or 0 <= error.offset <= len(message)  # noqa: PT017
        return
    try:
        again, dispositions = codec.encode(value)
    except codec.WireError as error:
        assert error.code == "FLEXIBLE_UNION_UNKNOWN_FIELD"  # noqa: PT017
        return
    kept = [handle for handle in handles if handle.is_open]
    assert [disposition.handle for disposition in dispositions] == kept
    if "nan" in repr(value):
        return  # Values with NaN can't be compared, because NaN isn't equal to itself.
    assert codec.decode(cls, again, kept) == value
    if wire == codec.V2 and len(again) == len(message):
        assert again == message or _drops_inline(value)


def _drops_inline(value: Any) -> bool:
    """Return whether the value may contain a table.

    Encoding writes zeros for the inlined unknown members of a table, so the bytes may differ.
    """
    return "Table(" in repr(value) or "Options(" in repr(value)
