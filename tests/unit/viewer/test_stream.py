from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.viewer.stream import HIGH_WATER_BYTES, LINGER_MS, LOW_WATER_BYTES, Stream
from tests.support.far_end import FarEnd


class Owner:
    def __init__(self) -> None:
        self.received = b""
        self.drained = 0
        self.ends = 0

    def on_bytes(self, data: memoryview) -> None:
        self.received += data

    def on_drained(self) -> None:
        self.drained += 1

    def on_end(self) -> None:
        self.ends += 1


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def stream(far: FarEnd, runner: FakeTaskRunner, owner: Owner) -> Iterator[Stream]:
    stream = Stream(far.near, runner, owner)
    yield stream
    stream.close()
    assert owner.ends == 1
    assert not runner.watched
    assert runner.delayed_count == 0


def congest(stream: Stream) -> int:
    """Write until it is too much. The bytes that were written."""
    total = 0
    while not stream.congested:
        stream.write(bytes(1 << 16))
        total += 1 << 16
    return total


class TestBytes:
    def test_both_directions(self, stream: Stream, owner: Owner, far: FarEnd) -> None:
        far.say(b"hello")
        stream.write(b"you")
        stream.write(b" too")
        assert owner.received == b"hello"
        assert far.hear() == b"you too"

    def test_the_peers_end(self, stream: Stream, owner: Owner, far: FarEnd) -> None:
        far.hang_up()
        assert owner.ends == 1
        assert stream.closed
        assert stream.delivered
        stream.write(b"to nobody")

    def test_a_descriptor_is_closed(self, stream: Stream, owner: Owner, far: FarEnd) -> None:
        read_fd, write_fd = os.pipe()
        far._end.send(b"x", write_fd)
        os.close(write_fd)
        far.say(b"y")
        assert owner.received == b"xy"
        assert os.read(read_fd, 1) == b""  # nobody has the other end any more
        os.close(read_fd)


class TestBackPressure:
    def test_what_the_peer_does_not_take_waits(
        self, stream: Stream, owner: Owner, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        written = congest(stream)
        runner.run_until_idle()
        assert stream.pending_bytes > HIGH_WATER_BYTES
        assert owner.drained == 0
        assert len(far.hear()) == written
        assert owner.drained > 0
        assert stream.pending_bytes == 0

    def test_room_is_told_when_little_is_left(
        self, stream: Stream, owner: Owner, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        congest(stream)
        while owner.drained == 0:
            assert stream.pending_bytes > LOW_WATER_BYTES
            assert far.hear_some()
            runner.run_until_idle()
        assert stream.pending_bytes <= LOW_WATER_BYTES

    def test_a_pause_makes_the_peer_wait(
        self, stream: Stream, owner: Owner, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        stream.pause()
        sent = far.fill()
        assert owner.received == b""
        stream.resume()
        runner.run_until_idle()
        assert len(owner.received) == sent

    def test_the_output_stays_in_order(
        self, stream: Stream, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        expected, heard = b"", b""
        for turn in range(64):
            block = bytes((turn,)) * 50_000
            stream.write(block)
            expected += block
            if turn % 5 == 0:
                heard += far.hear_some()
                runner.run_until_idle()
        assert heard + far.hear() == expected

    def test_what_was_sent_is_not_kept(
        self, stream: Stream, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        for _ in range(20):
            congest(stream)
            far.hear_some()
            runner.run_until_idle()
        assert len(stream._output) < 4 * HIGH_WATER_BYTES


class TestEnds:
    def test_a_peer_that_goes_before_it_has_read(
        self, stream: Stream, owner: Owner, far: FarEnd
    ) -> None:
        stream.write(b"unread")
        assert stream.delivered
        far.hang_up()
        assert owner.ends == 1
        assert not stream.delivered

    def test_finish_sends_what_waits(
        self, stream: Stream, owner: Owner, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        written = congest(stream)
        stream.finish()
        stream.write(b"too late")
        runner.advance(10 * LINGER_MS)
        assert not stream.closed
        assert len(far.hear()) == written
        runner.advance(LINGER_MS - 1)
        assert not stream.closed
        runner.advance(1)
        assert stream.closed
        assert stream.delivered

    def test_a_peer_that_was_told_everything_hangs_up(
        self, stream: Stream, owner: Owner, far: FarEnd
    ) -> None:
        stream.pause()
        stream.write(b"bye")
        stream.finish()
        far.say(b"ignored")
        assert far.hear() == b"bye"
        far.hang_up()
        assert stream.closed
        assert stream.delivered
        assert owner.received == b""

    def test_without_lingering_it_closes_when_all_is_sent(
        self, stream: Stream, far: FarEnd
    ) -> None:
        written = congest(stream)
        stream.finish(0)
        assert not stream.closed
        assert len(far.hear()) == written
        assert stream.closed
        assert far.hung_up

    def test_a_peer_that_goes_in_the_middle(
        self, stream: Stream, owner: Owner, far: FarEnd, runner: FakeTaskRunner
    ) -> None:
        congest(stream)
        far.hang_up()
        runner.run_until_idle()
        assert owner.ends == 1
        assert not stream.delivered
        assert owner.drained == 0
