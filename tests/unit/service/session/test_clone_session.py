"""Clones of tracing sessions: content, flushes, files, errors."""

from __future__ import annotations

import os

import pytest

from stretto.base.errors import SessionError
from stretto.protos.config import TraceConfig
from stretto.service.output import trace_filter
from stretto.service.session.clone_session import BUGREPORT_SESSION_ID
from stretto.testing.decoded_packets import decode_packets
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.service_setup import UID, data_source, event, events, kinds, make_config, texts


def clone_of(setup, source, uid=UID, **request):
    """Clone the session of `source`; return the consumer that owns the clone."""
    consumer = setup.consumer(uid)
    consumer.clone(source.endpoint.session_id, **request)
    setup.run()
    return consumer


def two_buffers(first=(), second=()):
    config = make_config(buffers=2)
    config.buffers = [
        TraceConfig.BufferConfig(size_kb=128, **dict(first)),
        TraceConfig.BufferConfig(size_kb=128, **dict(second)),
    ]
    config.data_sources = [data_source("a", target_buffer=0), data_source("b", target_buffer=1)]
    return config


def test_clone_contains_the_data_written_before_cloning(setup):
    producer = setup.producer("ds")
    source = setup.enable(make_config("ds"))
    setup.write(producer, "before")
    clone = clone_of(setup, source)
    (answer,) = clone.clones
    assert answer.success
    assert not answer.was_write_into_file
    setup.write(producer, "after")
    packets = setup.read(clone)
    assert texts(packets) == ["before"]
    assert texts(setup.read(source)) == ["before", "after"]
    (uuid,) = [p.trace_uuid for p in packets if p.has("trace_uuid")]
    assert (uuid.msb, uuid.lsb) == (answer.uuid_msb, answer.uuid_lsb)
    assert setup.session_of(clone).state == "CLONED_READ_ONLY"
    assert kinds(packets)[-1] == "trace_stats"
    assert packets[-1].trace_stats.final_flush_outcome == 1


def test_uuid_of_a_clone_has_the_low_half_of_the_source_uuid(setup):
    config = make_config("ds", trace_uuid_msb=5, trace_uuid_lsb=-6)
    clone = clone_of(setup, setup.enable(config))
    assert clone.clones[0].uuid_lsb == -6
    assert clone.clones[0].uuid_msb != 5


def test_session_is_flushed_before_it_is_cloned(setup):
    producer = setup.producer("ds")
    source = setup.enable(make_config("ds"))
    setup.write(producer, "in hand", flush=False)
    assert texts(setup.read(clone_of(setup, source))) == ["in hand"]
    assert producer.flushes[-1][2] == 0x13


def test_session_can_be_cloned_by_its_unique_name(setup):
    source = setup.enable(make_config(unique_session_name="name"))
    clone = setup.consumer()
    clone.clone(unique_session_name="name")
    other = setup.consumer()
    other.clone(unique_session_name="unknown")
    setup.run()
    assert clone.clones[0].success
    assert not other.clones[0].success
    assert "no such session" in other.clones[0].error
    source.endpoint.free_buffers()
    other.clone(unique_session_name="name")  # The clone isn't found by its name.
    setup.run()
    assert not other.clones[1].success
    assert not setup.enable(make_config(unique_session_name="name")).disabled


def test_session_of_another_user_can_be_cloned_only_by_root(setup):
    source = setup.enable(make_config())
    assert "another user's" in clone_of(setup, source, uid=5).clones[0].error
    assert clone_of(setup, source, uid=0).clones[0].success


def test_clone_for_bugreport_copies_the_session_with_the_highest_score(setup):
    producer = setup.producer("ds")
    sources = [setup.enable(make_config("ds", bugreport_score=score)) for score in (0, 9, 3)]
    clone = setup.consumer()
    clone.clone(BUGREPORT_SESSION_ID)
    setup.run()
    assert clone.clones[0].success
    assert producer.flushes[-1][2] == 0x113
    (config,) = [p.trace_config for p in setup.read(clone) if p.has("trace_config")]
    assert config.bugreport_score == 9
    for source in sources:
        source.endpoint.free_buffers()
    other = setup.consumer()
    other.clone(BUGREPORT_SESSION_ID)
    setup.run()
    assert not other.clones[0].success


def test_consumer_with_a_session_cannot_clone(setup):
    source = setup.enable(make_config())
    source.clone(source.endpoint.session_id)
    setup.run()
    assert "free its buffers" in source.clones[0].error


def test_buffer_with_transfer_on_clone_moves_to_the_clone(setup):
    producer = setup.producer("a", "b")
    source = setup.enable(two_buffers(first={"transfer_on_clone": True}))
    setup.write(producer, "moved", source="a")
    setup.write(producer, "copied", source="b")
    clone = clone_of(setup, source)
    setup.write(producer, "later", source="a")
    packets = setup.read(clone)
    assert texts(packets) == ["moved", "copied"]
    assert {p.trusted_uid for p in packets if p.has("for_testing")} == {42}
    packets = setup.read(source)
    assert texts(packets) == ["later", "copied"]
    assert {p.trusted_uid for p in packets if p.has("for_testing")} == {42}
    assert texts(setup.read(clone_of(setup, source))) == []


def test_full_discard_buffer_accepts_data_again_after_its_transfer(setup):
    producer = setup.producer("ds")
    config = make_config("ds", size_kb=4)
    config.buffers[0].transfer_on_clone = True
    config.buffers[0].fill_policy = 2
    source = setup.enable(config)
    writer = producer.writer("ds")
    for number in range(20):
        writer.write(event(f"{number} " + "x" * 1000))
        writer.flush()
    clone = clone_of(setup, source)
    assert [text.split()[0] for text in texts(setup.read(clone))] == ["0", "1", "2"]
    writer.write(event("more"))
    writer.flush()
    assert texts(setup.read(source)) == ["more"]


def test_clone_of_a_buffer_with_clear_before_clone_contains_only_flushed_packets(setup):
    producer = setup.producer("ds")
    config = make_config("ds")
    config.buffers[0].clear_before_clone = True
    source = setup.enable(config)
    setup.write(producer, "old")
    setup.write(producer, "flushed for the clone", flush=False)
    clone = clone_of(setup, source)
    assert texts(setup.read(clone)) == ["flushed for the clone"]


def test_stopped_session_can_be_cloned(setup):
    producer = setup.producer("ds")
    source = setup.enable(make_config("ds"))
    setup.write(producer, "data")
    source.endpoint.disable_tracing()
    setup.run()
    clone = clone_of(setup, source)
    packets = setup.read(clone)
    assert texts(packets) == ["data"]
    assert packets[-1].trace_stats.final_flush_outcome == 2


def test_disconnect_of_the_cloning_consumer_cancels_the_clone(setup):
    producer = setup.producer("ds", answers_flushes=False)
    source = setup.enable(make_config("ds"))
    clone = clone_of(setup, source)
    used = set(setup.service.buffers.ids.in_use)
    clone.endpoint.disconnect()
    setup.run()
    producer.answer_flush(producer.flushes[-1][0])
    setup.run()
    assert not clone.clones
    assert setup.service.buffers.ids.in_use == used
    assert len(setup.service.sessions) == 1


def test_clone_fails_if_its_source_ends_during_the_flush(setup):
    producer = setup.producer("ds", answers_flushes=False)
    source = setup.enable(make_config("ds"))
    clone = clone_of(setup, source)
    assert not clone.clones
    source.endpoint.disconnect()
    setup.run()
    assert not clone.clones[0].success
    assert "Original session ended" in clone.clones[0].error
    producer.answer_flush(producer.flushes[-1][0])
    setup.run()
    assert len(clone.clones) == 1
    assert not setup.service.sessions
    assert not setup.service.buffers.ids.in_use


def test_buffer_with_transfer_on_clone_has_a_flush_of_its_own(setup):
    """A buffer is cloned when its own flush completes, even if other flushes are pending."""
    producer = setup.producer("a", "b", answers_flushes=False)
    source = setup.enable(two_buffers(first={"transfer_on_clone": True}))
    setup.write(producer, "moved", source="a")
    setup.write(producer, "copied", source="b")
    clone = clone_of(setup, source)
    (first, first_ids, _), (second, second_ids, _) = producer.flushes
    assert first_ids == [producer.instances["a"]]
    assert second_ids == [producer.instances["b"]]
    producer.answer_flush(first)
    setup.run()
    setup.write(producer, "next", source="a")
    setup.write(producer, "copied too", source="b")
    assert not clone.clones
    producer.answer_flush(second)
    setup.run()
    assert texts(setup.read(clone)) == ["moved", "copied", "copied too"]
    assert texts(setup.read(source)) == ["next", "copied", "copied too"]


def test_clone_succeeds_after_a_failed_flush(setup):
    setup.producer("ds", answers_flushes=False)
    source = setup.enable(make_config("ds"))
    clone = clone_of(setup, source)
    setup.advance(5000)
    assert clone.clones[0].success
    packets = setup.read(clone)
    assert packets[-1].trace_stats.final_flush_outcome == 2
    assert "last_flush_slow_data_sources" in events(packets)


def test_consumer_cannot_enable_a_session_while_its_clone_is_pending(setup):
    setup.producer("ds", answers_flushes=False)
    source = setup.enable(make_config("ds"))
    clone = clone_of(setup, source)
    clone.enable(make_config())
    setup.run()
    assert clone.disabled
    setup.advance(5000)
    assert clone.clones[0].success


def test_clone_contains_an_event_for_each_cloned_buffer(setup):
    source = setup.enable(two_buffers(second={"transfer_on_clone": True}))
    setup.advance(1000)
    packets = setup.read(clone_of(setup, source))
    assert [name for name in events(packets) if "clone" in name] == [
        "clone_started", "buffer_cloned", "buffer_cloned",
    ]  # fmt: skip
    cloned = [
        p.service_event.buffer_cloned
        for p in packets
        if p.has("service_event") and p.service_event.has("buffer_cloned")
    ]
    assert sorted(cloned) == [0, 1]
    assert "tracing_disabled" in events(packets)
    assert "clone_started" not in events(setup.read(source))


def test_clone_contains_the_trigger_named_in_the_clone_request(setup):
    source = setup.enable(make_config())
    clone = clone_of(
        setup,
        source,
        clone_trigger_name="t",
        clone_trigger_producer_name="p",
        clone_trigger_trusted_producer_uid=7,
        clone_trigger_boot_time_ns=8,
        clone_trigger_delay_ms=9,
    )
    packets = setup.read(clone)
    assert (
        kinds(packets).index("clone_snapshot_trigger") == kinds(packets).index("trace_config") + 1
    )
    (packet,) = [p for p in packets if p.has("clone_snapshot_trigger")]
    info = packet.clone_snapshot_trigger
    assert (info.trigger_name, info.producer_name, info.trusted_producer_uid) == ("t", "p", 7)
    assert (packet.timestamp, info.stop_delay_ms) == (8, 9)


def test_only_the_first_clone_contains_the_received_triggers(setup):
    producer = setup.producer("ds")
    waits = TraceConfig.TriggerConfig(
        trigger_mode=4,
        trigger_timeout_ms=1000,
        triggers=[TraceConfig.TriggerConfig.Trigger(name="a")],
    )
    source = setup.enable(make_config("ds", trigger_config=waits))
    producer.endpoint.activate_triggers(["a"])
    first, second = clone_of(setup, source), clone_of(setup, source)
    assert kinds(setup.read(first)).count("trigger") == 1
    assert kinds(setup.read(second)).count("trigger") == 0


def test_packets_in_a_clone_keep_their_sequence_ids(setup):
    producer = setup.producer("ds")
    source = setup.enable(make_config("ds"))
    first, second = producer.writer("ds"), producer.writer("ds")
    first.write(event("read already"))
    first.flush()
    setup.read(source)
    second.write(event("new"))
    second.flush()
    (packet,) = [p for p in setup.read(clone_of(setup, source)) if p.has("for_testing")]
    assert packet.for_testing.str == "new"
    assert packet.trusted_packet_sequence_id == 3


def test_buffers_of_a_clone_are_freed_with_the_clone(setup):
    source = setup.enable(make_config("ds"))
    used = set(setup.service.buffers.ids.in_use)
    clone = clone_of(setup, source)
    assert len(setup.service.buffers.ids.in_use) == 2
    clone.endpoint.disable_tracing()
    clone.endpoint.start_tracing()
    assert setup.session_of(clone).state == "CLONED_READ_ONLY"
    clone.endpoint.free_buffers()
    setup.run()
    assert setup.service.buffers.ids.in_use == used
    assert not clone.disabled


def test_clone_without_memory_for_one_buffer_fails_and_frees_the_other_buffers(setup, monkeypatch):
    source = setup.enable(two_buffers())
    real = setup.service.buffers.table
    calls = []

    class Table:
        def clone(self, original, ident):
            calls.append(ident)
            if len(calls) == 2:
                raise MemoryError
            real.clone(original, ident)

        def remove(self, ident):
            real.remove(ident)

    used = set(setup.service.buffers.ids.in_use)
    monkeypatch.setattr(setup.service.buffers, "table", Table())
    clone = clone_of(setup, source)
    assert "out of memory" in clone.clones[0].error
    assert setup.service.buffers.ids.in_use == used
    assert clone.endpoint.session is None


class TestCloneIntoFile:
    @pytest.fixture
    def target(self, tmp_path):
        fd = os.open(tmp_path / "clone", os.O_RDWR | os.O_CREAT)
        yield fd
        os.close(fd)

    def enable(self, setup, tmp_path, **fields):
        config = make_config("ds", write_into_file=True, output_path=str(tmp_path / "source"))
        config.file_write_period_ms = 100
        for name, value in fields.items():
            setattr(config, name, value)
        return setup.enable(config)

    def packets(self, tmp_path, name="clone"):
        return decode_packets((tmp_path / name).read_bytes())

    def test_clone_into_a_file_contains_buffered_data(self, setup, tmp_path, target):
        producer = setup.producer("ds")
        source = self.enable(setup, tmp_path)
        setup.write(producer, "data")
        clone = clone_of(setup, source, fd=target)
        assert clone.clones[0].success
        assert clone.clones[0].was_write_into_file
        packets = self.packets(tmp_path)
        assert texts(packets) == ["data"]
        assert kinds(packets)[-1] == "trace_stats"
        assert texts(setup.read(clone)) == []
        setup.advance(100)
        assert texts(self.packets(tmp_path, "source")) == ["data"]

    def test_clone_into_a_file_contains_written_and_buffered_data(self, setup, tmp_path, target):
        producer = setup.producer("ds")
        source = self.enable(setup, tmp_path, max_file_size_bytes=4000)
        setup.write(producer, "written")
        setup.advance(100)
        setup.write(producer, "in the buffer " + "x" * 5000)
        clone_of(setup, source, fd=target)
        packets = self.packets(tmp_path)
        assert [text.split()[0] for text in texts(packets)] == ["written", "in"]
        ids = {p.trusted_packet_sequence_id for p in packets if p.has("for_testing")}
        assert ids == {2, 3}
        boot = [p.clock_snapshot.clocks[0].timestamp for p in packets if p.has("clock_snapshot")]
        assert boot == sorted(boot)

    def test_clone_into_a_file_contains_lifecycle_events(self, setup, tmp_path, target):
        source = self.enable(setup, tmp_path)
        setup.advance(100)
        clone_of(setup, source, fd=target)
        of_file = events(self.packets(tmp_path))
        assert of_file.count("tracing_started") == 1
        assert [name for name in of_file if "clone" in name] == ["clone_started", "buffer_cloned"]
        assert "tracing_disabled" in of_file

    def test_failed_clone_into_a_file_leaves_no_descriptor_open(
        self, setup, tmp_path, target, monkeypatch
    ):
        source = self.enable(setup, tmp_path)
        setup.session().config.buffers[0].clear_before_clone = True

        def refuse(*_):
            raise SessionError("out of memory")

        monkeypatch.setattr(type(setup.service.buffers), "create", refuse)
        before = open_descriptors()
        assert "out of memory" in clone_of(setup, source, fd=target).clones[0].error
        expect_new_descriptors(before, 0)

    def test_clone_of_a_session_that_writes_a_file_needs_a_descriptor(self, setup, tmp_path):
        source = self.enable(setup, tmp_path)
        assert "pass a descriptor" in clone_of(setup, source).clones[0].error

    def test_source_file_open_for_writing_only_can_be_cloned(self, setup, tmp_path, target):
        producer = setup.producer("ds")
        fd = os.open(tmp_path / "source", os.O_WRONLY | os.O_CREAT)
        source = setup.enable(make_config("ds", write_into_file=True), fd=fd)
        os.close(fd)
        setup.write(producer, "data")
        setup.advance(5000)
        assert clone_of(setup, source, fd=target).clones[0].success
        assert texts(self.packets(tmp_path)) == ["data"]

    def test_session_that_writes_into_a_pipe_cannot_be_cloned(self, setup, target):
        reader, writer = os.pipe()
        source = setup.enable(make_config("ds", write_into_file=True), fd=writer)
        before = open_descriptors()
        assert "can't be copied" in clone_of(setup, source, fd=target).clones[0].error
        expect_new_descriptors(before, 0)
        os.close(reader)
        os.close(writer)

    def test_descriptor_of_a_clone_is_ignored_if_the_source_writes_no_file(self, setup, target):
        producer = setup.producer("ds")
        source = setup.enable(make_config("ds"))
        setup.write(producer, "data")
        clone = clone_of(setup, source, fd=target)
        assert not clone.clones[0].was_write_into_file
        assert texts(setup.read(clone)) == ["data"]


class TestCloneWithFilter:
    def record(self, setup):
        """Return a session whose filter allows only test events."""
        from tests.unit.service.output.test_trace_filter import only_test_events

        producer = setup.producer("ds")
        source = setup.enable(make_config("ds", trace_filter=only_test_events()))
        setup.write(producer, "data")
        return source

    def test_clone_is_filtered_like_its_source(self, setup):
        packets = setup.read(clone_of(setup, self.record(setup)))
        assert texts(packets) == ["data"]
        assert not any(p.has("trace_config") for p in packets)

    def test_filter_is_compiled_once_for_session_snapshot_and_clone(self, setup, monkeypatch):
        compiled = []
        load = trace_filter.load_filter
        monkeypatch.setattr(
            trace_filter, "load_filter", lambda *args: compiled.append(1) or load(*args)
        )
        source = self.record(setup)
        clone = clone_of(setup, source)
        assert list(setup.service.snapshot(source.endpoint.session_id))
        assert texts(setup.read(clone)) == texts(setup.read(source)) == ["data"]
        assert len(compiled) == 1

    def test_clone_request_can_skip_the_filter(self, setup):
        packets = setup.read(clone_of(setup, self.record(setup), skip_trace_filter=True))
        assert any(p.has("trace_config") for p in packets)
