"""Finds the line of an instruction in the line table of a code object, `co_linetable`.

    entry   1 kkkk nnn | ...      kind k, for n + 1 units of two bytes of instructions
    kind    0 to 9     one byte follows, same line
            10 to 12   two bytes follow, k - 10 lines further
            13         the lines further, as a signed varint
            14         the same, and three varints
            15         no line

A varint has 6 bits in each byte, the lowest first, and bit 6 set if another byte follows. Source:
Objects/locations.md of CPython (InternalDocs/code_objects.md since 3.14).
"""

from __future__ import annotations

_SHORT, _ONE_LINE, _NO_COLUMNS, _LONG, _NONE = 9, 12, 13, 14, 15


def line_at(table: bytes, first_line: int, offset: int) -> int:
    """Return the line of an instruction; 0 if it has none.

    Args:
        table: The line table.
        first_line: The first line of the code object.
        offset: The instruction's offset in bytes.
    """
    at, line, begin = 0, first_line, 0
    while at < len(table):
        kind, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        if kind <= _SHORT:
            at += 1
        elif kind <= _ONE_LINE:
            line += kind - _SHORT - 1
            at += 2
        elif kind <= _LONG:
            further, at = _varint(table, at)
            line += -(further >> 1) if further & 1 else further >> 1
            for _ in range(3 if kind == _LONG else 0):
                _, at = _varint(table, at)
        begin += 2 * units
        if offset < begin:
            return 0 if kind == _NONE else line
    return 0


def _varint(table: bytes, at: int) -> tuple[int, int]:
    """Return a varint, and the position after it."""
    value = shift = 0
    for byte in table[at : at + 6]:
        value |= (byte & 63) << shift
        shift += 6
        at += 1
        if not byte & 64:
            break
    return value, at
