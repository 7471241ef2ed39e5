"""The worked example of the ProtoZero paper: `nested { int_val: 42, str_val: "foo" }`."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.protozero.decoder import Decoder
from stretto.protozero.generator import proto_parser
from tests.support.generated import load_files
from tests.support.google_classes import messages_of
from tests.unit.native.pipeline import BUFFER, make_arbiter, make_table, packets_of, read_all

SCHEMA = """
syntax = "proto2";
package example;
message Packet {
  optional Root root = 900;
}
message Root {
  optional string padding = 1;
  optional Nested nested = 3;
}
message Nested {
  optional int32 int_val = 1;
  optional string str_val = 2;
}
"""
PAYLOAD = bytes.fromhex("08 2a 12 03 66 6f 6f")
CANONICAL = bytes.fromhex("1a 07") + PAYLOAD
REDUNDANT = bytes.fromhex("1a 87 80 80 00") + PAYLOAD


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return Stretto's generated module and Google's class for the message Root."""
    folder = tmp_path_factory.mktemp("example")
    (folder / "example.proto").write_text(SCHEMA)
    (ours,) = load_files(folder, ["example.proto"], "worked")
    (file,) = proto_parser.parse([folder / "example.proto"])
    return ours, messages_of(file)["example.Root"]


def write(root: Any, padding: int = 0) -> Any:
    if padding:
        root.set_padding("x" * padding)
    with root.set_nested() as nested:
        nested.set_int_val(42)
        nested.set_str_val("foo")
    return root


def test_example_message_is_written_in_canonical_form(classes: tuple[Any, Any]) -> None:
    ours, google = classes
    theirs = google()
    theirs.nested.int_val, theirs.nested.str_val = 42, "foo"
    message = ours.Root(nested=ours.Nested(int_val=42, str_val="foo"))
    assert theirs.SerializeToString() == message.encode() == CANONICAL
    assert write(ours.Root.Writer()).finish() == CANONICAL


def test_example_message_with_redundant_sizes_decodes_to_the_same_message(
    classes: tuple[Any, Any],
) -> None:
    ours, google = classes
    assert google.FromString(REDUNDANT) == google.FromString(CANONICAL)
    assert ours.Root.decode(REDUNDANT) == ours.Root.decode(CANONICAL)
    decoder = ours.Root.Decoder(REDUNDANT)
    assert (decoder.nested.int_val, decoder.nested.str_val) == (42, "foo")
    (field,) = Decoder(REDUNDANT)
    assert bytes(field.data) == PAYLOAD


def test_size_of_a_message_that_spans_chunks_takes_four_bytes(
    classes: tuple[Any, Any],
) -> None:
    """If a message spans two chunks, its size is patched later and takes four bytes."""
    native = pytest.importorskip("stretto._native", reason="the native core isn't built")
    ours, google = classes
    table = make_table()
    writer = native.TraceWriter(make_arbiter(table), BUFFER)
    paddings = [1 + number % 97 for number in range(2000)]
    for padding in paddings:
        with ours.Packet.Writer(writer) as packet, packet.set_root() as root:
            write(root, padding)
    writer.close()
    forms = []
    for padding, packet in zip(paddings, packets_of(read_all(table)), strict=True):
        data = packet[900]
        assert isinstance(data, bytes)
        expected = ours.Root(padding="x" * padding, nested=ours.Nested(int_val=42, str_val="foo"))
        assert ours.Root.decode(data) == expected
        assert google.FromString(data) == google.FromString(expected.encode())
        forms += [form for form in (CANONICAL, REDUNDANT) if data.endswith(form)]
    assert len(forms) == len(paddings)
    assert set(forms) == {CANONICAL, REDUNDANT}
