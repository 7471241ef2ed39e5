"""Texts of a trace without characters that control a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text without characters that control a terminal; ESC becomes `\x1b`."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
