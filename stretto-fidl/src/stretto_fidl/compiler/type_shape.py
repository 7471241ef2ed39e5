"""The sizes of a type on the wire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class TypeShape:
    """The sizes of a type, in bytes. Counts saturate at `shapes.UNBOUNDED`.

    Attributes:
        inline_size: The size of the inline part.
        alignment: The alignment of the inline part.
        depth: The largest number of steps to an out-of-line object.
        max_handles: The largest number of handles.
        max_out_of_line: The largest number of bytes out of line.
        has_padding: Whether some bytes are padding.
        has_flexible_envelope: Whether a value, or a part of it at any depth, may hold unknown
            members.
    """

    inline_size: int
    alignment: int
    depth: int = 0
    max_handles: int = 0
    max_out_of_line: int = 0
    has_padding: bool = False
    has_flexible_envelope: bool = False
