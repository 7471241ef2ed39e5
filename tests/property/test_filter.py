"""The native trace filter equals a simple Python model for random schemas and messages."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stretto import _native
from stretto.base.errors import DecodeError
from stretto.protozero.filter.generator import FilterBytecodeGenerator
from stretto.protozero.wire import bytes_field, read_field, read_varint, tag, varint

MESSAGES = 3
FIELDS = [1, 2, 3, 15, 16, 126, 127, 128, 129, 300, 2048, (1 << 29) - 1]

Rules = list[dict[int, tuple[str, int]]]
RULES = st.one_of(
    st.just(("simple", 0)),
    st.tuples(st.just("nested"), st.integers(0, MESSAGES - 1)),
    st.tuples(st.just("string"), st.integers(0, 200)),
)
SCHEMAS = st.lists(
    st.dictionaries(st.sampled_from(FIELDS), RULES), min_size=MESSAGES, max_size=MESSAGES
)

NUMBERS = st.sampled_from(FIELDS)
PLAIN_FIELDS = st.one_of(
    st.builds(
        lambda number, value: tag(number, 0) + varint(value), NUMBERS, st.integers(0, 2**64 - 1)
    ),
    st.builds(lambda n, data: tag(n, 1) + data, NUMBERS, st.binary(min_size=8, max_size=8)),
    st.builds(lambda n, data: tag(n, 5) + data, NUMBERS, st.binary(min_size=4, max_size=4)),
    st.builds(bytes_field, NUMBERS, st.binary(max_size=20)),
)
MESSAGE_BYTES = st.recursive(
    st.lists(PLAIN_FIELDS, max_size=4).map(b"".join),
    lambda inner: st.lists(
        st.one_of(PLAIN_FIELDS, st.builds(bytes_field, NUMBERS, inner)), max_size=4
    ).map(b"".join),
    max_leaves=20,
)


def native(rules: Rules, strings: Any = None) -> _native.MessageFilter:
    generator = FilterBytecodeGenerator(54)
    for message in rules:
        for field in sorted(message):
            what, argument = message[field]
            if what == "simple":
                generator.add_simple_field(field)
            elif what == "nested":
                generator.add_nested_field(field, argument)
            else:
                generator.add_filter_string_field(field, semantic_type=argument)
        generator.end_message()
    return _native.MessageFilter(generator.serialize()[0], b"", strings)


def stars(text: bytes, semantic_type: int) -> bytes:
    return bytes([semantic_type]) * len(text)


def padded(value: int, width: int) -> bytes:
    out = bytearray(varint(value).ljust(width, b"\0"))
    for at in range(width - 1):
        out[at] |= 0x80
    return bytes(out)


def model(rules: Rules, data: bytes, message: int = 0) -> bytes:
    """Return the expected filtered message; raise DecodeError if `data` is malformed."""
    out, pos = b"", 0
    while pos < len(data):
        if read_varint(data, pos, len(data))[0] >= 1 << 32:
            raise DecodeError("a tag above 32 bits")
        number, wire, value, after = read_field(data, pos, len(data))
        what, argument = rules[message].get(number, ("denied", 0))
        if wire != 2:
            if what == "simple":
                size = {1: 8, 5: 4}.get(wire)
                out += tag(number, wire)
                out += value.to_bytes(size, "little") if size else varint(value)
        elif what != "denied":
            payload, width = data[value:after], len(varint(after - value))
            if what == "nested":
                payload = model(rules, payload, argument)
            elif what == "string":
                payload = stars(payload, argument)
            out += tag(number, 2) + padded(len(payload), width) + payload
        pos = after
    return out


def modelled(rules: Rules, data: bytes) -> bytes | None:
    try:
        return model(rules, data)
    except DecodeError:
        return None


@given(SCHEMAS, MESSAGE_BYTES)
def test_filtered_message_equals_the_model(rules: Rules, data: bytes) -> None:
    assert native(rules, stars).filter(data) == modelled(rules, data)


@given(SCHEMAS, st.binary(max_size=60))
def test_filtered_random_bytes_equal_the_model(rules: Rules, data: bytes) -> None:
    assert native(rules, stars).filter(data) == modelled(rules, data)


@given(SCHEMAS, MESSAGE_BYTES, st.data())
def test_filtered_damaged_messages_equal_the_model(
    rules: Rules, data: bytes, draw: st.DataObject
) -> None:
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 3)) if data else 0):
        damaged[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert native(rules, stars).filter(damaged) == modelled(rules, bytes(damaged))


@given(SCHEMAS)
def test_filter_returns_the_rule_of_each_field(rules: Rules) -> None:
    loaded = native(rules)
    for number, message in enumerate(rules):
        for field in FIELDS:
            assert loaded.query(number, field) == message.get(field)


@given(SCHEMAS, st.lists(MESSAGE_BYTES, max_size=5))
def test_filtered_trace_equals_the_model(rules: Rules, packets: list[bytes]) -> None:
    left = [modelled(rules, packet) for packet in packets]
    trace, count, malformed, before, after = native(rules, stars).filter_trace(
        b"".join(bytes_field(1, packet) for packet in packets)
    )
    assert trace == b"".join(bytes_field(1, packet or b"") for packet in left)
    assert (count, malformed) == (len(packets), left.count(None))
    assert before == sum(map(len, packets))
    assert after == sum(len(packet or b"") for packet in left)
