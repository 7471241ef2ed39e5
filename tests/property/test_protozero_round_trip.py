"""Ours and google.protobuf read each other: every message of every schema.

Values go both ways: ours written and theirs parsed, theirs written and ours
decoded. Enum values are the schema's: for unknown ones Google's proto2 classes
have no place but the unknown fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stretto.base.errors import DecodeError
from stretto.protos import config, ipc, trace
from stretto.protozero import wire
from stretto.protozero.codec import MessageCodec
from stretto.protozero.decoder import Decoder
from stretto.protozero.field import MapField
from stretto.protozero.generate import IPC_PROTOS
from stretto.protozero.generator import descriptor_set, proto_parser
from stretto.protozero.generator.schema import File
from stretto.protozero.message import Message
from tests.support.generated import load, module_of
from tests.support.google_classes import PERFETTO, messages_of, perfetto_messages

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "tests" / "unit" / "protozero"

Pair = tuple[type[Message], Any]


def ipc_schema() -> File:
    perfetto = descriptor_set.read_module(PERFETTO)
    files = proto_parser.parse(sorted((ROOT / IPC_PROTOS).glob("*.proto")), perfetto)
    messages = [message for file in files for message in file.messages]
    return File(package=files[0].package, messages=messages)


def our_class(modules: tuple[Any, ...], path: list[str]) -> type[Message]:
    (found,) = (getattr(module, path[0]) for module in modules if path[0] in dir(module))
    for name in path[1:]:
        found = getattr(found, name)
    return found


def pair_up(modules: tuple[Any, ...], package: str, theirs: dict[str, Any]) -> list[Pair]:
    names = sorted(theirs)
    return [
        (our_class(modules, name.removeprefix(package).split(".")), theirs[name]) for name in names
    ]


def all_pairs() -> list[Pair]:
    """Each message class of ours with Google's for the same message."""
    pairs = pair_up((config, trace), "perfetto.protos.", perfetto_messages())
    pairs += pair_up((ipc,), "perfetto.protos.", messages_of(ipc_schema(), perfetto=True))
    for name in ("sample", "sample3"):
        file, module = module_of(SAMPLES / f"{name}.proto", f"stretto_{name}")
        pairs += pair_up((load(module),), file.package + ".", messages_of(file))
    return pairs


PAIRS = all_pairs()

# --- the same values, in their classes and in ours ----------------------------------------------


def is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def fill(theirs: Any, values: dict[str, Any]) -> Any:
    for name, value in values.items():
        field = theirs.DESCRIPTOR.fields_by_name[name]
        target = getattr(theirs, name)
        if is_map(field):
            inner = field.message_type.fields_by_name["value"].message_type
            for key, each in value.items():
                if inner:
                    fill(target[key], each)
                else:
                    target[key] = each
        elif field.message_type and field.is_repeated:
            for each in value:
                fill(target.add(), each)
        elif field.message_type:
            target.SetInParent()
            fill(target, value)
        elif field.is_repeated:
            target.extend(value)
        else:
            setattr(theirs, name, value)
    return theirs


def make(ours: type[Message], values: dict[str, Any]) -> Message:
    fields = {field.proto_name: field for field in ours.LAYOUT.by_name.values()}
    message = ours()
    for name, value in values.items():
        field = fields[name]
        codec = field.value_codec if isinstance(field, MapField) else field.codec
        if isinstance(codec, MessageCodec):
            inner = codec.message_class
            if isinstance(field, MapField):
                value = {key: make(inner, each) for key, each in value.items()}
            elif field.repeated:
                value = [make(inner, each) for each in value]
            else:
                value = make(inner, value)
        setattr(message, field.name, value)
    return message


def check(pair: Pair, values: dict[str, Any]) -> None:
    ours, theirs = make(pair[0], values), fill(pair[1](), values)
    assert pair[1].FromString(ours.encode()) == theirs
    assert pair[0].decode(theirs.SerializeToString()) == ours
    assert pair[0].decode(ours.encode()) == ours


# --- every field of every message, with the smallest and the largest value -----------------------

_INT32, _UINT32 = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1)
_INT64, _UINT64 = (-(1 << 63), (1 << 63) - 1), (0, (1 << 64) - 1)
# By FieldDescriptorProto.Type.
EXTREMES: dict[int, tuple[Any, Any]] = {
    1: (-1.7976931348623157e308, 5e-324),
    2: (-3.4028234663852886e38, 1.401298464324817e-45),
    **dict.fromkeys((3, 16, 18), _INT64),
    **dict.fromkeys((5, 15, 17), _INT32),
    **dict.fromkeys((4, 6), _UINT64),
    **dict.fromkeys((7, 13), _UINT32),
    8: (False, True),
    9: ("", "é\U0001f600\0" * 50),
    12: (b"", bytes(range(256))),
}


def extreme(field: Any, which: int) -> Any:
    if is_map(field):
        parts = field.message_type.fields_by_name
        return {extreme(parts["key"], which): extreme(parts["value"], which)}
    if field.message_type:
        fields = field.message_type.fields
        value: Any = {fields[0].name: extreme(fields[0], which)} if fields and which else {}
        value = {} if fields and fields[0].message_type else value
    elif field.enum_type:
        value = (min, max)[which](field.enum_type.values_by_number)
    else:
        value = EXTREMES[field.type][which]
    return [value] * (which + 1) if field.is_repeated else value


def test_every_field_of_every_message() -> None:
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


def test_defaults_are_the_schemas() -> None:
    for ours, theirs in PAIRS:
        mine, other = ours(), theirs()
        for field in ours.LAYOUT.by_name.values():
            if not field.repeated and not isinstance(field.codec, MessageCodec):
                assert getattr(mine, field.name) == getattr(other, field.proto_name), field.path


# --- random messages -----------------------------------------------------------------------------

SCALARS: dict[int, st.SearchStrategy[Any]] = {
    1: st.floats(allow_nan=False),
    2: st.floats(width=32, allow_nan=False),
    **{kind: st.integers(*EXTREMES[kind]) for kind in (3, 4, 5, 6, 7, 13, 15, 16, 17, 18)},
    8: st.booleans(),
    9: st.text(max_size=200),
    12: st.binary(max_size=200),
}


def element(field: Any, depth: int) -> st.SearchStrategy[Any]:
    if field.message_type:
        return contents(field.message_type, depth + 1)
    if field.enum_type:
        return st.sampled_from(sorted(field.enum_type.values_by_number))
    return SCALARS[field.type]


@st.composite
def contents(draw: st.DrawFn, descriptor: Any, depth: int = 0) -> dict[str, Any]:
    if depth > 3 or not descriptor.fields:
        return {}
    chosen = draw(st.lists(st.sampled_from(list(descriptor.fields)), max_size=5, unique=True))
    values: dict[str, Any] = {}
    for field in chosen:
        if is_map(field):
            parts = field.message_type.fields_by_name
            key, value = (element(parts[name], depth) for name in ("key", "value"))
            values[field.name] = draw(st.dictionaries(key, value, max_size=3))
        elif field.is_repeated:
            values[field.name] = draw(st.lists(element(field, depth), max_size=3))
        else:
            values[field.name] = draw(element(field, depth))
    return values


relaxed = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    max_examples=300,
)


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_random_messages(pair: Pair, data: st.DataObject) -> None:
    check(pair, data.draw(contents(pair[1].DESCRIPTOR)))


BY_NAME = {ours.__qualname__: (ours, theirs) for ours, theirs in PAIRS}


@pytest.mark.parametrize("name", ["TracePacket", "TraceConfig", "Everything", "Implicit"])
@settings(relaxed, max_examples=100)
@given(data=st.data())
def test_random_contents_of_the_messages_that_matter(name: str, data: st.DataObject) -> None:
    pair = BY_NAME[name]
    check(pair, data.draw(contents(pair[1].DESCRIPTOR)))


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_merging_is_concatenating(pair: Pair, data: st.DataObject) -> None:
    """As Google's classes merge."""
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


# --- hostile input -------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, pair: Pair) -> bytes:
    """An encoded message with some bytes changed, removed or added."""
    data = bytearray(make(pair[0], draw(contents(pair[1].DESCRIPTOR))).encode())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_damaged_messages_decode_or_are_refused(pair: Pair, data: st.DataObject) -> None:
    encoded = data.draw(damaged(pair) | st.binary(max_size=100))
    try:
        message = pair[0].decode(encoded)
    except DecodeError:
        return
    assert pair[0].decode(message.encode()).encode() == message.encode()


@settings(deadline=None, max_examples=500)
@given(st.binary(max_size=100))
def test_the_decoder_takes_anything(data: bytes) -> None:
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
