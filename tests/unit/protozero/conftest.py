"""Fixtures of the native and pure writers, and of the messages written by the tests."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from stretto.protozero import writer, writer_pure
from stretto.protozero.message import Message
from stretto.protozero.table import Table


@pytest.fixture(params=["native", "pure"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run a test with the native module and with the pure one, which must behave alike."""
    chosen: ModuleType = writer_pure
    if request.param == "native":
        chosen = pytest.importorskip("stretto._native")
    monkeypatch.setattr(writer, "native", chosen)
    return chosen


@pytest.fixture
def raises(implementation: ModuleType) -> Iterator[None]:
    """Raise an error on misuse of writers, as under `-X dev`."""
    before = implementation.raise_on_writer_misuse(True)
    yield
    implementation.raise_on_writer_misuse(before)


@pytest.fixture
def ignores(implementation: ModuleType) -> Iterator[None]:
    before = implementation.raise_on_writer_misuse(False)
    yield
    implementation.raise_on_writer_misuse(before)


@pytest.fixture
def root(implementation: ModuleType) -> type[Any]:
    made: type[Any] = implementation.MessageWriter
    return made


KINDS = [
    "int32 1 int32",
    "int64 2 int64",
    "uint32 3 uint32",
    "uint64 4 uint64",
    "sint32 5 sint32",
    "sint64 6 sint64",
    "bool 7 bool",
    "enum 8 enum",
    "fixed32 9 fixed32",
    "fixed64 10 fixed64",
    "sfixed32 11 sfixed32",
    "sfixed64 12 sfixed64",
    "float 13 float",
    "double 14 double",
    "string 15 string",
    "bytes 16 bytes",
    "far 536870911 uint64",
]


@pytest.fixture
def sample(implementation: ModuleType) -> type[Message]:
    """Return a message class with the fields of Perfetto's ProtoZero example and more fields."""
    table = Table(
        __name__,
        {
            "Sample": "nested 3 message:Sample.Nested\nmany 4 message:Sample.Nested repeated\n"
            "packed 5 uint32 packed\nplain 6 sint32 repeated\nmap 7 map:string,uint32\n"
            "doubles 8 double packed\nzigzags 9 sint64 packed\nfloats 10 float packed\n"
            "all 11 message:Kinds",
            "Sample.Nested": "int_val 1 int32\nstr_val 2 string\ninner 3 message:Sample.Nested",
            "Kinds": "\n".join(KINDS),
        },
        {},
    )
    return table.find("Sample")
