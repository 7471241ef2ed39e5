"""Parser of the text format that `text_format` describes."""

from __future__ import annotations

import re

from stretto.protozero.codec import EnumCodec, MessageCodec
from stretto.protozero.field import Field, MapField
from stretto.protozero.message import MAX_DEPTH, Message
from stretto.protozero.quoting import cut, quoted
from stretto.protozero.text_source import Stop, TextFormatError, TextSource

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from stretto.protozero.enums import Enum
    from stretto.protozero.text_source import Span

    M = TypeVar("M", bound=Message)

_INTEGERS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (32, True)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (64, True)),
    **dict.fromkeys(("uint32", "fixed32"), (32, False)),
    **dict.fromkeys(("uint64", "fixed64"), (64, False)),
}
_FLOATS = {"float", "double"}
_INTEGER = re.compile(r"-?[0-9]+")


def parse_text(
    text: str, message_class: type[M], name: str = "-", *, allow_unknown_fields: bool = False
) -> M:
    """Parse a message from text.

    Args:
        text: the text.
        message_class: a generated class.
        name: name of the file, for errors.
        allow_unknown_fields: ignore unknown fields and enum values instead of refusing the text.

    Raises:
        TextFormatError: the text is malformed; the message lists all errors.
    """
    message = message_class()
    source = TextSource(text, name)
    _Parser(source, message, allow_unknown_fields).parse()
    if source.errors:
        raise TextFormatError("".join(source.errors))
    return message


class _Scope:
    """An open message, between its braces."""

    def __init__(self, message: Message) -> None:
        self.name = message.LAYOUT.name
        self.values: dict[str, Any] = vars(message)
        self.seen: set[str] = set()
        self._layout = message.LAYOUT

    def field(self, name: str) -> Field | None:
        return self._layout.by_proto_name(name)

    def advice(self, name: str) -> str:
        return "" if name.startswith("[") else self._layout.advice(name)

    def end(self) -> None:
        """Handle the closing brace."""


class _EntryScope(_Scope):
    """An open entry of a map: its text is that of a message with key and value."""

    def __init__(self, field: MapField, target: dict[Any, Any]) -> None:
        super().__init__(Message())
        self.name = field.path
        self._codecs = {"key": field.codec, "value": field.value_codec}
        self._target = target

    def field(self, name: str) -> Field | None:
        number = ("key", "value").index(name) + 1 if name in self._codecs else 0
        return Field(self.name, name, number, self._codecs[name]) if number else None

    def end(self) -> None:
        codec = self._codecs["value"]
        value = self.values["value"] if "value" in self.values else codec.unset_value()
        self._target[self.values.get("key", self._codecs["key"].default)] = value


class _Parser:
    """Parses the text with a stack of open messages; None stands for a skipped message."""

    def __init__(self, source: TextSource, message: Message, lossy: bool) -> None:
        self._source = source
        self._lossy = lossy
        self._scopes: list[_Scope | None] = [_Scope(message)]

    def parse(self) -> None:
        try:
            self._fields()
        except Stop:
            pass

    def _fields(self) -> None:
        source, may_be_semicolon = self._source, False
        while char := source.skip_blanks():
            if char == ";" and may_be_semicolon:
                source.take(";")
                may_be_semicolon = False
            elif char == "}":
                self._close()
                may_be_semicolon = True
            else:
                key = source.take_key()
                if key is None:
                    raise source.unexpected()
                may_be_semicolon = self._value(*key)
        if len(self._scopes) > 1:
            end = len(source.text)
            source.error("a message isn't closed: } is missing", (end, end))

    def _close(self) -> None:
        source = self._source
        if len(self._scopes) == 1:
            raise source.stop("this } closes nothing", (source.pos, source.pos + 1))
        source.take("}")
        scope = self._scopes.pop()
        if scope is not None:
            scope.end()

    def _value(self, name: str, span: Span) -> bool:
        """Parse the value after a key; return whether a `;` may follow (False after `{`)."""
        source = self._source
        source.skip_blanks()
        source.take(":")
        source.skip_blanks()
        here = source.pos
        if source.take("{"):
            self._open(name, span, (here, here + 1))
            return False
        if (string := source.take_string()) is not None:
            self._string(name, span, *string)
        elif (number := source.take_number()) is not None:
            self._number(name, span, *number)
        elif (word := source.take_word()) is not None:
            self._word(name, span, *word)
        else:
            raise source.unexpected()
        return True

    def _open(self, name: str, span: Span, brace: Span) -> None:
        if len(self._scopes) > MAX_DEPTH:
            raise self._source.stop(f"messages nest deeper than {MAX_DEPTH}", brace)
        scope = self._scopes[-1]
        field = self._field(name, span)
        if scope is None or field is None:
            # If unknown fields are allowed, skip the whole message. Otherwise the error is
            # reported already: stop, because the message's fields would only add errors.
            if not self._lossy:
                raise Stop
            self._scopes.append(None)
        elif isinstance(field, MapField):
            self._scopes.append(_EntryScope(field, scope.values.setdefault(field.name, {})))
        elif isinstance(field.codec, MessageCodec):
            inner = field.codec.message_class()
            self._store(field, inner)
            self._scopes.append(_Scope(inner))
        else:
            self._mismatch(field, "{", brace)
            raise Stop

    def _string(self, name: str, span: Span, literals: Span, at: Span) -> None:
        field = self._field(name, span)
        if field is None:
            return
        if self._kind(field) not in ("string", "bytes"):
            self._mismatch(field, self._source.text[slice(*at)], at)
            return
        try:
            data = self._source.string(literals)
        except ValueError as error:
            self._source.error(f"{field.path}: {error}", at)
            return
        is_text = self._kind(field) == "string"
        self._store(field, data.decode("utf-8", "surrogateescape") if is_text else data)

    def _number(self, name: str, span: Span, digits: str, at: Span) -> None:
        field = self._field(name, span)
        if field is None:
            return
        kind = self._kind(field)
        try:
            if kind in _INTEGERS:
                self._store(field, _integer(digits, *_INTEGERS[kind]))
            elif kind in _FLOATS:
                self._store(field, field.codec.check(float(digits)))
            else:
                self._mismatch(field, digits, at)
        except ValueError:
            self._source.error(f"{field.path}: {quoted(digits)} is no {kind}", at)

    def _word(self, name: str, span: Span, word: str, at: Span) -> None:
        field = self._field(name, span)
        if field is None:
            return
        if self._kind(field) == "bool":
            if word in ("true", "false"):
                self._store(field, word == "true")
            else:
                self._source.error(f"{field.path} is true or false, not {quoted(word)}", at)
        elif isinstance(field.codec, EnumCodec) and not isinstance(field, MapField):
            self._enum(field, field.codec.enum_class, word, at)
        elif self._kind(field) in _FLOATS and word in ("inf", "nan"):
            self._store(field, float(word))
        else:
            self._mismatch(field, word, at)

    def _enum(self, field: Field, enum: type[Enum], word: str, at: Span) -> None:
        if word in enum.VALUES:
            self._store(field, enum.VALUES[word])
        elif not self._lossy:
            known = ", ".join(enum.VALUES)
            self._source.error(f"{field.path} has no value {quoted(word)}; it has {known}", at)

    def _field(self, name: str, span: Span) -> Field | None:
        """Return the field of a key; None if its value is skipped, perhaps after an error."""
        scope = self._scopes[-1]
        if scope is None:
            return None
        field = scope.field(name)
        if field is None:
            if not self._lossy:
                what = "extension" if name.startswith("[") else "field"
                complaint = f'{scope.name} has no {what} "{cut(name)}"{scope.advice(name)}'
                self._source.error(complaint, span)
            return None
        if field.name in scope.seen and not field.repeated:
            self._source.error(f'"{name}" is not repeated, and stands here twice', span)
        scope.seen.add(field.name)
        return field

    @staticmethod
    def _kind(field: Field) -> str:
        return "map" if isinstance(field, MapField) else field.codec.kind

    def _mismatch(self, field: Field, value: str, at: Span) -> None:
        kind = "message" if field.codec.is_message else self._kind(field)
        self._source.error(f"{field.path} wants a value of type {kind}, not {quoted(value)}", at)

    def _store(self, field: Field, value: Any) -> None:
        scope = self._scopes[-1]
        if scope is None:
            return
        if field.repeated:
            scope.values.setdefault(field.name, []).append(value)
        else:
            field.store(scope.values, value)


def _integer(digits: str, bits: int, signed: bool) -> int:
    """Parse the leading digits as a 64-bit integer, truncated to `bits`."""
    match = _INTEGER.match(digits)
    if match is None:
        raise ValueError(digits)
    number = match[0].lstrip("-0") or "0"
    if len(number) > 20 or int(number) >= 1 << 64:
        value = (1 << 64) - 1
    else:
        value = -int(number) if digits.startswith("-") else int(number)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value
