"""Sessions with a trace filter, from the config to the filtered trace."""

from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import TraceConfig
from stretto.protos.trace import Trace, TracePacket, TraceStats
from stretto.protozero.filter import bytecode, strings
from stretto.protozero.filter.generator import FilterBytecodeGenerator
from stretto.protozero.filter.schema import DENY, FilterString, SchemaFilter
from stretto.service.output import trace_filter as trace_filter_module
from stretto.service.output.trace_filter import (
    FIRST_TURN_BYTES,
    MIN_TURN_BYTES,
    TURN_NS,
    compile_filter,
)
from stretto.testing.decoded_packets import decode_packets, split_packets
from tests.support.service_setup import event, kinds, make_config, texts

TraceFilter = TraceConfig.TraceFilter
Rule = TraceFilter.StringFilterRule


def schema_filter(annotations, version=bytecode.V2):
    """Return a filter that allows all fields except those that the annotations deny."""
    code, overlay = SchemaFilter(Trace, annotations).generate(version)
    return TraceFilter(bytecode_v2=code, bytecode_overlay_v54=overlay)


def chain(*rules):
    return TraceFilter.StringFilterChain(rules=list(rules))


def redact(pattern, **fields):
    return Rule(policy=strings.MATCH_REDACT_GROUPS, regex_pattern=pattern, **fields)


def only_test_events():
    """Return a filter that allows TestEvent.str and the fields that identify a packet."""
    generator = FilterBytecodeGenerator()
    generator.add_nested_field(1, 1)
    generator.end_message()
    generator.add_simple_field(3)
    generator.add_simple_field(10)
    generator.add_nested_field(900, 2)
    generator.end_message()
    generator.add_simple_field(1)
    generator.end_message()
    return TraceFilter(bytecode_v2=generator.serialize()[0])


def record(setup, trace_filter, *written, **config):
    """Write packets into a session with this filter; return the session's consumer."""
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", trace_filter=trace_filter, **config))
    assert consumer.disabled == []
    write(setup, producer, *written)
    return consumer


def write(setup, producer, *packets):
    writer = producer.writer("ds")
    for packet in packets:
        assert writer.write(packet)
    writer.flush()
    setup.run()


def stats_of(packets):
    (stats,) = (packet.trace_stats for packet in packets if packet.has("trace_stats"))
    return stats


class TestFilteredReading:
    def test_denied_fields_are_removed(self, setup):
        packet = TracePacket(timestamp=5, for_testing=TracePacket.decode(event("a")).for_testing)
        packet.for_testing.seq_value = 7
        packets = setup.read(record(setup, only_test_events(), packet.encode()))
        (found,) = [each for each in packets if each.has("for_testing")]
        assert found.for_testing.str == "a"
        assert not found.for_testing.has("seq_value")
        assert not found.has("timestamp")
        assert found.trusted_packet_sequence_id == 2

    def test_service_packets_except_stats_are_filtered(self, setup):
        consumer = record(setup, only_test_events(), event("a"))
        packets = setup.read(consumer)
        assert len(packets) == 12
        assert texts(packets) == ["a"]
        own = [each for each in packets if not each.has("for_testing")]
        assert kinds(own[-1:]) == ["trace_stats"]
        for packet in own[:-1]:
            assert not set(packet.set_fields()) - {"trusted_uid", "trusted_packet_sequence_id"}

    def test_packet_without_allowed_fields_becomes_an_empty_packet(self, setup):
        generator = FilterBytecodeGenerator()
        generator.add_nested_field(1, 1)
        generator.end_message()
        generator.end_message()
        trace_filter = TraceFilter(bytecode_v2=generator.serialize()[0])
        consumer = record(setup, trace_filter, event("a"))
        setup.read(consumer)
        assert consumer.data.startswith(b"\x0a\x00" * 11)

    def test_filter_that_allows_all_fields_changes_nothing(self, setup):
        consumer = record(setup, schema_filter({}), event("a"), event("b"))
        packets = setup.read(consumer)
        assert kinds(packets) == [
            "clock_snapshot", "clock_snapshot", "synchronization_marker", "trace_config",
            "trace_uuid", "trace_provenance", "system_info", "service_event", "service_event",
            "for_testing", "for_testing", "service_event", "trace_stats",
        ]  # fmt: skip
        assert texts(packets) == ["a", "b"]

    def test_bytecode_v2_is_preferred(self, setup):
        trace_filter = only_test_events()
        trace_filter.bytecode = schema_filter({"TracePacket.for_testing": DENY}).bytecode_v2
        assert texts(setup.read(record(setup, trace_filter, event("a")))) == ["a"]

    def test_filter_without_bytecode_v2_uses_bytecode_v1(self, setup):
        trace_filter = TraceFilter(bytecode=only_test_events().bytecode_v2)
        assert texts(setup.read(record(setup, trace_filter, event("a")))) == ["a"]

    def test_read_limit_counts_bytes_before_the_filter(self, setup):
        """The size of a read step does not depend on how much the filter removes."""
        generator = FilterBytecodeGenerator()
        generator.add_nested_field(1, 1)
        generator.end_message()
        generator.end_message()
        trace_filter = TraceFilter(bytecode_v2=generator.serialize()[0])
        consumer = record(setup, trace_filter, *[event("x" * 1000)] * 50)
        consumer.endpoint.read_buffers(8000)
        setup.run()
        assert len(consumer.reads) > 5
        assert [more for _, more in consumer.reads][-2:] == [True, False]


class TestFilterStats:
    def test_packets_and_bytes_before_and_after_the_filter_are_counted(self, setup):
        consumer = record(setup, only_test_events(), event("a"), event("b" * 100))
        packets = setup.read(consumer)
        stats = stats_of(packets).filter_stats
        # The stats packet itself isn't counted: it is encoded before it is filtered.
        assert stats.input_packets == len(packets) - 1
        *filtered, last = split_packets(consumer.data)
        assert stats.output_bytes == sum(map(len, filtered))
        assert stats.input_bytes > stats.output_bytes
        assert stats.errors == 0
        counted = TraceStats.decode(setup.session().reader.stats()).filter_stats
        assert counted.input_packets == len(packets)
        assert counted.output_bytes == stats.output_bytes + len(last)

    def test_discarded_bytes_are_counted_per_buffer(self, setup):
        generator = FilterBytecodeGenerator()
        generator.add_nested_field(1, 1)
        generator.end_message()
        generator.end_message()
        trace_filter = TraceFilter(bytecode_v2=generator.serialize()[0])
        packets = setup.read(record(setup, trace_filter, event("a" * 90), buffers=2))
        discarded = stats_of(packets).filter_stats.bytes_discarded_per_buffer
        added = TracePacket(
            trusted_uid=42,
            trusted_packet_sequence_id=2,
            trusted_pid=1025,
            previous_packet_dropped=1,
        ).encode()
        assert discarded == [len(event("a" * 90)) + len(added), 0]

    def test_session_without_a_filter_has_no_filter_stats(self, setup):
        consumer = setup.enable(make_config())
        assert not stats_of(setup.read(consumer)).has("filter_stats")

    def test_malformed_packets_are_dropped_and_counted_as_errors(self, setup):
        """A malformed submessage is found only by a filter that decodes it."""
        torn = TracePacket(timestamp=1).encode() + b"\xa2\x38\x02\x0a\x05"
        packets = setup.read(record(setup, only_test_events(), torn, event("a")))
        assert texts(packets) == ["a"]
        assert stats_of(packets).filter_stats.errors == 1
        assert not [packet for packet in packets if packet.timestamp == 1]

    def test_time_spent_in_the_filter_is_reported(self, setup):
        class Slow:
            def boottime_ns(self):
                setup.clock.advance_ns(10)
                return setup.clock.boottime_ns()

        consumer = record(setup, only_test_events(), event("a"))
        setup.session().reader.trace_filter._clock = Slow()
        stats = stats_of(setup.read(consumer)).filter_stats
        assert stats.time_taken_ns == 10 * 3


class TestStringFilter:
    def record(self, setup, trace_filter, *rules):
        trace_filter.string_filter_chain = chain(*rules)
        texts_written = [event(text) for text in ("B|1|foo secret", "other secret")]
        return texts(setup.read(record(setup, trace_filter, *texts_written)))

    def test_filtered_strings_are_redacted(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString()})
        found = self.record(setup, trace_filter, redact(r"B\|\d+\|foo (.*)"))
        assert found == ["B|1|foo P60RED", "other secret"]

    def test_strings_without_semantic_type_match_rules_for_type_0(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString()})
        rules = redact("(B).*", semantic_type=[strings.ATRACE]), redact("(o).*", semantic_type=[0])
        found = self.record(setup, trace_filter, *rules)
        assert found == ["B|1|foo secret", "Pther secret"]

    def test_semantic_type_in_the_v54_overlay_selects_the_rules(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString(semantic_type=strings.JOB)})
        assert trace_filter.bytecode_overlay_v54
        rules = redact("(B).*", semantic_type=[strings.JOB]), redact("(o).*")
        assert self.record(setup, trace_filter, *rules) == ["P|1|foo secret", "other secret"]

    def test_semantic_types_are_unspecified_without_the_v54_overlay(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString(strings.JOB, allow_in_v2=True)})
        trace_filter.bytecode_overlay_v54 = b""
        rules = redact("(B).*", semantic_type=[strings.JOB]), redact("(o).*")
        assert self.record(setup, trace_filter, *rules) == ["B|1|foo secret", "Pther secret"]

    def test_v54_rules_replace_rules_of_the_same_name(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString()})
        trace_filter.string_filter_chain_v54 = chain(redact("(ot).*", name="b"), redact("(B).*"))
        rules = redact("(.).*", name="a"), redact("(other).*", name="b")
        rules[0].policy = strings.MATCH_BREAK
        rules[0].regex_pattern = "never"
        assert self.record(setup, trace_filter, *rules) == ["P|1|foo secret", "P6her secret"]


class TestFilteredFilesAndSnapshots:
    def test_file_written_in_many_passes_is_filtered(self, setup, tmp_path):
        path = tmp_path / "trace"
        config = {"write_into_file": True, "file_write_period_ms": 100, "output_path": str(path)}
        producer = setup.producer("ds")
        consumer = setup.enable(
            make_config(
                "ds",
                trace_filter=schema_filter({"TestEvent.counter": DENY}),
                size_kb=4096,
                **config,
            ),
            setup.consumer(setup.service.context.uid),
        )
        assert consumer.disabled == []
        wanted = []
        for step in range(30):
            text = f"{step} " + "x" * (step * 100)
            wanted.append(text)
            write(setup, producer, event(text))
            setup.advance(100)
        consumer.endpoint.disable_tracing()
        setup.run()
        assert texts(decode_packets(path.read_bytes())) == wanted

    def test_snapshot_of_a_session_is_filtered_like_the_session(self, setup):
        trace_filter = schema_filter({"TestEvent.str": FilterString()})
        trace_filter.string_filter_chain = chain(redact("(.*)"))
        consumer = record(setup, trace_filter, event("secret"))
        copy = b"".join(setup.service.snapshot(consumer.endpoint.session_id))
        assert texts(decode_packets(copy)) == ["P60RED"]
        assert stats_of(decode_packets(copy)).filter_stats.input_packets > 0
        assert texts(setup.read(consumer)) == ["P60RED"]


class TestInvalidFilters:
    @pytest.mark.parametrize(
        ("trace_filter", "complaint"),
        [
            (TraceFilter(), "trace_filter: the filter bytecode can't be used: it is empty"),
            (TraceFilter(bytecode_v2=b"\x01"), "its checksum is wrong"),
            (TraceFilter(bytecode_v2=bytecode.encode_words([])), r"no message at the path \[1\]"),
            (TraceFilter(bytecode_v2=bytecode.encode_words([9, 0])), "no message at the path"),
        ],
    )
    def test_invalid_filter_bytecode_is_refused(self, setup, trace_filter, complaint):
        with pytest.raises(ConfigError, match=complaint):
            compile_filter(trace_filter)
        consumer = setup.enable(make_config(trace_filter=trace_filter))
        assert consumer.disabled[0].startswith("trace_filter: ")
        assert not setup.service.sessions

    def test_invalid_filter_overlay_is_refused(self):
        trace_filter = only_test_events()
        trace_filter.bytecode_overlay_v54 = b"\x01"
        with pytest.raises(ConfigError, match="checksum"):
            compile_filter(trace_filter)

    @pytest.mark.parametrize(
        ("rule", "complaint"),
        [
            (Rule(regex_pattern="x"), "policy 0 is unknown"),
            (Rule(policy=6, regex_pattern="x"), "policy 6 is unknown"),
            (redact("("), "can't be used"),
            (redact("x", semantic_type=[128]), "semantic type 128"),
        ],
    )
    def test_invalid_string_filter_rules_are_refused(self, rule, complaint):
        trace_filter = only_test_events()
        trace_filter.string_filter_chain_v54 = chain(rule)
        with pytest.raises(ConfigError, match=complaint):
            compile_filter(trace_filter)


def test_number_of_bytes_per_turn_follows_the_speed_of_the_filter(setup):
    class Slow:
        ns_per_byte = 1_000_000

        def filter_trace(self, trace):
            setup.clock.advance_ns(len(trace) * self.ns_per_byte)
            return trace, 1, 0, len(trace), len(trace)

    compiled = Slow()
    trace_filter = trace_filter_module.TraceFilter(compiled, 1, setup.clock)
    assert trace_filter.turn_bytes(1 << 20) == FIRST_TURN_BYTES
    trace_filter.filter(bytes(FIRST_TURN_BYTES), 0)
    assert trace_filter.turn_bytes(1 << 20) == MIN_TURN_BYTES
    compiled.ns_per_byte = 1000
    trace_filter.filter(bytes(MIN_TURN_BYTES), 0)
    assert trace_filter.turn_bytes(1 << 20) == TURN_NS // 1000
    assert trace_filter.turn_bytes(100) == 100
