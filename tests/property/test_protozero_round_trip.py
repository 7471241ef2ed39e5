"""Stretto and google.protobuf read each other's encoding of every message of every schema.

Google's classes parse what Stretto writes with value classes and writers. Stretto's value
classes and typed decoders read what Google writes. Only enum values of the schema are tested,
because Google's proto2 classes store unknown ones in the unknown fields.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.errors import DecodeError
from stretto.protos import ipc
from stretto.protozero import wire
from stretto.protozero.codec import MessageCodec
from stretto.protozero.decoder import Decoder
from tests.support.examples import examples
from tests.support.message_pairs import (
    Pair,
    all_pairs,
    contents,
    decoded,
    extreme,
    fill,
    make,
    relaxed,
    write,
)

PAIRS = all_pairs()


def check(pair: Pair, values: dict[str, Any]) -> None:
    ours, theirs = make(pair[0], values), fill(pair[1](), values)
    assert pair[1].FromString(ours.encode()) == theirs
    assert pair[0].decode(theirs.SerializeToString()) == ours
    assert pair[0].decode(ours.encode()) == ours
    writer = pair[0].Writer()
    write(writer, pair[0], values)
    written = writer.finish()
    assert pair[1].FromString(written) == theirs
    assert pair[0].decode(written) == ours
    assert make(pair[0], decoded(pair[0].Decoder(ours.encode()))) == ours


@pytest.mark.thorough
@pytest.mark.once
def test_stretto_and_google_read_all_fields_that_the_other_writes() -> None:
    fields = 0
    for pair in PAIRS:
        check(pair, {})
        for field in pair[1].DESCRIPTOR.fields:
            for which in (0, 1):
                check(pair, {field.name: extreme(field, which)})
            fields += 1
    print(f"round trips: {len(PAIRS)} messages, {fields} fields")
    assert len(PAIRS) > 1000
    assert fields > 5000


def test_classes_have_exactly_the_fields_of_the_schema() -> None:
    for ours, theirs in PAIRS:
        mine = {field.proto_name: number for number, field in ours.LAYOUT.by_number.items()}
        assert mine == {field.name: field.number for field in theirs.DESCRIPTOR.fields}
        assert [f.proto_name for f in ours.LAYOUT.by_name.values()] == list(mine)


def test_defaults_equal_those_of_the_schema() -> None:
    for ours, theirs in PAIRS:
        mine, other = ours(), theirs()
        for field in ours.LAYOUT.by_name.values():
            if not field.repeated and not isinstance(field.codec, MessageCodec):
                assert getattr(mine, field.name) == getattr(other, field.proto_name), field.path


# --- Tests with random messages


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_stretto_and_google_read_each_others_random_messages(
    pair: Pair, data: st.DataObject
) -> None:
    check(pair, data.draw(contents(pair[1].DESCRIPTOR)))


BY_NAME = {ours.__qualname__: (ours, theirs) for ours, theirs in PAIRS}


@pytest.mark.parametrize("name", ["TracePacket", "TraceConfig", "Everything", "Implicit"])
@settings(relaxed, max_examples=examples(100))
@given(data=st.data())
def test_stretto_and_google_read_random_contents_of_large_messages(
    name: str, data: st.DataObject
) -> None:
    pair = BY_NAME[name]
    check(pair, data.draw(contents(pair[1].DESCRIPTOR)))


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_merging_equals_decoding_concatenated_messages(pair: Pair, data: st.DataObject) -> None:
    """Stretto and Google merge two messages to equal results."""
    one, two = (data.draw(contents(pair[1].DESCRIPTOR)) for _ in range(2))
    merged, theirs = make(pair[0], one), fill(pair[1](), one)
    other = make(pair[0], two)
    joined = merged.encode() + other.encode()
    merged.merge(other)
    theirs.MergeFrom(fill(pair[1](), two))
    assert merged == pair[0].decode(joined)
    assert pair[1].FromString(merged.encode()) == theirs


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_unknown_fields_survive_byte_for_byte(pair: Pair, data: st.DataObject) -> None:
    encoded = fill(pair[1](), data.draw(contents(pair[1].DESCRIPTOR))).SerializeToString()
    stranger = ipc.SyncRequest.decode(encoded)
    assert stranger.encode() == encoded
    wrapped = wire.bytes_field(999, encoded) + wire.bytes_field(2, encoded)
    assert ipc.RegisterTraceWriterRequest.decode(wrapped).encode() == wrapped


# --- Tests with damaged messages


@st.composite
def damaged(draw: st.DrawFn, pair: Pair) -> bytes:
    """Draw an encoded message with some bytes changed, removed or added."""
    data = bytearray(make(pair[0], draw(contents(pair[1].DESCRIPTOR))).encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_damaged_messages_are_decoded_or_refused(pair: Pair, data: st.DataObject) -> None:
    encoded = data.draw(damaged(pair) | st.binary(max_size=100))
    try:
        message = pair[0].decode(encoded)
    except DecodeError:
        return
    assert pair[0].decode(message.encode()).encode() == message.encode()


@settings(deadline=None, max_examples=examples(500))
@given(st.binary(max_size=100))
def test_decoder_accepts_any_bytes(data: bytes) -> None:
    decoder = Decoder(data)
    for field in decoder:
        assert 1 <= field.number < 1 << 24
        for convert in (field.as_int32, field.as_sint64, field.as_double, field.as_string):
            convert()
        list(field.as_message())
    assert (decoder.error is None) == (decoder.bytes_left == 0)
    read = len(data) - decoder.bytes_left
    again = Decoder(data[:read])
    list(again)
    assert again.bytes_left == 0
