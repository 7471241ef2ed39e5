from __future__ import annotations

from stretto.viewer.connection_slots import (
    MAX_CONNECTIONS,
    MAX_REFUSED,
    MAX_REFUSED_PER_USER,
    ConnectionSlots,
)

KNOWN, OTHER, STRANGER = 1000, 0, 65534


def taken(slots: ConnectionSlots, user: int | None, tries: int = 200) -> int:
    """Return how many of `tries` slots a user gets."""
    return sum(slots.take(user) for _ in range(tries))


def test_each_allowed_user_has_its_own_slots() -> None:
    slots = ConnectionSlots({KNOWN, OTHER})
    assert taken(slots, KNOWN) == MAX_CONNECTIONS
    assert taken(slots, OTHER) == MAX_CONNECTIONS


def test_refused_users_use_no_slots_of_allowed_users() -> None:
    slots = ConnectionSlots({KNOWN})
    for user in (None, *range(STRANGER, STRANGER + 100)):
        assert taken(slots, user) <= MAX_REFUSED_PER_USER
    assert taken(slots, KNOWN) == MAX_CONNECTIONS


def test_total_slots_of_all_refused_users_are_bounded() -> None:
    slots = ConnectionSlots({KNOWN})
    assert sum(taken(slots, user) for user in range(2000, 2100)) == MAX_REFUSED
    assert not slots.take(None)


def test_released_slots_can_be_taken_again() -> None:
    slots = ConnectionSlots({KNOWN})
    for user, most in ((KNOWN, MAX_CONNECTIONS), (STRANGER, MAX_REFUSED_PER_USER)):
        for _ in range(3):
            assert taken(slots, user) == most
            for _ in range(most):
                slots.release(user)
    assert sum(taken(slots, user) for user in range(2000, 2100)) == MAX_REFUSED
