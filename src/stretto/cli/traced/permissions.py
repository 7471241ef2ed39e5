"""Permissions of the sockets: `GROUP:MODE` for producers, and again for consumers.

    traced:0660:traced-consumer:0660

is a value of `--set-socket-permissions`, in Perfetto's order. By default every user may be a
producer, but only the service's own user and root may be consumers: a consumer can read the data of
all producers. So a consumers' socket can't be opened to all users.
"""

from __future__ import annotations

import os

from stretto.base.errors import CommandError
from stretto.cli.verb_parser import USAGE_EXIT_CODE

PRODUCER_MODE = 0o666
CONSUMER_MODE = 0o600
FOR_GROUP = 0o070
FOR_OTHERS = 0o007


class Permissions:
    """The permissions of one socket.

    Args:
        mode: the mode, as for `chmod`.
        group: the group id; None for the daemon's own.
    """

    def __init__(self, mode: int, group: int | None = None) -> None:
        self.mode = mode
        self.group = group

    @property
    def effective_group(self) -> int | None:
        """The group whose members may connect; None if there is none."""
        if self.group is None and self.mode & FOR_GROUP:
            return os.getegid()
        return self.group


def default_permissions() -> tuple[Permissions, Permissions]:
    """Return the permissions for (producers, consumers)."""
    return Permissions(PRODUCER_MODE), Permissions(CONSUMER_MODE)


def parse_permissions(text: str) -> tuple[Permissions, Permissions]:
    """Parse `PROD_GROUP:PROD_MODE:CONS_GROUP:CONS_MODE`; an empty group is the daemon's own.

    Returns:
        The permissions for (producers, consumers).

    Raises:
        CommandError: the text is malformed, a group doesn't exist, or all users could be consumers.
    """
    words = text.split(":")
    if len(words) != 4:
        raise _wrong(text, "it needs a group and a mode for producers, and again for consumers")
    producers = Permissions(_mode(text, words[1]), _group(text, words[0]))
    consumers = Permissions(_mode(text, words[3]), _group(text, words[2]))
    if consumers.mode & FOR_OTHERS:
        raise _wrong(text, f"mode {words[3]} would let all users read all traces")
    return producers, consumers


def _mode(text: str, word: str) -> int:
    try:
        mode = int(word, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o777:
        raise _wrong(text, f"{word!r} isn't an octal mode")
    return mode


def _group(text: str, word: str) -> int | None:
    if not word:
        return None
    if word.isdecimal():
        return int(word)
    import grp

    try:
        return grp.getgrnam(word).gr_gid
    except KeyError:
        raise _wrong(text, f"there is no group {word!r}") from None


def _wrong(text: str, reason: str) -> CommandError:
    return CommandError(
        f"traced: --set-socket-permissions {text!r}: {reason}. "
        "For example traced:0660:traced-consumer:0660.",
        USAGE_EXIT_CODE,
    )
