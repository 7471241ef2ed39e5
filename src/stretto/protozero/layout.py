"""The layout of a message class: the names, numbers and order of its fields."""

from __future__ import annotations

from stretto.base.errors import ConfigError

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
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

    A config has a hundred fields, and a program uses ten of them. So a field is made when it is
    first asked for; until then the layout has only the text of the table.

    Args:
        name: path of the class in its module.
        text: the lines of its fields, as described in `stretto.protozero.table`.
        make: makes a field of its line; None if there are no fields.

    Attributes:
        name: path of the class in its module.
        made: the fields and extensions made so far, by their keys in `Message.__dict__`.
        read_plan: the fields that `merge_known_fields` decodes, by their tags.
    """

    __slots__ = (
        "_by_json_name", "_extensions", "_has_all_keys", "_keys", "_make", "_oneofs", "_places",
        "_planned", "_text", "made", "name", "read_plan",
    )  # fmt: skip

    def __init__(
        self, name: str, text: str = "", make: Callable[[str], Field] | None = None
    ) -> None:
        self.name = name
        self._text = f"\n{text}\n"
        self._make = make
        self.made: dict[str, Field] = {}
        self._keys: dict[int, str] = {}  # By number: those of fields made, at first.
        self._has_all_keys = False
        self._places: dict[str, int] = {}  # The order of declaration.
        self._extensions: dict[str, Field] = {}
        self._oneofs: dict[str, frozenset[str]] | None = None
        self._by_json_name: dict[str, Field] = {}
        self.read_plan: dict[int, list[Any]] = {}
        self._planned: set[int] = set()

    def find(self, key: str) -> Field | None:
        """Return the field with this attribute name, or the extension with this name in brackets.

        None if there is none.
        """
        if found := self.made.get(key):
            return found
        place = self._text.find(f"\n{key} ") + 1
        found = self._make_at(place) if place else None
        return found if found and found.name == key else None  # The key may have spaces.

    def numbered(self, number: int) -> Field | None:
        """Return the field or extension with this number; None if there is none."""
        key = self._keys.get(number)
        if key is not None:
            return self.made.get(key) or self.find(key)
        if self._has_all_keys:
            return None
        place = self._text.find(f" {number} ")  # Nothing else in a line is a word of digits.
        if place >= 0:
            return self._make_at(self._text.rindex("\n", 0, place) + 1)
        # Where one number is unknown, others will be, too, and a search takes 10 us.
        for line in filter(None, self._text.splitlines()):
            name, known, _ = line.split(" ", 2)
            self._keys[int(known)] = name
        self._has_all_keys = True
        return None

    def _make_at(self, place: int) -> Field:
        """Make the field whose line begins at a place of the text."""
        assert self._make is not None
        field = self._make(self._text[place : self._text.index("\n", place)])
        if field.oneof:
            field.rivals = self.oneofs[field.oneof]
        self._places[field.name] = place
        field = self.made.setdefault(field.name, field)  # Another thread may have made it, too.
        self._keys[field.number] = field.name
        return field

    @property
    def names(self) -> list[str]:
        """The attribute names of the fields of the schema, in the order of declaration."""
        return [line.partition(" ")[0] for line in self._text.splitlines() if line]

    @property
    def oneofs(self) -> dict[str, frozenset[str]]:
        """Names of the fields in each oneof. One set for all: TracePacket's has a hundred."""
        if self._oneofs is None:
            self._oneofs = _oneofs(self._text.splitlines())
        return self._oneofs

    @property
    def by_name(self) -> dict[str, Field]:
        """All fields of the schema, by attribute name."""
        return {name: self.field(name) for name in self.names}

    @property
    def by_number(self) -> dict[int, Field]:
        """All fields and extensions, by number."""
        fields = (*self.by_name.values(), *self._extensions.values())
        return {field.number: field for field in fields}

    def field(self, name: str) -> Field:
        """Return the field with this attribute name; raise ConfigError if there is none."""
        field = self.made.get(name) or self.find(name)
        if field is None:
            raise ConfigError(f"{self.name} has no field {name!r}{self.advice(name)}")
        return field

    def by_proto_name(self, name: str) -> Field | None:
        """Return the field with this schema name, or the extension with this name in brackets."""
        for key in (name, name + "_"):
            field = self.find(key)
            if field is not None and field.proto_name == name:
                return field
        return None

    @property
    def by_json_name(self) -> dict[str, Field]:
        """Fields and extensions by their names in JSON."""
        if not self._by_json_name:
            self._by_json_name = {each.json_name: each for each in self.by_number.values()}
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
        if kind and field.name not in self._extensions and field.plain and not field.implicit:
            self.read_plan[field.number << 3 | codec.wire_type] = [
                field.name, kind, field.repeated, tuple(field.rivals - {field.name}),
                codec if codec.is_message else None, None, None,
            ]  # fmt: skip

    def add_extension(self, extension: ExtensionField) -> None:
        """Register an extension; raise ConfigError if its number is taken."""
        field = extension.field
        known = self.numbered(field.number) or field
        if known.name != field.name:
            raise ConfigError(
                f"{extension.name} has the number {field.number} of {known.path}:"
                " of two schemas that give it a meaning, load one"
            )
        self._keys[field.number] = field.name
        self.made[field.name] = self._extensions[field.name] = field
        self._places.setdefault(field.name, len(self._text) + len(self._places))
        self._by_json_name = {}

    def extension(self, extension: ExtensionField) -> Field:
        """Return the field of an extension; raise ConfigError if it extends another message."""
        field: Field | None = getattr(extension, "field", None)
        if field is None:
            raise ConfigError(
                f"{self.name}[…] takes an extension, not {extension!r}; fields are attributes"
            )
        if self._extensions.get(field.name) is field:
            return field
        raise ConfigError(f"{extension.name} extends {extension.extendee}, not {self.name}")

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Sort names of fields in the order of their declaration."""
        return sorted(names, key=self._places.__getitem__)

    def advice(self, name: str) -> str:
        """Return a suggestion for a misspelled field name, to append to an error; may be empty."""
        from difflib import get_close_matches

        if len(name) > _MAX_ADVISED_CHARS:
            return ""
        close = get_close_matches(name, self.names, 1)
        return f"; did you mean {close[0]!r}?" if close else ""


def _oneofs(lines: list[str]) -> dict[str, frozenset[str]]:
    members: dict[str, list[str]] = {}
    for line in lines:
        if " oneof=" in line:
            oneof = line.partition(" oneof=")[2].partition(" ")[0]
            members.setdefault(oneof, []).append(line.partition(" ")[0])
    return {oneof: frozenset(names) for oneof, names in members.items()}
