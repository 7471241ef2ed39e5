"""Computes method ordinals, which identify the method of a message.

An ordinal is the first eight bytes, little-endian and without the highest bit,
of the SHA-256 of `library.name/Protocol.Method`. `@selector` replaces the
method's name, or the whole string, so that a method can be renamed without a
change of its ordinal. Ordinals with the highest bit are control messages.
"""

from __future__ import annotations

import re
from hashlib import sha256

_NAME = r"[a-zA-Z]([a-zA-Z0-9_]*[a-zA-Z0-9])?"
_METHOD = re.compile(_NAME)
_QUALIFIED = re.compile(rf"{_NAME}(\.{_NAME})*/{_NAME}\.{_NAME}")

EPITAPH_ORDINAL = 0xFFFF_FFFF_FFFF_FFFF
"""The ordinal of a server's last message."""

_WITHOUT_HIGHEST_BIT = 0x7FFF_FFFF_FFFF_FFFF


def is_selector(text: str) -> bool:
    """Return whether a text may be the value of `@selector`.

    The value replaces a method's name, or the whole string `library.name/Protocol.Method`.
    """
    return bool(_METHOD.fullmatch(text) or _QUALIFIED.fullmatch(text))


def selector_of(library: str, protocol: str, method: str, selector: str | None = None) -> str:
    """Return the string whose hash is the ordinal of a method.

    Args:
        library: The name of the library, such as `fuchsia.io`.
        protocol: The name of the protocol, without the library.
        method: The name of the method.
        selector: The value of `@selector`, if there is one.
    """
    if selector is not None and "/" in selector:
        return selector
    return f"{library}/{protocol}.{selector or method}"


def ordinal_of(selector: str) -> int:
    """Return the ordinal of a method: a number of 63 bits. Zero isn't a valid ordinal.

    Args:
        selector: The result of `selector_of`.
    """
    digest = sha256(selector.encode()).digest()
    return int.from_bytes(digest[:8], "little") & _WITHOUT_HIGHEST_BIT
