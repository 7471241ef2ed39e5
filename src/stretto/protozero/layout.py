"""The layout of a message class: the names, numbers and order of its fields."""

from __future__ import annotations

from stretto.base.errors import ConfigError

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from stretto.protozero.field import Field

    class ExtensionField(Protocol):
        """The attributes of an `Extension` that a layout uses."""

        name: str
        extendee: str
        field: Field


_MAX_ADVISED_CHARS = 100
"""The search for a similar name takes quadratic time in the length of the name."""


_NATIVE_KINDS = {
    "bool": "b",
    **dict.fromkeys(("int32", "sfixed32", "enum"), "i"),
    **dict.fromkeys(("uint32", "fixed32"), "I"),
    **dict.fromkeys(("int64", "sfixed64"), "q"),
    **dict.fromkeys(("uint64", "fixed64"), "Q"),
    "string": "s",
    "bytes": "y",
}
"""Type codes of the scalars that native/bind/protozero/message_reader.c decodes."""


class Layout:
    """The name and the fields of a message class.

    Attributes:
        name: path of the class in its module.
        by_name: fields of the schema, by attribute name.
        by_key: fields and extensions, by their keys in `Message.__dict__`.
        by_number: fields and extensions, by number.
        oneofs: names of the fields in each oneof.
        read_plan: the fields that `merge_known_fields` decodes, by their tags.
    """

    __slots__ = (
        "_by_json_name", "_order", "_planned", "by_key", "by_name", "by_number", "name", "oneofs",
        "read_plan",
    )  # fmt: skip

    def __init__(self, name: str, fields: list[Field]) -> None:
        self.name = name
        self.by_name = {field.name: field for field in fields}
        self.by_key = dict(self.by_name)
        self.by_number = {field.number: field for field in fields}
        self._by_json_name: dict[str, Field] = {}
        self.read_plan: dict[int, list[Any]] = {}
        self._planned: set[int] = set()
        self._order = {field.name: at for at, field in enumerate(fields)}
        self.oneofs: dict[str, frozenset[str]] = {}
        for oneof in {field.oneof for field in fields} - {""}:
            members = frozenset(field.name for field in fields if field.oneof == oneof)
            self.oneofs[oneof] = members
            for member in members:  # One set for all: TracePacket has a oneof of a hundred fields.
                self.by_name[member].rivals = members

    def field(self, name: str) -> Field:
        """Return the field with this attribute name; raise ConfigError if there is none."""
        try:
            return self.by_name[name]
        except KeyError:
            raise ConfigError(f"{self.name} has no field {name!r}{self.advice(name)}") from None

    def by_proto_name(self, name: str) -> Field | None:
        """Return the field with this schema name, or the extension with this name in brackets."""
        for key in (name, name + "_"):
            field = self.by_key.get(key)
            if field is not None and field.proto_name == name:
                return field
        return None

    @property
    def by_json_name(self) -> dict[str, Field]:
        """Fields and extensions by their names in JSON."""
        if len(self._by_json_name) != len(self.by_key):
            self._by_json_name = {field.json_name: field for field in self.by_key.values()}
        return self._by_json_name

    def plan(self, field: Field) -> None:
        """Add a field to `read_plan`, after `Field.read` has decoded it for the first time.

        `Field.read` goes on to decode maps, floating point, zigzag, implicit fields of proto3,
        packed elements and extensions.
        """
        if field.number in self._planned:
            return
        self._planned.add(field.number)
        codec = field.codec
        kind = "m" if codec.is_message else _NATIVE_KINDS.get(codec.kind)
        known = self.by_name.get(field.name) is field
        if kind and known and field.plain and not field.implicit:
            self.read_plan[field.number << 3 | codec.wire_type] = [
                field.name, kind, field.repeated, tuple(field.rivals - {field.name}),
                codec if codec.is_message else None, None, None,
            ]  # fmt: skip

    def add_extension(self, extension: ExtensionField) -> None:
        """Register an extension; raise ConfigError if its number is taken."""
        field = extension.field
        known = self.by_number.setdefault(field.number, field)
        if known.name != field.name:
            raise ConfigError(
                f"{extension.name} has the number {field.number} of {known.path}:"
                " of two schemas that give it a meaning, load one"
            )
        self.by_number[field.number] = self.by_key[field.name] = field
        self._order.setdefault(field.name, len(self._order))

    def extension(self, extension: ExtensionField) -> Field:
        """Return the field of an extension; raise ConfigError if it extends another message."""
        field: Field | None = getattr(extension, "field", None)
        if field is None:
            raise ConfigError(
                f"{self.name}[…] takes an extension, not {extension!r}; fields are attributes"
            )
        if self.by_key.get(field.name) is field:
            return field
        raise ConfigError(f"{extension.name} extends {extension.extendee}, not {self.name}")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Sort names of fields in the order of their declaration."""
        return sorted(names, key=self._order.__getitem__)

    def advice(self, name: str) -> str:
        """Return a suggestion for a misspelled field name, to append to an error; may be empty."""
        from difflib import get_close_matches

        if len(name) > _MAX_ADVISED_CHARS:
            return ""
        close = get_close_matches(name, self.by_name, 1)
        return f"; did you mean {close[0]!r}?" if close else ""
