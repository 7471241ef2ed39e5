"""The native and the pure Python reader of protobuf messages return the same result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.errors import DecodeError
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import IPCFrame
from stretto.protozero import message as message_module
from stretto.protozero.message import MAX_DEPTH, Message
from stretto.protozero.wire import bytes_field, tag, varint, varint_field
from tests.support.examples import examples

numbers = st.one_of(st.integers(1, 40), st.sampled_from([100, 5000, 1 << 28]))
values = st.one_of(st.integers(0, 300), st.sampled_from([1 << 31, (1 << 32) + 1, (1 << 64) - 1]))
scalars = st.builds(varint_field, numbers, values)
fixed = st.builds(lambda number: tag(number, 5) + b"abcd", numbers) | st.builds(
    lambda number: tag(number, 1) + b"abcdefgh", numbers
)
texts = st.builds(bytes_field, numbers, st.binary(max_size=6))


def nested(fields: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(bytes_field, numbers, st.lists(fields, max_size=5).map(b"".join))


fields = st.recursive(scalars | fixed | texts, nested, max_leaves=30)
messages = st.one_of(
    st.lists(fields, max_size=8).map(b"".join),
    st.builds(lambda made, end: made[:end], st.lists(fields).map(b"".join), st.integers(0, 40)),
    st.binary(max_size=20),
)


def read(kind: type[Message], data: bytes) -> tuple[object, ...]:
    """Decode a message; return it with its encoding, or the error."""
    try:
        made = kind.decode(data)
    except DecodeError as error:
        return (str(error),)
    return made, made.encode(), repr(made)


def read_without_native(kind: type[Message], data: bytes) -> tuple[object, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_module, "merge_known_fields", lambda *arguments: arguments[3])
        return read(kind, data)


@settings(max_examples=examples(1000))
@given(st.sampled_from([TraceConfig, IPCFrame, TraceConfig.TriggerConfig]), messages)
def test_native_and_python_readers_agree(kind: type[Message], data: bytes) -> None:
    assert read(kind, data) == read_without_native(kind, data)


@settings(max_examples=examples(300))
@given(messages, messages)
def test_readers_agree_when_a_message_is_merged_into_another(one: bytes, other: bytes) -> None:
    data = bytes_field(17, one) + bytes_field(17, other) + one + other
    assert read(TraceConfig, data) == read_without_native(TraceConfig, data)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 3 * MAX_DEPTH])
def test_readers_agree_on_the_depth_limit(depth: int) -> None:
    from stretto.protos.trace import FileDescriptorProto

    data = b""
    for _ in range(depth):
        data = bytes_field(3, data)  # 3 is the field DescriptorProto.nested_type
    data = bytes_field(4, data)  # 4 is the field FileDescriptorProto.message_type
    assert (
        read(FileDescriptorProto, data)[:1] == (read_without_native(FileDescriptorProto, data)[:1])
    )


def test_message_of_5000_fields_is_read() -> None:
    data = b"".join(bytes_field(17, b"") + varint_field(3, number) for number in range(5000))
    assert TraceConfig.decode(data) == TraceConfig.decode(
        bytes_field(17, b"") + varint_field(3, 4999)
    )
    strings = bytes_field(1, varint(5)) * 3000
    assert read(TraceConfig, strings) == read_without_native(TraceConfig, strings)
