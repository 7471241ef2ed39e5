"""Front end: .proto files, without protoc.

Understands the language our own schemas use: proto2 and proto3, messages,
enums, oneofs, maps, services, `packed` and `default`. Other options are read
over. Groups, extensions and edition syntax are errors: give such a schema as a
FileDescriptorSet instead.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from stretto.protozero.generator.schema import (
    ENUM,
    MAP,
    MESSAGE,
    SCALARS,
    Enum,
    Field,
    File,
    Message,
    Method,
    Schema,
    SchemaError,
    Service,
    walk,
)

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>-?[.\w]+(?:[-+](?<=[eE].)\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<mark>[{}()\[\]<>=;,:])""",
    re.VERBOSE | re.DOTALL,
)


def parse(paths: list[Path], known: list[File] | None = None) -> list[File]:
    """Read .proto files; `known` are files that they import.

    Raises:
        SchemaError: with file and line, for what is malformed or not supported.
    """
    files = [_Parser(path.name, path.read_text("utf-8")).file() for path in paths]
    schema = Schema([*(known or []), *files])
    for file in files:
        _resolve(file, schema)
    return files


class _Parser:
    """Recursive descent over the tokens of one file."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        pos = 0
        while pos < len(text):
            match = _TOKEN.match(text, pos)
            if match is None:
                raise self._error(f"unexpected character {text[pos]!r}", pos)
            if match.lastgroup != "space":
                self._tokens.append((match.group(), pos))
            pos = match.end()
        self._tokens.append(("", len(text)))
        self._next = 0
        self._file = File()

    def file(self) -> File:
        while self._peek():
            word = self._take()
            if word == "syntax":
                self._expect("=")
                self._file.proto3 = self._string() == "proto3"
                self._expect(";")
            elif word == "package":
                self._file.package = self._take()
                self._expect(";")
            elif word == "message":
                self._file.messages.append(self._message(self._prefix()))
            elif word == "enum":
                self._file.enums.append(self._enum(self._prefix()))
            elif word == "service":
                self._file.services.append(self._service(self._prefix()))
            elif word in ("import", "option"):
                self._skip_statement()
            elif word != ";":
                raise self._unexpected(word)
        return self._file

    def _message(self, prefix: str) -> Message:
        message = Message(prefix + self._take())
        inner = message.name + "."
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "message":
                message.messages.append(self._message(inner))
            elif word == "enum":
                message.enums.append(self._enum(inner))
            elif word == "oneof":
                message.fields.extend(self._oneof())
            elif word in ("reserved", "extensions", "option"):
                self._skip_statement()
            elif word != ";":
                message.fields.append(self._field(word))
        return message

    def _oneof(self) -> list[Field]:
        name, fields = self._take(), []
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._skip_statement()
                continue
            field = self._field(word)
            field.oneof, field.implicit = name, False
            fields.append(field)
        return fields

    def _field(self, word: str) -> Field:
        if word in ("group", "extend") or self._peek() == "group":
            raise self._error(f"{word!r} is not supported, use a FileDescriptorSet")
        label = ""
        if word in ("optional", "required", "repeated"):
            label, word = word, self._take()
        field = self._map() if word == MAP and self._peek() == "<" else Field("", 0, "", word)
        if field.kind != MAP:
            _set_type(field, word)
        field.repeated = label == "repeated" or field.kind == MAP
        field.name = self._take()
        self._expect("=")
        field.number = self._int()
        field.implicit = self._file.proto3 and not label and field.kind != MAP
        # Which names are messages is known when all files are read: see _resolve.
        blob = field.kind in (MAP, "string", "bytes")
        field.packed = self._file.proto3 and field.repeated and not blob
        self._options(field)
        self._expect(";")
        return field

    def _map(self) -> Field:
        self._expect("<")
        key = Field("key", 1, self._take())
        self._expect(",")
        value = Field("value", 2, "")
        _set_type(value, self._take())
        self._expect(">")
        return Field("", 0, MAP, map_key=key, map_value=value)

    def _options(self, field: Field) -> None:
        if self._peek() != "[":
            return
        self._take()
        while True:
            name = self._take()
            self._expect("=")
            value = self._take()
            if name == "packed":
                field.packed = value == "true"
            elif name == "default":
                field.default = ast.literal_eval(value) if value[0] in "\"'" else value
            if (mark := self._take()) == "]":
                return
            if mark != ",":
                raise self._unexpected(mark)

    def _enum(self, prefix: str) -> Enum:
        enum = Enum(prefix + self._take())
        self._expect("{")
        while (word := self._take()) != "}":
            if word in ("option", "reserved"):
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                enum.values.append((word, self._int()))
                if self._peek() == "[":
                    while self._take() != "]":
                        pass
                self._expect(";")
        return enum

    def _service(self, prefix: str) -> Service:
        service = Service(prefix + self._take())
        self._expect("{")
        while (word := self._take()) != "}":
            if word != "rpc":
                raise self._unexpected(word)
            name = self._take()
            argument, _ = self._method_type()
            self._expect("returns")
            reply, streaming = self._method_type()
            service.methods.append(Method(name, argument, reply, streaming))
            self._expect(";")
        return service

    def _method_type(self) -> tuple[str, bool]:
        self._expect("(")
        word, streaming = self._take(), False
        if word == "stream":
            word, streaming = self._take(), True
        self._expect(")")
        return word, streaming

    def _prefix(self) -> str:
        return self._file.package + "." if self._file.package else ""

    def _skip_statement(self) -> None:
        while self._take() != ";":
            pass

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        token, pos = self._tokens[self._next]
        if not token:
            raise self._error("unexpected end of file", pos)
        self._next += 1
        return token

    def _expect(self, token: str) -> None:
        if (found := self._take()) != token:
            raise self._unexpected(found, f", expected {token!r}")

    def _int(self) -> int:
        word = self._take()
        try:
            return int(word, 0)
        except ValueError:
            raise self._unexpected(word, ", expected a number") from None

    def _string(self) -> str:
        return str(ast.literal_eval(self._take()))

    def _unexpected(self, token: str, more: str = "") -> SchemaError:
        return self._error(f"unexpected {token!r}{more}")

    def _error(self, message: str, pos: int | None = None) -> SchemaError:
        if pos is None:
            pos = self._tokens[max(self._next - 1, 0)][1]
        line = self._text.count("\n", 0, pos) + 1
        return SchemaError(f"{self._name}:{line}: {message}")


def _set_type(field: Field, word: str) -> None:
    if word in SCALARS:
        field.kind, field.type_name = word, ""
    else:
        field.kind, field.type_name = "", word


def _resolve(file: File, schema: Schema) -> None:
    """Replace the names of types by full ones, and learn which are enums."""
    for message in walk(file.messages):
        for field in message.fields:
            for part in (field, field.map_value):
                if part is not None and part.type_name:
                    part.type_name = _full_name(part.type_name, message.name, schema)
                    part.kind = ENUM if part.type_name in schema.enums else MESSAGE
            if field.kind == MESSAGE:
                field.packed = field.implicit = False
    for service in file.services:
        for method in service.methods:
            method.argument = _full_name(method.argument, service.name, schema)
            method.reply = _full_name(method.reply, service.name, schema)


def _full_name(name: str, scope: str, schema: Schema) -> str:
    if name.startswith("."):
        return name[1:]
    while True:
        candidate = f"{scope}.{name}" if scope else name
        if candidate in schema.messages or candidate in schema.enums:
            return candidate
        if not scope:
            raise SchemaError(f"no message or enum is called {name!r}")
        scope = scope.rpartition(".")[0]
