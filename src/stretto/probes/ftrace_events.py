"""Reads the format files of kernel events, and makes the table of `_native.FtraceReader` of them.

An event whose name FtraceEvent knows is written as that message, with the fields that both have.
Any other event is generic: a field of FtraceEvent with a number of its own, described in the trace.
"""

from __future__ import annotations

import re

from stretto.protos.trace import FtraceEvent, FtraceEventBundle
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    FieldRow: TypeAlias = tuple[int, int, int, int, bytes | None]
    Row: TypeAlias = tuple[int, int, int, tuple[FieldRow, ...], bytes | None, bytes | None]
    """An event as `_native.FtraceReader` takes it."""

FIRST_GENERIC = 65_536
"""The number of the first generic event in FtraceEvent."""

PLAIN, COMPACT_SWITCH, COMPACT_WAKING, PRINT = 1, 2, 3, 4
SIGNED, UNSIGNED, CHARS, REST, LOC_STRING, LOC_BYTES, U64_ARRAY, DEVICE, ADDRESS = range(9)
"""Kinds of fields (native/probes/ftrace_event.h)."""

COMPACT = {
    "sched/sched_switch": (COMPACT_SWITCH, ("prev_state", "next_pid", "next_prio", "next_comm")),
    "sched/sched_waking": (COMPACT_WAKING, ("pid", "target_cpu", "prio", "comm")),
}
"""The events of CompactSched, and their fields in its order."""

FUNCTION_CALLS = ("ftrace/funcgraph_entry", "ftrace/funcgraph_exit")
"""Events of the tracer function_graph. Their field `func` is an address."""

DYNAMIC_GROUPS = {"kprobes", "uprobes", "synthetic", "eprobes"}
"""Groups of events that users define. Their names don't tell which message an event has."""

_ID = re.compile(r"^ID: (\d{1,5})$", re.M)
_FIELD = re.compile(
    r"^\tfield:([^;\n]{1,200});\toffset:(\d{1,5});\tsize:(\d{1,5});\tsigned:([01]);$", re.M
)
_DECLARATION = re.compile(r"(.*?)\s*\b([A-Za-z_]\w*)(\[[^\]]*\])?")
_COMMON = "common_"
_BYTE_TYPES = ("u8", "__u8", "unsigned char")
_INTEGERS = (1, 2, 4, 8)
_SIGNED_TYPES = {"int32": 4, "int64": 8, "enum": 4, "sint32": 4, "sint64": 8}
_UNSIGNED_TYPES = {"bool": 1, "uint32": 4, "uint64": 8}
_STRINGS = (CHARS, REST, LOC_STRING)
_GENERIC_TYPES = {
    SIGNED: 3,
    **dict.fromkeys((UNSIGNED, DEVICE, ADDRESS), 4),
    LOC_BYTES: 12,
    **dict.fromkeys(_STRINGS, 9),
}
"""Types in a FieldDescriptorProto: int64, uint64, bytes, string."""
_LEGACY_VALUES = {3: 4, 4: 5, 9: 3}
"""Fields of GenericFtraceEvent.Field by these types: int_value, uint_value, str_value."""


class Field:
    """A field of an event, as its format file declares it. `kind` is None if it is unsupported."""

    __slots__ = ("kind", "name", "offset", "size")

    def __init__(self, name: str, offset: int, size: int, kind: int | None) -> None:
        self.name = name
        self.offset = offset
        self.size = size
        self.kind = kind

    def fits(self, proto_type: str) -> bool:
        """Whether the value can be written as this type without a change of its sign or range."""
        if self.kind == SIGNED:
            return self.size <= _SIGNED_TYPES.get(proto_type, 0)
        if self.kind == UNSIGNED:
            return self.size <= _UNSIGNED_TYPES.get(proto_type, 0)
        if self.kind in (U64_ARRAY, DEVICE, ADDRESS):
            return proto_type == "uint64"
        return proto_type == ("bytes" if self.kind == LOC_BYTES else "string")


class Format:
    """An event, as its format file declares it.

    Args:
        name: Group and name, such as `sched/sched_switch`.
        text: The format file.

    Raises:
        ValueError: The text has no ID.
    """

    def __init__(self, name: str, text: str) -> None:
        found = _ID.search(text)
        if found is None:
            raise ValueError(f"{name}: the format file has no ID")
        self.name = name
        self.id = int(found[1])
        self.fields = [f for f in map(_field, _FIELD.findall(text)) if f is not None]
        for field in self.fields:
            if name in FUNCTION_CALLS and field.name == "func" and field.kind == UNSIGNED:
                field.kind = ADDRESS


def _field(row: tuple[str, str, str, str]) -> Field | None:
    found = _DECLARATION.fullmatch(row[0])
    if found is None or found[2].startswith(_COMMON):
        return None
    kind = _kind(found[1], found[3] or "", int(row[2]), signed=row[3] == "1")
    return Field(found[2], int(row[1]), int(row[2]), kind)


def _kind(type_: str, array: str, size: int, *, signed: bool) -> int | None:
    if type_.startswith("__data_loc"):
        of_bytes = type_.removeprefix("__data_loc").strip().removesuffix("[]") in _BYTE_TYPES
        return None if size != 4 else LOC_BYTES if of_bytes else LOC_STRING
    if array:
        if type_ == "char":
            return CHARS if size else REST
        return U64_ARRAY if type_ == "unsigned long" and size % 8 == 0 and size else None
    if type_ == "char" and size == 0:
        return REST
    if type_ == "dev_t":
        return DEVICE
    if type_.startswith(("void *", "void*")) and size == 8:
        return ADDRESS
    if size not in _INTEGERS:
        return None
    return SIGNED if signed else UNSIGNED


class EventTable:
    """The events that one session records.

    Args:
        compact: Whether sched_switch and sched_waking are written as CompactSched.
        generic: Whether events that FtraceEvent doesn't know are written.
        dense: Whether these are messages of their own, or GenericFtraceEvent.
        filtered: Whether the reader has rules for the texts of ftrace/print.
    """

    def __init__(
        self,
        *,
        compact: bool = True,
        generic: bool = True,
        dense: bool = True,
        filtered: bool = False,
    ) -> None:
        self.rows: list[Row] = []
        self._compact = compact
        self._generic = generic
        self._dense = dense
        self._filtered = filtered
        self._generic_count = 0

    def add(self, format_: Format) -> bool:
        """Add an event; return False if it is generic, and generic events are not written."""
        group, name = format_.name.split("/")
        known = FtraceEvent.LAYOUT.find(name)
        if self._compact and (row := _compact_row(format_)):
            self.rows.append(row)
        elif known is not None and known.codec.is_message and group not in DYNAMIC_GROUPS:
            layout = known.codec.message_class.LAYOUT  # type: ignore[attr-defined]
            fields = ((f, layout.by_proto_name(f.name)) for f in format_.fields)
            numbered = tuple(
                (proto.number, f.offset, f.size, f.kind, None)
                for f, proto in fields
                if proto is not None and f.kind is not None and f.fits(proto.codec.kind)
            )
            form = PRINT if self._filtered and format_.name == "ftrace/print" else PLAIN
            self.rows.append((format_.id, known.number, form, numbered, None, None))
        elif self._generic:
            self.rows.append((self._generic_row if self._dense else _legacy_row)(format_))
        else:
            return False
        return True

    def add_constant(self, format_: Format, name: str, message: bytes) -> None:
        """Add an event that is written as a message of FtraceEvent which is always the same."""
        number = FtraceEvent.LAYOUT.field(name).number
        self.rows.append((format_.id, number, PLAIN, (), None, message))

    def _generic_row(self, format_: Format) -> Row:
        number = FIRST_GENERIC + self._generic_count
        self._generic_count += 1
        fields = [f for f in format_.fields if f.kind in _GENERIC_TYPES]
        descriptor = FtraceEventBundle.GenericEventDescriptor(
            field_id=number,
            group_name=format_.name.split("/")[0],
            event_descriptor=_descriptor(format_.name.split("/")[1], fields),
        )
        numbered = tuple(
            (at, f.offset, f.size, f.kind or SIGNED, None) for at, f in enumerate(fields, 1)
        )
        return format_.id, number, PLAIN, numbered, descriptor.encode(), None


def _legacy_row(format_: Format) -> Row:
    """Return the row of a generic event that is written as GenericFtraceEvent."""
    number = FtraceEvent.LAYOUT.field("generic").number
    fields = []
    for f in format_.fields:
        value = _LEGACY_VALUES.get(_GENERIC_TYPES.get(f.kind, 0)) if f.kind is not None else None
        if value is not None:
            label = bytes_field(1, f.name.encode())
            fields.append((value, f.offset, f.size, f.kind or SIGNED, label))
    name = bytes_field(1, format_.name.split("/")[1].encode())
    return format_.id, number, PLAIN, tuple(fields), None, name


def _compact_row(format_: Format) -> Row | None:
    """Return the row of an event of CompactSched; None if the event or its layout is another."""
    form, names = COMPACT.get(format_.name, (0, ()))
    fields = {f.name: f for f in format_.fields}
    if not form or not fields.keys() >= set(names):
        return None
    chosen = [fields[name] for name in names]
    if [f.kind for f in chosen] != [SIGNED, SIGNED, SIGNED, CHARS] or chosen[3].size != 16:
        return None
    fields_ = tuple((0, f.offset, f.size, f.kind or 0, None) for f in chosen)
    return format_.id, 0, form, fields_, None, None


def _descriptor(name: str, fields: Iterable[Field]) -> bytes:
    """Return a DescriptorProto with fields that are numbered from 1."""
    message = bytes_field(1, name.encode())
    for number, field in enumerate(fields, 1):
        type_ = _GENERIC_TYPES[field.kind or SIGNED]
        row = bytes_field(1, field.name.encode()) + varint_field(3, number)
        message += bytes_field(2, row + varint_field(4, 1) + varint_field(5, type_))
    return message
