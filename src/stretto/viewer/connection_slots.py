"""Limits the number of connections of a server, counted by user.

Each user that is answered has `MAX_CONNECTIONS` slots of its own. All other users together have
`MAX_REFUSED` slots, for connections that get a refusal. One of these users can take at most
`MAX_REFUSED_PER_USER` of them. So refused users take no slots from users that are answered.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

MAX_CONNECTIONS = 64
MAX_REFUSED = 16
MAX_REFUSED_PER_USER = 4


class ConnectionSlots:
    """Counts the connections of one server.

    Args:
        users: Ids of the users that are answered.
    """

    def __init__(self, users: Container[int]) -> None:
        self._users = users
        self._counts: Counter[int | None] = Counter()
        self._refused = 0

    def answers(self, user: int | None) -> bool:
        """Returns whether a user is answered; None is an unknown user."""
        return user is not None and user in self._users

    def take(self, user: int | None) -> bool:
        """Takes a slot; returns False if none is left for this user."""
        if self.answers(user):
            if self._counts[user] >= MAX_CONNECTIONS:
                return False
        elif self._counts[user] >= MAX_REFUSED_PER_USER or self._refused >= MAX_REFUSED:
            return False
        else:
            self._refused += 1
        self._counts[user] += 1
        return True

    def release(self, user: int | None) -> None:
        """Releases a slot."""
        self._counts[user] -= 1
        if not self._counts[user]:
            del self._counts[user]  # Counters of 0 are removed: the number of users isn't limited.
        if not self.answers(user):
            self._refused -= 1
