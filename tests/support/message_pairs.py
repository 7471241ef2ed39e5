"""Pairs of message classes: Stretto's and google.protobuf's class for the same message.

The module also generates random values for both classes of a pair.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stretto.protos import config, ipc, trace
from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import MapField, RepeatedField
from stretto.protozero.generate import IPC_PROTOS
from stretto.protozero.generator import descriptor_set, proto_parser
from stretto.protozero.generator.schema import File
from stretto.protozero.message import Message
from stretto.protozero.typed_decoder import TypedDecoder
from tests.support.examples import examples
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


@cache
def all_pairs() -> list[Pair]:
    """Return each message class of Stretto with Google's class for the same message."""
    pairs = pair_up((config, trace), "perfetto.protos.", perfetto_messages())
    pairs += pair_up((ipc,), "perfetto.protos.", messages_of(ipc_schema(), perfetto=True))
    for name in ("sample", "sample3"):
        file, module = module_of(SAMPLES / f"{name}.proto", f"stretto_{name}")
        pairs += pair_up((load(module),), file.package + ".", messages_of(file))
    return pairs


# --- Functions that store equal values in Google's and in Stretto's classes


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


def write(writer: Any, ours: type[Message], values: dict[str, Any]) -> None:
    """Write values with the methods of a generated writer."""
    fields = {field.proto_name: field for field in ours.LAYOUT.by_name.values()}
    for name, value in values.items():
        field = fields[name]
        packed = isinstance(field, RepeatedField) and field.packed
        method = getattr(writer, f"{'add' if field.repeated and not packed else 'set'}_{name}")
        if isinstance(field, MapField):
            for key, each in make(ours, {name: value}).set_fields().get(field.name, {}).items():
                method(key, each)
        elif isinstance(field.codec, MessageCodec):
            for each in value if field.repeated else [value]:
                with method() as nested:
                    write(nested, field.codec.message_class, each)
        else:
            for each in value if field.repeated and not packed else [value]:
                method(each)


def decoded(decoder: TypedDecoder) -> dict[str, Any]:
    """Return the value of each field that a typed decoder has, by field name."""
    assert decoder.bytes_left == 0
    return {
        field.proto_name: _plain(getattr(decoder, name))
        for name, field in decoder.LAYOUT.by_name.items()
        if name in decoder
    }


def _plain(value: Any) -> Any:
    if isinstance(value, TypedDecoder):
        return decoded(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


# --- The smallest and the largest value of every field type

_INT32, _UINT32 = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1)
_INT64, _UINT64 = (-(1 << 63), (1 << 63) - 1), (0, (1 << 64) - 1)
# Smallest and largest value of each FieldDescriptorProto.Type.
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


# --- Strategies for random values

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
    max_examples=examples(300),
)
