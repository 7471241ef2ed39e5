"""How many connections a server has at once, counted by user.

A user that is answered has `MAX_CONNECTIONS` of its own. All others together have
`MAX_REFUSED`, and each of them `MAX_REFUSED_PER_USER`, on which they get their refusal. So they
take no slots from users that are answered.
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

    __slots__ = ("_counts", "_refused", "_users")

    def __init__(self, users: Container[int]) -> None:
        self._users = users
        self._counts: Counter[int | None] = Counter()
        self._refused = 0

    def answers(self, user: int | None) -> bool:
        """Returns whether a user is answered; None is a user that can't be known."""
        return user is not None and user in self._users

    def take(self, user: int | None) -> bool:
        """Take a slot; False if there is none left for this user."""
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
        """Give a slot back."""
        self._counts[user] -= 1
        if not self._counts[user]:
            del self._counts[user]  # any number of users may come
        if not self.answers(user):
            self._refused -= 1
