"""Runs the files of FIDL's conformance suite: `python -m fidl_support.gidl PATH`.

PATH is a folder with `.gidl` files and the `.fidl` files of their types, or one `.gidl` file in
such a folder. The program prints for each file how many cases passed, failed, or are
not supported:

    golden.gidl          30 passed    0 failed    0 unsupported

A case is run for encoding and for decoding, in each wire format for which it has bytes. Wire format
v1 is only decoded. These cases are not supported:

- cases in which bindings keep the bytes of unknown members: Stretto's drop them;
- cases with a signalling NaN of 32 bits, which floats can't hold before Python 3.14;
- cases that fail here, and that `bindings_allowlist` restricts to other bindings.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fidl_support.gidl_parser import (
    Case,
    Decoded,
    GidlError,
    HandleDefinition,
    HandleUse,
    RawFloat,
    Record,
    Unknown,
    parse,
)
from stretto_fidl import codec
from stretto_fidl.bindings import Union, load
from stretto_fidl.codec import types
from stretto_fidl.codec.handle import BASIC_RIGHTS, DEFAULT_RIGHTS, OBJECT_TYPES, RIGHTS, Handle
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.compiler import compile_files
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import OF_MODULES, python_name

FORMATS = {"v1": codec.V1, "v2": codec.V2}

SAME = [
    {"INVALID_NUM_HANDLES_IN_ENVELOPE", "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH"},
    {"INVALID_NUM_BYTES_IN_ENVELOPE", "ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH"},
    {"STRICT_UNION_FIELD_NOT_SET", "UNION_FIELD_NOT_SET"},
    {"EXTRA_HANDLES", "TOO_MANY_HANDLES_IN_MESSAGE"},
]
"""Sets of codes that different files use for the same failure."""


class NotSupportedError(Exception):
    """Raised if a test case needs a feature that these bindings don't have."""


class DeviationError(Exception):
    """Raised if the codec's result differs from the result that the test case expects."""


def rights_of(names: list[str]) -> int:
    """Return the rights of an expression such as `channel_default - write`.

    Args:
        names: The names in the expression; a name after a minus begins with `-`.
    """
    found = 0
    for name in names:
        bare = name.lstrip("-")
        if bare.endswith("_default"):
            bits = DEFAULT_RIGHTS[OBJECT_TYPES[bare.removesuffix("_default")]]
        else:
            bits = BASIC_RIGHTS if bare == "basic" else RIGHTS[bare]
        found = found & ~bits if name.startswith("-") else found | bits
    return found


class Handles:
    """The handles that a test case defines; each has a descriptor of an empty object."""

    def __init__(self, definitions: dict[int, HandleDefinition]) -> None:
        self._definitions = definitions
        self._made: dict[int, Handle] = {}

    def __getitem__(self, number: int) -> Handle:
        if number not in self._made:
            definition = self._definitions[number]
            rights = None if definition.rights is None else rights_of(definition.rights)
            fd = os.open(os.devnull, os.O_RDONLY)
            self._made[number] = Handle(fd, OBJECT_TYPES[definition.type], rights)
        return self._made[number]

    def __iter__(self) -> Iterator[Handle]:
        return iter(self._made.values())

    def close(self) -> None:
        for handle in self:
            handle.close()


class Values:
    """Converts the values of a test case to values of the bindings."""

    def __init__(self, namespace: Any, handles: Handles) -> None:
        self._namespace = namespace
        self._handles = handles

    def make(self, value: Any, type_: types.Type | None = None) -> Any:
        if type_ is not None:
            type_, _ = types.resolve(type_)
        match value:
            case Record():
                return self._record(value)
            case Decoded(attributes=attributes):
                cls = self.cls(attributes["type"])
                handles = [self._handles[n] for n in attributes.get("handles", {}).get("v2", [])]
                return codec.decode(cls, attributes["bytes"]["v2"], handles)
            case HandleUse(number=number):
                return self._handles[number]
            case RawFloat():
                return _float(value, type_.size if isinstance(type_, types.Primitive) else 8)
            case bytes():
                return value.decode("utf-8", "surrogateescape")
            case list():
                element = getattr(type_, "element", None)
                found = [self.make(each, element) for each in value]
                return bytes(found) if element is types.UINT8 else found
            case int() if isinstance(type_, types.Primitive) and type_.low is None:
                return float(value)
        return value

    def cls(self, name: str) -> Any:
        found = getattr(self._namespace, python_name(name, OF_MODULES), None)
        if found is None:
            raise NotSupportedError(f"the schema has no {name}")
        return found

    def _record(self, record: Record) -> Any:
        cls = self.cls(record.name)
        if any(isinstance(value, Unknown) for value in record.members.values()):
            raise NotSupportedError("content of unknown members isn't kept")
        members = {member.name: member for member in cls.TYPE.members}
        found = {}
        for name, value in record.members.items():
            if isinstance(name, int):
                return cls._make(name, None)
            member = members.get(name)
            if member is None:
                raise NotSupportedError(f"the schema's {record.name} has no member {name}")
            found[member.python_name] = self.make(value, member.type)
        return cls(**found) if issubclass(cls, Union) else self._with_absent(cls, found)

    def _with_absent(self, cls: Any, found: dict[str, Any]) -> Any:
        """Make an object from the given members.

        A member that the test case omits is absent, or has its default value.
        """
        absent = {
            m.python_name: None
            for m in cls.TYPE.members
            if m.python_name not in found and m.default is None
        }
        return cls(**absent, **found)


def _float(raw: RawFloat, size: int) -> float:
    value = raw.value(size)
    if struct.pack("<f" if size == 4 else "<d", value) != raw.bits.to_bytes(size, "little"):
        raise NotSupportedError("floats of this Python hold no signalling NaNs of 32 bits")
    return value


def run_test(test: Case, namespace: Any) -> Iterator[str]:
    """Run a test case, and yield its results: `passed`, `failed …` or `unsupported …`."""
    for way, name in variants(test):
        handles = Handles(test.attributes.get("handle_defs", {}))
        try:
            RUN[test.kind](test, name, way, Values(namespace, handles), handles)
            yield "passed"
        except NotSupportedError as reason:
            yield f"unsupported {reason}"
        except DeviationError as reason:
            alone = ", ".join(test.attributes.get("bindings_allowlist", ()))
            kind = f"unsupported only for {alone}," if alone else "failed"
            yield f"{kind} {way} {name}: {reason}"
        finally:
            handles.close()


def variants(test: Case) -> list[tuple[str, str]]:
    """Return the directions and wire formats in which a test case is run."""
    formats = list(test.attributes.get("bytes", {"v2": b""}))
    read = [("decode", name) for name in formats]
    write = [("encode", name) for name in formats if FORMATS[name] == codec.V2]
    if test.kind.startswith("decode"):
        return read
    return write if test.kind.startswith("encode") else [*write, *read]


def expect_success(test: Case, name: str, way: str, values: Values, handles: Handles) -> None:
    try:
        if way == "decode":
            _decodes(test, name, values, handles)
        else:
            _encodes(test, name, values, handles)
    except WireError as error:
        raise DeviationError(str(error)) from error


def _decodes(test: Case, name: str, values: Values, handles: Handles) -> None:
    given = test.attributes["value"]
    expected = values.make(given)
    before = {id(handle): handle.rights for handle in handles}
    came = [handles[number] for number in test.attributes.get("handles", {}).get(name, [])]
    found = codec.decode(type(expected), test.attributes["bytes"][name], came, wire=FORMATS[name])
    if found != expected and not ("nan" in repr(expected) and repr(found) == repr(expected)):
        raise DeviationError(f"{found!r} is not {expected!r}")
    for use in uses(given):
        rights = rights_of(use.rights) if use.rights else before.get(id(handles[use.number]))
        if handles[use.number].rights != rights and use.rights:
            raise DeviationError(f"#{use.number} has rights {handles[use.number].rights:#x}")


def uses(value: Any) -> Iterator[HandleUse]:
    """Yield all uses of handles in a value of a test case."""
    if isinstance(value, HandleUse):
        yield value
    elif isinstance(value, (Record, list)):
        for each in value.members.values() if isinstance(value, Record) else value:
            yield from uses(each)


def _encodes(test: Case, name: str, values: Values, handles: Handles) -> None:
    data, dispositions = codec.encode(values.make(test.attributes["value"]))
    if data != test.attributes["bytes"][name]:
        raise DeviationError(f"{data.hex(' ')} is not {test.attributes['bytes'][name].hex(' ')}")
    told = test.attributes.get("handle_dispositions", {}).get(name)
    if told is None:
        told = [HandleUse(number) for number in test.attributes.get("handles", {}).get(name, [])]
    if [each.handle for each in dispositions] != [handles[use.number] for use in told]:
        raise DeviationError(f"other handles: {dispositions}")
    for each, use in zip(dispositions, told, strict=True):
        if use.type and each.object_type != OBJECT_TYPES[use.type]:
            raise DeviationError(f"#{use.number} is sent as {each.object_type}")
        if use.rights and each.rights != rights_of(use.rights):
            raise DeviationError(f"#{use.number} is sent with rights {each.rights:#x}")


def expect_failure(test: Case, name: str, way: str, values: Values, handles: Handles) -> None:
    came = [handles[number] for number in test.attributes.get("handles", {}).get(name, [])]
    try:
        if way == "decode":
            cls = values.cls(test.attributes["type"])
            codec.decode(cls, test.attributes["bytes"][name], came, wire=FORMATS[name])
        else:
            codec.encode(values.make(test.attributes["value"]))
    except WireError as error:
        expected = test.attributes["err"]
        if error.code != expected and not any({error.code, expected} <= each for each in SAME):
            raise DeviationError(f"{error} instead of {expected}") from error
        if any(handle.is_open for handle in came):
            raise DeviationError("a handle is left open") from error
        return
    raise DeviationError(f"no {test.attributes['err']}")


RUN = {
    "success": expect_success,
    "encode_success": expect_success,
    "decode_success": expect_success,
    "encode_failure": expect_failure,
    "decode_failure": expect_failure,
}


def schema(folder: Path) -> Any:
    """Return the types of a folder's `.fidl` files, which belong to one library."""
    files = sorted(folder.glob("*.fidl"))
    if not files:
        raise FidlError(f"{folder} has no .fidl files: the cases need their types")
    return load(compile_files(files))


def run_file(path: Path, namespace: Any) -> tuple[Counter[str], list[str]]:
    """Run a .gidl file; return how often each result occurred, and the failures to print."""
    counts: Counter[str] = Counter()
    told = []
    for test in parse(path.read_text("utf-8")):
        for outcome in run_test(test, namespace):
            kind, _, reason = outcome.partition(" ")
            counts[kind] += 1
            if reason:
                told.append(f"{path.name}: {test.kind} {test.name}: {kind}: {reason}")
    return counts, told


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gidl", description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true", help="tell all that didn't pass")
    options = parser.parse_args(arguments)
    folder = options.path if options.path.is_dir() else options.path.parent
    files = sorted(folder.glob("*.gidl")) if options.path.is_dir() else [options.path]
    try:
        namespace = schema(folder)
        failed = 0
        for path in files:
            counts, told = run_file(path, namespace)
            numbers = (f"{counts[kind]:5} {kind}" for kind in ("passed", "failed", "unsupported"))
            print(f"{path.name:32}", *numbers)
            failed += counts["failed"]
            for line in told if options.verbose else ():
                print("   ", line)
    except (FidlError, GidlError) as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
