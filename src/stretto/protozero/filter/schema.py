"""Generates a filter from message classes: allows all fields of a schema except annotated ones.

A schema filter contains every message that can be reached from a root. An annotated field is
removed from the trace, or its text is rewritten::

    schema = SchemaFilter(
        Trace,
        {
            "TrackEvent.debug_annotations": DENY,
            "PrintFtraceEvent.buf": FilterString(semantic_type=ATRACE),
        },
    )
    schema.dedupe()
    config.trace_filter.bytecode_v2, overlay = schema.generate()

The service requires `Trace` as the root.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import MapField
from stretto.protozero.filter import bytecode
from stretto.protozero.filter.generator import FilterBytecodeGenerator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Final

    from stretto.protozero.field import Field
    from stretto.protozero.message import Message


class Annotation:
    """A rule for a field of the schema: `DENY`, `PASSTHROUGH` or a `FilterString`."""

    __slots__ = ()


class FilterString(Annotation):
    """Annotation of a string that is rewritten by the rules of the filter.

    Args:
        semantic_type: Type of its content (see `strings`); 0 if unspecified.
        allow_in_v1: Whether readers that can't rewrite strings keep this string; otherwise these
            readers drop the string.
        allow_in_v2: Whether readers without support for semantic types apply the rules for
            unspecified strings; otherwise these readers drop the string.
    """

    __slots__ = ("allow_in_v1", "allow_in_v2", "semantic_type")

    def __init__(
        self, semantic_type: int = 0, *, allow_in_v1: bool = False, allow_in_v2: bool = False
    ) -> None:
        self.semantic_type = semantic_type
        self.allow_in_v1 = allow_in_v1
        self.allow_in_v2 = allow_in_v2


DENY: Final = Annotation()
"""The field is dropped."""
PASSTHROUGH: Final = Annotation()
"""A message is passed on unchanged, with its unknown fields."""


class FilteredField:
    """An allowed field; simple if it has neither a nested message nor a string annotation."""

    __slots__ = ("annotation", "kind", "name", "nested", "number")

    def __init__(self, number: int, name: str, kind: str) -> None:
        self.number = number
        self.name = name
        self.kind = kind
        self.nested: FilteredMessage | None = None
        self.annotation: Annotation | None = None

    @property
    def simple(self) -> bool:
        return self.nested is None and not isinstance(self.annotation, FilterString)


class FilteredMessage:
    """A message and its allowed fields, by number."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[int, FilteredField] = {}

    @property
    def is_leaf(self) -> bool:
        return all(field.nested is None for field in self.fields.values())

    def in_order(self) -> list[FilteredField]:
        """Return the fields ordered by number."""
        return [self.fields[number] for number in sorted(self.fields)]


class SchemaFilter:
    """The messages that can be reached from a root, with their allowed fields.

    Args:
        root: A generated message class.
        annotations: Annotations by `Message.field`, with the names of the schema.

    Raises:
        ConfigError: An annotation names an unknown field, or doesn't fit the type of the field.
    """

    def __init__(
        self, root: type[Message], annotations: Mapping[str, Annotation] | None = None
    ) -> None:
        self.messages: list[FilteredMessage] = []
        self._annotations = dict(annotations or {})
        for path, annotation in self._annotations.items():
            if not isinstance(annotation, Annotation):
                # Ignoring an annotation would allow a field that should be hidden.
                raise ConfigError(
                    f"{path} has the annotation {annotation!r}: use DENY, PASSTHROUGH or a "
                    "FilterString()"
                )
        self._unused = set(self._annotations)
        self._by_class: dict[type[Message], FilteredMessage] = {}
        self._collect(root)
        if self._unused:
            raise ConfigError(
                f"{root.LAYOUT.name} reaches no {', '.join(sorted(self._unused))}: "
                "annotations are named Message.field, as in the schema"
            )

    def _collect(self, root: type[Message]) -> None:
        """Add all reachable messages, in the order of a depth-first search."""
        pending = [self._fields_of(root)]
        while pending:
            field_and_type = next(pending[-1], None)
            if field_and_type is None:
                pending.pop()
                continue
            field, nested = field_and_type
            if nested not in self._by_class:
                pending.append(self._fields_of(nested))
            field.nested = self._by_class[nested]

    def _fields_of(self, cls: type[Message]) -> Iterator[tuple[FilteredField, type[Message]]]:
        """Add a message with its fields; iterate over the fields that are messages."""
        message = self._by_class[cls] = self._add_message(cls.LAYOUT.name)
        nested = []
        for field in cls.LAYOUT.by_name.values():
            if isinstance(field, MapField):
                target, codec = self._add_entry(message, field), field.value_codec
            else:
                target, codec = self._add_field(message, field.proto_name, field), field.codec
            if target and target.annotation is None and isinstance(codec, MessageCodec):
                nested.append((target, codec.message_class))
        return iter(nested)

    def _add_message(self, name: str) -> FilteredMessage:
        message = FilteredMessage(name)
        self.messages.append(message)
        return message

    def _add_field(self, message: FilteredMessage, name: str, field: Field) -> FilteredField | None:
        added = FilteredField(field.number, name, field.codec.kind)
        path = f"{message.name}.{name}"
        added.annotation = self._annotations.get(path)
        self._unused.discard(path)
        if added.annotation is DENY:
            return None
        if isinstance(added.annotation, FilterString) and added.kind != "string":
            raise ConfigError(f"{path} is no string, but {added.kind}: only strings are rewritten")
        if added.annotation is PASSTHROUGH and not (
            field.codec.is_message or isinstance(field, MapField)
        ):
            raise ConfigError(f"{path} is no message: it is passed on without PASSTHROUGH")
        message.fields[field.number] = added
        return added

    def _add_entry(self, message: FilteredMessage, field: MapField) -> FilteredField | None:
        """Add a map field and the message of its entries; return the entry's value field."""
        outer = self._add_field(message, field.proto_name, field)
        if outer is None or outer.annotation is not None:
            return None
        entry = self._add_message(f"{message.name}.{field.proto_name}:entry")
        outer.nested = entry
        entry.fields[1] = FilteredField(1, "key", field.codec.kind)
        entry.fields[2] = FilteredField(2, "value", field.value_codec.kind)
        return entry.fields[2]

    def dedupe(self) -> None:
        """Merge messages that have the same allowed fields and no nested messages.

        The bytecode gets smaller; the filter stays equivalent.
        """
        first: dict[tuple[object, ...], FilteredMessage] = {}
        replaced = {
            message: first.setdefault(_identity(message), message)
            for message in self.messages
            if message.is_leaf
        }
        used = {self.messages[0]}
        for message in self.messages:
            for field in message.fields.values():
                if field.nested is not None:
                    field.nested = replaced.get(field.nested, field.nested)
                    used.add(field.nested)
        self.messages = [message for message in self.messages if message in used]

    def generate(self, version: int = bytecode.V2) -> tuple[bytes, bytes]:
        """Return the bytecode for readers of `version`, and an overlay for newer readers.

        The overlay is empty if it isn't needed.
        """
        generator = FilterBytecodeGenerator(version)
        index = {message: at for at, message in enumerate(self.messages)}
        for message in self.messages:
            for run in _runs(message.in_order()):
                _generate_run(generator, run, index)
            generator.end_message()
        return generator.serialize()


def _identity(message: FilteredMessage) -> tuple[object, ...]:
    return tuple((field.number, _rule(field)) for field in message.in_order())


def _rule(field: FilteredField) -> tuple[object, ...]:
    rule = field.annotation
    if not isinstance(rule, FilterString):
        return ()
    return (rule.semantic_type, rule.allow_in_v1, rule.allow_in_v2)


def _runs(fields: Sequence[FilteredField]) -> Iterator[list[FilteredField]]:
    """Group simple fields with consecutive numbers; other fields form groups of one."""
    run: list[FilteredField] = []
    for field in fields:
        if run and not (run[-1].simple and field.simple and field.number == run[-1].number + 1):
            yield run
            run = []
        run.append(field)
    if run:
        yield run


def _generate_run(
    generator: FilterBytecodeGenerator, run: list[FilteredField], index: dict[FilteredMessage, int]
) -> None:
    field = run[0]
    rule = field.annotation
    if len(run) > 1:
        generator.add_simple_field_range(field.number, len(run))
    elif field.nested is not None:
        generator.add_nested_field(field.number, index[field.nested])
    elif isinstance(rule, FilterString):
        generator.add_filter_string_field(
            field.number,
            semantic_type=rule.semantic_type,
            allow_in_v1=rule.allow_in_v1,
            allow_in_v2=rule.allow_in_v2,
        )
    else:
        generator.add_simple_field(field.number)
