"""Each transaction id is used once, even if forked processes share the channel."""

from __future__ import annotations

import os

import pytest

from fidl_support.talk import talk
from stretto_fidl.bindings import channel
from stretto_fidl.errors import FidlError
from stretto_fidl.transport import Client
from stretto_fidl.transport.conversation import ASSIGNED, Numbers


def test_transaction_ids_increase_and_wrap() -> None:
    for first in (0, ASSIGNED):
        numbers = Numbers(first, used=False)
        given = [numbers.allocate() for _ in range(3)]
        assert given == [first | 1, (first | 1) + 1, (first | 1) + 2]
        assert all(numbers.was_allocated(number) for number in given)
        assert not numbers.was_allocated(given[-1] + 1)
        numbers._next = first + ASSIGNED
        with pytest.raises(FidlError, match="connect anew"):
            numbers.allocate()
        numbers.continue_at_random()
        with pytest.raises(FidlError, match="connect anew"):
            numbers.allocate()


def test_first_transaction_id_of_an_adopted_channel_is_random() -> None:
    firsts = {Numbers(0, used=True).allocate() for _ in range(20)}
    assert len(firsts) > 15
    assert all(0 < number < ASSIGNED for number in firsts)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_child_uses_other_transaction_ids_than_its_parent() -> None:
    near, far = channel()
    with far, Client(talk.Talk, near) as client:
        numbers = client._conversation.assigned
        before = numbers.allocate()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            knows = numbers.was_allocated(before)
            os.write(write, b"%d %d" % (numbers.allocate(), knows))
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        theirs, knows = os.read(read, 100).split()
        os.close(read)
        assert numbers.allocate() == before + 1
        assert before + 1 < int(theirs) < 2 * ASSIGNED
        assert knows == b"1"
