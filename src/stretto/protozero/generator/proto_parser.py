"""Front end for .proto files, without protoc.

Supports proto2 and proto3: messages, enums, oneofs, maps, extensions, services, imports, and the
options `packed`, `default`, `json_name`, `debug_redact` and our own (`trace_options`). Other
options are ignored. Groups and edition syntax are errors: ProtoZero doesn't support groups.
"""

from __future__ import annotations

import re
from pathlib import Path

from stretto.protozero.field import json_name
from stretto.protozero.generator import trace_options
from stretto.protozero.generator.checks import check_file
from stretto.protozero.generator.name_checks import check_names
from stretto.protozero.generator.names import well_known_module
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
from stretto.protozero.generator.well_known_files import well_known_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_OWN_PROTOS = Path(__file__).parents[2] / "protos"

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<word>(?:-\s*)?[.\w]+(?:[-+](?<=[eE].)\d+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<mark>[{}()\[\]<>=;,:/+-])""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|(?P<octal>0[0-7]+)|0|[1-9][0-9]*)")
_ESCAPE = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})"
    rb"|(?P<code>u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS = dict(zip(b"abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))


def parse(paths: list[Path], known: list[File] | None = None) -> list[File]:
    """Parse .proto files; `known` are files that they import.

    Raises:
        SchemaError: a file is malformed or uses an unsupported feature; the error contains file,
            line and column.
    """
    return parse_texts([(path.name, path.read_text("utf-8")) for path in paths], known)


def parse_imported(names: list[str], folders: list[Path]) -> list[File]:
    """Parse .proto files and all their imports, as protoc does.

    Args:
        names: paths of the files, as other files import them.
        folders: folders that are searched for files, in this order. Files that ship with protobuf,
            and `stretto/trace_options.proto`, are found without them.

    Returns:
        The files; each one follows its imports.

    Raises:
        SchemaError: as in `parse`; or a file is not found, or imports itself.
    """
    parsed: dict[str, File | None] = {}
    shipped: dict[str, File] = {}

    def read(name: str, importer: str) -> None:
        if name in parsed:
            if parsed[name] is None:
                raise SchemaError(f"{importer}: {name} imports itself")
            return
        own = [_OWN_PROTOS] if name == trace_options.TRACE_OPTIONS else []
        path = next((f / name for f in (*folders, *own) if (f / name).is_file()), None)
        if path is None and well_known_module(name):
            shipped.update((file.name, file) for file in well_known_files(name))
            return
        if path is None:
            looked = ", ".join(map(str, folders))
            raise SchemaError(f"{importer}: {name} is not in {looked}: name its folder with -I")
        parsed[name] = None
        file = _Parser(name, path.read_text("utf-8")).file()
        for imported in file.imports:
            read(imported, name)
        del parsed[name]
        parsed[name] = file

    for name in names:
        read(name, "command line")
    known = [file for name, file in shipped.items() if name not in parsed]
    return known + _resolved([file for file in parsed.values() if file is not None], known)


def parse_texts(sources: list[tuple[str, str]], known: list[File] | None = None) -> list[File]:
    """Parse the texts of .proto files, given as pairs (name, text); otherwise like `parse`."""
    return _resolved([_Parser(name, text).file() for name, text in sources], known or [])


def _resolved(files: list[File], known: list[File]) -> list[File]:
    schema = Schema([*known, *files])
    for file in files:
        check_names(file)
        trace_options.check_import(file, schema)
        _resolve(file, schema)
    for file in files:
        check_file(file, schema)
    return files


class _Parser:
    """A recursive-descent parser for one file."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text = text.removeprefix("\ufeff")
        self._tokens: list[tuple[str, int]] = []
        pos = 0
        while pos < len(text):
            match = _TOKEN.match(text, pos)
            if match is None:
                raise self._error(f"unexpected character {text[pos]!r}", pos)
            if match.lastgroup != "space":
                word = match.lastgroup == "word"
                self._tokens.append(("".join(match[0].split()) if word else match[0], pos))
            pos = match.end()
        self._tokens.append(("", len(text)))
        self._next = 0
        self._file = File(name)
        self._statements: dict[str, Callable[[], object]] = {
            "syntax": self._syntax,
            "package": self._package,
            "import": self._import,
            "message": lambda: self._file.messages.append(self._message(self._prefix())),
            "enum": lambda: self._file.enums.append(self._enum(self._prefix())),
            "service": lambda: self._file.services.append(self._service(self._prefix())),
            "extend": lambda: self._file.extensions.extend(self._extend()),
            "option": self._option,
            ";": lambda: None,
        }

    def file(self) -> File:
        while self._peek():
            word = self._take()
            if word not in self._statements:
                raise self._unexpected(word)
            self._statements[word]()
        return self._file

    def _syntax(self) -> None:
        self._expect("=")
        syntax = self._string()
        if syntax not in ("proto2", "proto3"):
            raise self._unexpected(syntax, ", expected proto2 or proto3")
        self._file.proto3 = syntax == "proto3"
        self._expect(";")

    def _package(self) -> None:
        self._file.package = self._take()
        self._expect(";")

    def _import(self) -> None:
        kind = self._take() if self._peek() in ("public", "weak") else ""
        name = self._string()
        self._file.imports.append(name)
        if kind == "public":
            self._file.public.append(name)
        self._expect(";")

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
            elif word == "extend":
                message.extensions.extend(self._extend())
            elif word == "option":
                self._option()
            elif word in ("reserved", "extensions"):
                self._skip_statement()
            elif word != ";":
                message.fields.append(self._field(word))
        return message

    def _oneof(self) -> list[Field]:
        name, fields = self._take(), []
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._option()
                continue
            field = self._field(word)
            field.oneof, field.implicit = name, False
            fields.append(field)
        return fields

    def _extend(self) -> list[Field]:
        extendee, fields = self._take(), []
        self._expect("{")
        while (word := self._take()) != "}":
            if word != ";":
                field = self._field(word)
                field.extendee, field.implicit = extendee, False
                fields.append(field)
        return fields

    def _field(self, word: str) -> Field:
        label = ""
        if word in ("optional", "required", "repeated"):
            label, word = word, self._take()
        if word == "group":
            raise self._error("groups are not supported, use a message")
        field = self._map() if word == MAP and self._peek() == "<" else Field("", 0, "", word)
        if field.kind != MAP:
            _set_type(field, word)
        field.repeated = label == "repeated" or field.kind == MAP
        field.name = self._take()
        self._expect("=")
        field.number = self._int()
        field.implicit = self._file.proto3 and not label and field.kind != MAP
        # If the type is a message, `_resolve` sets `packed` to False: here only its name is known.
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
            name = self._option_name()
            if self._peek() == "{":
                self._skip_block()
            elif self._peek()[:1] in ("'", '"'):
                data = self._bytes()
                if name == "default":
                    is_bytes = field.kind == "bytes"
                    field.default = data.decode("latin-1") if is_bytes else self._utf8(data)
                elif name == "json_name":
                    text = self._utf8(data)
                    field.json_name = "" if text == json_name(field.name) else text
            else:
                value = self._take()
                if name == "packed":
                    field.packed = value == "true"
                elif name == "debug_redact":
                    field.redact = value == "true"
                elif name == "default":
                    field.default = value if (n := _integer(value)) is None else str(n)
            if (mark := self._take()) == "]":
                return
            if mark != ",":
                raise self._unexpected(mark)

    def _option_name(self) -> str:
        """Parse the name of an option: `packed`, or `(some.option).part.(extension)`."""
        name = ""
        while not name or self._peek()[:1] in (".", "("):
            name += self._take()
            if name.endswith("("):
                while not name.endswith(")"):
                    name += self._take()
        self._expect("=")
        return name

    def _enum(self, prefix: str) -> Enum:
        enum = Enum(prefix + self._take())
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                self._option()
            elif word == "reserved":
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                enum.values.append((word, self._int()))
                if self._peek() == "[":
                    self._skip_block()
                self._expect(";")
        return enum

    def _service(self, prefix: str) -> Service:
        service = Service(prefix + self._take())
        self._expect("{")
        while (word := self._take()) != "}":
            if word == "option":
                trace = self._option(*trace_options.OF_SERVICES)
                service.trace = service.trace if trace is None else trace
            elif word == "rpc":
                service.methods.append(self._method())
            elif word != ";":
                raise self._unexpected(word)
        return service

    def _method(self) -> Method:
        name = self._take()
        argument, _ = self._method_type()
        self._expect("returns")
        reply, streaming = self._method_type()
        method = Method(name, argument, reply, streaming)
        if self._peek() != "{":
            self._expect(";")
            return method
        self._take()
        while (word := self._take()) != "}":
            if word == "option":
                trace = self._option(*trace_options.OF_METHODS)
                method.trace = method.trace if trace is None else trace
            elif word != ";":
                raise self._unexpected(word)
        return method

    def _option(self, *known: str) -> str | None:
        """Parse an option; return the category if it is one of our options, None for others.

        Args:
            known: Our options that are allowed here.
        """
        start, pos = self._next, self._tokens[self._next][1]
        own = None
        if self._peek() == "(":
            own = trace_options.own_option(self._option_name(), self._file.package)
        if own is None:
            self._next = start
            self._skip_statement()
            return None
        if own not in known:
            here = " or ".join(f"`({name})`" for name in known) or "none of ours"
            raise self._error(f"there is no option `({own})` here, but {here}", pos)
        self._file.trace_option_at = self._file.trace_option_at or self._place(pos)
        category = self._utf8(self._bytes())
        self._expect(";")
        return category

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
        while self._peek() != ";":
            if self._peek() == "{":
                self._skip_block()
            else:
                self._take()
        self._take()

    def _skip_block(self) -> None:
        depth = 0
        while True:
            depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(self._take(), 0)
            if not depth:
                return

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
        if (number := _integer(word)) is None:
            raise self._unexpected(word, ", expected a number")
        return number

    def _string(self) -> str:
        return self._utf8(self._bytes())

    def _utf8(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise self._error(f"{data!r} is not UTF-8") from None

    def _bytes(self) -> bytes:
        """Parse a string literal, or several consecutive ones, which are joined."""
        data = b""
        while True:
            token = self._take()
            if token[0] not in "'\"":
                raise self._unexpected(token, ", expected a string")
            data += self._literal(token)
            if self._peek()[:1] not in ("'", '"'):
                return data

    def _literal(self, token: str) -> bytes:
        return _ESCAPE.sub(self._unescaped, token[1:-1].encode("utf-8"))

    def _unescaped(self, match: re.Match[bytes]) -> bytes:
        if match["octal"]:
            return bytes([int(match["octal"], 8) & 0xFF])
        if match["hex"]:
            return bytes([int(match["hex"], 16)])
        if match["code"]:
            return self._character(int(match["code"][1:], 16))
        if match["letter"][0] not in _LETTERS:
            raise self._error(f"{match[0].decode('utf-8', 'replace')} is no escape")
        return bytes([_LETTERS[match["letter"][0]]])

    def _character(self, code: int) -> bytes:
        if 0xD800 <= code < 0xE000:
            raise self._error(f"\\u{code:x} is half a character: use \\U and eight digits")
        return chr(code).encode("utf-8")

    def _unexpected(self, token: str, more: str = "") -> SchemaError:
        return self._error(f"unexpected {token!r}{more}")

    def _error(self, message: str, pos: int | None = None) -> SchemaError:
        if pos is None:
            pos = self._tokens[max(self._next - 1, 0)][1]
        return SchemaError(f"{self._place(pos)}: {message}")

    def _place(self, pos: int) -> str:
        line = self._text.count("\n", 0, pos) + 1
        column = pos - self._text.rfind("\n", 0, pos)
        return f"{self._name}:{line}:{column}"


def _integer(word: str) -> int | None:
    """Parse an integer as in C, where a leading 0 means octal; None if invalid."""
    match = _INTEGER.fullmatch(word)
    return match and int(word, 8 if match["octal"] else 0)


def _set_type(field: Field, word: str) -> None:
    if word in SCALARS:
        field.kind, field.type_name = word, ""
    else:
        field.kind, field.type_name = "", word


def _resolve(file: File, schema: Schema) -> None:
    """Replace type names by full names, and distinguish enums from messages."""
    for extension in file.extensions:
        _resolve_field(extension, file.package, schema)
    for message in walk(file.messages):
        for field in (*message.fields, *message.extensions):
            _resolve_field(field, message.name, schema)
    for service in file.services:
        for method in service.methods:
            method.argument = _full_name(method.argument, service.name, schema)
            method.reply = _full_name(method.reply, service.name, schema)


def _resolve_field(field: Field, scope: str, schema: Schema) -> None:
    for part in (field, field.map_value):
        if part is not None and part.type_name:
            part.type_name = _full_name(part.type_name, scope, schema)
            part.kind = ENUM if part.type_name in schema.enums else MESSAGE
    if field.kind == MESSAGE:
        field.packed = field.implicit = False
    if field.extendee:
        field.extendee = _full_name(field.extendee, scope, schema)


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
