"""Parser of GIDL, the language of FIDL's conformance suite.

    success("Name") {
        handle_defs = { #0 = event(rights: basic) },
        value = Some{ member: [1, "text", null, #0], 7: null },
        bytes = { v1, v2 = [ num(3):8, repeat(0xff):8, 'a', 0x62, padding:6 ] },
        handles = { v2 = [#0] },
    }

There are also decode_success, encode_success, decode_failure (with `type` and
`err`) and encode_failure (with `err`). The parser returns Python values and the
small classes of this module.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<char>'(?:[^'\\]|\\.[^']*)')
      | (?P<float>-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+))
      | (?P<number>-?0[xX][0-9a-fA-F_]+|-?0[bB][01_]+|-?0[oO][0-7_]+|-?\d[\d_]*)
      | (?P<name>[A-Za-z_][\w.]*)
      | (?P<sign>[{}()\[\]=:,\#+\-|])""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class GidlError(Exception):
    """Raised if a text isn't GIDL, or uses a part of GIDL that this parser doesn't support."""


class Record(NamedTuple):
    """An object in GIDL: the name of its type, and its members by name or by ordinal."""

    name: str
    members: dict[str | int, Any]


class Unknown(NamedTuple):
    """The bytes and handles of an unknown member."""

    data: bytes
    handles: list[int]


class HandleUse(NamedTuple):
    """A use of a handle by its number; the rights are those of `restrict` or of a disposition."""

    number: int
    type: str | None = None
    rights: list[str] | None = None


class HandleDefinition(NamedTuple):
    """A definition of a handle, such as `event(rights: basic)`."""

    type: str
    rights: list[str] | None


class Decoded(NamedTuple):
    """A value that is the result of decoding: `decode({type = …, bytes = …})`."""

    attributes: dict[str, Any]


class RawFloat(NamedTuple):
    """A GIDL float that is given by its bits."""

    bits: int

    def value(self, size: int) -> float:
        code = {4: "If", 8: "Qd"}[size]
        found: float = struct.unpack(f"<{code[1]}", struct.pack(f"<{code[0]}", self.bits))[0]
        return found


class Case(NamedTuple):
    """One test case of a .gidl file."""

    kind: str
    name: str
    attributes: dict[str, Any]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            line = text.count("\n", 0, at) + 1
            if match is None:
                raise GidlError(f"line {line}: {text[at : at + 20]!r} isn't understood")
            if match.lastgroup != "space":
                self._tokens.append((str(match.lastgroup), match[0], line))
            at = match.end()
        self._tokens.append(("end", "", text.count("\n") + 1))
        self._at = 0

    @property
    def kind(self) -> str:
        return self._tokens[self._at][0]

    @property
    def text(self) -> str:
        return self._tokens[self._at][1]

    def fail(self, expected: str) -> GidlError:
        line = self._tokens[self._at][2]
        return GidlError(f"line {line}: {expected} is expected, not {self.text!r}")

    def next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def take(self, sign: str) -> bool:
        if self.text == sign and self.kind in ("sign", "name"):
            self._at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise self.fail(repr(sign))

    def name(self) -> str:
        if self.kind != "name":
            raise self.fail("a name")
        return self.next()

    def number(self) -> int:
        if self.kind == "char":
            return self._char(self.next())
        if self.kind != "number":
            raise self.fail("a number")
        return int(self.next().replace("_", ""), 0)

    def _char(self, text: str) -> int:
        return _unescape(text[1:-1])[0]

    def tests(self) -> list[Case]:
        found = []
        while self.kind != "end":
            kind = self.name()
            self.expect("(")
            name = _unescape(self.next()[1:-1]).decode()
            self.expect(")")
            found.append(Case(kind, name, self.attributes()))
        return found

    def attributes(self) -> dict[str, Any]:
        self.expect("{")
        found: dict[str, Any] = {}
        while not self.take("}"):
            name = self.name()
            self.expect("=")
            found[name] = self._attribute(name)
            self.take(",")
        return found

    def _attribute(self, name: str) -> Any:
        match name:
            case "value":
                return self.value()
            case "type" | "err":
                return self.name()
            case "bytes":
                return self.by_format(self.bytes)
            case "handles":
                return self.by_format(lambda: self.listed(self.handle_number))
            case "handle_dispositions":
                return self.by_format(lambda: self.listed(self.disposition))
            case "handle_defs":
                return self.handle_definitions()
        return self.listed(self.name)

    def by_format(self, read: Any) -> dict[str, Any]:
        """Read a value for each wire format with the function `read`: `{v1, v2 = …}`."""
        self.expect("{")
        found: dict[str, Any] = {}
        while not self.take("}"):
            formats = [self.name()]
            while self.take(","):
                formats.append(self.name())
            self.expect("=")
            found.update(dict.fromkeys(formats, read()))
            self.take(",")
        return found

    def listed(self, read: Any) -> list[Any]:
        self.expect("[")
        found = []
        while not self.take("]"):
            found.append(read())
            self.take(",")
        return found

    def bytes(self) -> bytes:
        return b"".join(self.listed(self._some_bytes))

    def _some_bytes(self) -> bytes:
        if self.kind in ("number", "char"):
            return bytes([self.number()])
        what, value = self.name(), 0
        if what != "padding":
            self.expect("(")
            value = self.number()
            self.expect(")")
        self.expect(":")
        size = self.number()
        if what == "num":
            return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if what in ("repeat", "padding"):
            return bytes([value]) * size
        raise GidlError(f"bytes can't be made with {what}")

    def handle_number(self) -> int:
        self.expect("#")
        return self.number()

    def handle_definitions(self) -> dict[int, HandleDefinition]:
        self.expect("{")
        found = {}
        while not self.take("}"):
            number = self.handle_number()
            self.expect("=")
            kind = self.name()
            self.expect("(")
            rights = None
            while not self.take(")"):
                self.expect("rights")
                self.expect(":")
                rights = self.rights()
                self.take(",")
            found[number] = HandleDefinition(kind, rights)
            self.take(",")
        return found

    def rights(self) -> list[str]:
        """Read names of rights; each name except the first follows + or -."""
        found = [self.name()]
        while self.text in ("+", "-", "|"):
            sign = self.next()
            found.append(("-" if sign == "-" else "") + self.name())
        return found

    def disposition(self) -> HandleUse:
        if self.text == "#":
            return HandleUse(self.handle_number())
        self.expect("{")
        number = self.handle_number()
        self.take(",")
        return self._use(number, "}")

    def _use(self, number: int, end: str) -> HandleUse:
        kind, rights = None, None
        while not self.take(end):
            what = self.name()
            self.expect(":")
            if what == "type":
                kind = self.name()
            else:
                rights = self.rights()
            self.take(",")
        return HandleUse(number, kind, rights)

    def value(self) -> Any:
        match self.kind:
            case "string":
                return _unescape(self.next()[1:-1])
            case "float":
                return float(self.next())
            case "number" | "char":
                return self.number()
            case "name":
                return self._named_value()
        if self.text == "[":
            return [each for some in self.listed(self._elements) for each in some]
        if self.text == "{":
            return self._unknown()
        return HandleUse(self.handle_number())

    def _elements(self) -> list[Any]:
        """Read an element, or a repeated element: `repeat(1):5`."""
        if not self.take("repeat"):
            return [self.value()]
        self.expect("(")
        value = self.value()
        self.expect(")")
        self.expect(":")
        return [value] * self.number()

    def _named_value(self) -> Any:
        name = self.next()
        constants = {"true": True, "false": False, "null": None}
        if name in constants:
            return constants[name]
        if name == "raw_float":
            self.expect("(")
            bits = self.number()
            self.expect(")")
            return RawFloat(bits)
        if name == "restrict":
            self.expect("(")
            number = self.handle_number()
            self.take(",")
            return self._use(number, ")")
        if name == "decode":
            self.expect("(")
            attributes = self.attributes()
            self.expect(")")
            return Decoded(attributes)
        return self._record(name)

    def _record(self, name: str) -> Record:
        self.expect("{")
        members: dict[str | int, Any] = {}
        while not self.take("}"):
            key = self.number() if self.kind == "number" else self.name()
            self.expect(":")
            members[key] = self.value()
            self.take(",")
        return Record(name, members)

    def _unknown(self) -> Unknown:
        self.expect("{")
        data, handles = b"", []
        while not self.take("}"):
            what = self.name()
            self.expect("=")
            if what == "bytes":
                data = self.bytes()
            else:
                handles = self.listed(self.handle_number)
            self.take(",")
        return Unknown(data, handles)


def _unescape(text: str) -> bytes:
    """Return the bytes of a string, whose escapes may form invalid UTF-8."""
    found = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            found += text[at].encode()
            at += 1
            continue
        letter = text[at + 1]
        if match := re.compile(r"u\{([0-9a-fA-F]+)\}").match(text, at + 1):
            found += chr(int(match[1], 16)).encode("utf-8", "surrogatepass")
            at = match.end()
            continue
        digits = {"x": 2, "u": 4, "U": 8}.get(letter)
        if digits:
            number = int(text[at + 2 : at + 2 + digits], 16)
            found += (
                bytes([number]) if letter == "x" else chr(number).encode("utf-8", "surrogatepass")
            )
            at += 2 + digits
        else:
            found += _ESCAPES.get(letter, letter).encode()
            at += 2
    return bytes(found)


def parse(text: str) -> list[Case]:
    """Parse the text of a .gidl file.

    Raises:
        GidlError: The text is invalid or not supported; the error has the number of the line.
    """
    return _Parser(text).tests()
