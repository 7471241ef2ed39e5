"""Format files of events of the kernel."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto import _native
from stretto.probes.ftrace_events import (
    ADDRESS,
    CHARS,
    COMPACT_SWITCH,
    DEVICE,
    LOC_BYTES,
    LOC_STRING,
    PLAIN,
    REST,
    SIGNED,
    U64_ARRAY,
    UNSIGNED,
    EventTable,
    Format,
)
from tests.support.fake_tracefs import RECORDED
from tests.support.probing import WrittenPackets


def with_field(declaration: str, size: int, *, signed: bool = False) -> str:
    return (
        "name: x\nID: 77\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        f"\tfield:{declaration};\toffset:8;\tsize:{size};\tsigned:{int(signed)};\n\nprint fmt: 1\n"
    )


def read(name: str) -> Format:
    return Format(name, (RECORDED / f"events/{name}/format").read_text())


@pytest.mark.parametrize(
    ("declaration", "size", "signed", "kind"),
    [
        ("int a", 4, True, SIGNED),
        ("pid_t a", 4, True, SIGNED),
        ("unsigned long a", 8, False, UNSIGNED),
        ("void * a", 8, False, ADDRESS),
        ("void * a", 4, False, UNSIGNED),
        ("bool a", 1, False, UNSIGNED),
        ("char a[16]", 16, False, CHARS),
        ("char a[]", 0, False, REST),
        ("__data_loc char[] a", 4, False, LOC_STRING),
        ("__data_loc u8[] a", 4, False, LOC_BYTES),
        ("__data_loc char[] a", 8, False, None),
        ("unsigned long a[6]", 48, False, U64_ARRAY),
        ("dev_t a", 4, False, DEVICE),
        ("struct odd a", 24, False, None),
        ("int a[2]", 8, True, None),
    ],
)
def test_kind_of_a_field_follows_from_its_declaration(
    declaration: str, size: int, signed: bool, kind: int | None
) -> None:
    (field,) = Format("g/x", with_field(declaration, size, signed=signed)).fields
    assert (field.name, field.offset, field.size, field.kind) == ("a", 8, size, kind)


def test_known_event_has_the_numbers_of_its_message() -> None:
    table = EventTable(compact=False)
    table.add(read("sched/sched_switch"))
    id_, number, form, fields, descriptor, _ = table.rows[0]
    assert (id_, number, form, descriptor) == (372, 4, PLAIN, None)
    assert [field[0] for field in fields] == [1, 2, 3, 4, 5, 6, 7]


def test_scheduling_is_compact_if_it_has_the_known_layout() -> None:
    table = EventTable()
    table.add(read("sched/sched_switch"))
    assert table.rows[0][2] == COMPACT_SWITCH
    text = (RECORDED / "events/sched/sched_switch/format").read_text()
    table.add(Format("sched/sched_switch", text.replace("next_comm", "other_comm")))
    assert table.rows[1][2] == PLAIN


def test_event_of_a_user_with_a_known_name_is_generic() -> None:
    table = EventTable()
    table.add(Format("uprobes/sched_switch", with_field("int a", 4, signed=True)))
    assert table.rows[0][4] is not None


def test_fields_that_do_not_fit_their_message_are_left_out() -> None:
    table = EventTable()
    table.add(Format("task/task_rename", with_field("unsigned long pid", 8)))
    assert table.rows[0][3] == ()


def test_file_without_an_id_is_refused() -> None:
    with pytest.raises(ValueError, match="no ID"):
        Format("g/x", "name: x\n")


@given(st.text(), st.sampled_from(["int a", "char b[", "__data_loc", "a" * 300, "*"]))
def test_any_text_is_parsed_without_an_error(text: str, declaration: str) -> None:
    for each in (text, with_field(declaration + text, 4)):
        try:
            found = Format("g/x", "ID: 5\n" + each)
        except ValueError:
            continue
        table = EventTable()
        table.add(found)
        _native.FtraceReader(tuple(table.rows), 4096, 1)


def test_reader_refuses_impossible_events() -> None:
    for row in [
        (70_000, 1, 1, (), None, None),
        (5, 1, 9, (), None, None),
        (5, 1, 2, (), None, None),
        (5, 1, 1, ((1, 8, 3, SIGNED, None),), None, None),
        (5, 1, 1, ((1, 8, 4, 99, None),), None, None),
    ]:
        with pytest.raises(ValueError, match="can't be converted"):
            _native.FtraceReader((row,), 4096, 1)
    reader = _native.FtraceReader((), 4096, 1)
    with pytest.raises(ValueError, match="cpu is 1"):
        reader.drain(WrittenPackets().writer, ((1, 0),), 1, b"", None)


def test_reader_refuses_names_that_are_not_bytes(tmp_path: Path) -> None:
    """The event has one field, an address of the kernel."""
    event = (5, 1, 1, ((1, 8, 8, ADDRESS, None),), None, None)
    record = struct.pack("<IHBBiQ", 4, 5, 0, 0, 7, 0xFFFF_8000_0000_1000)
    page = struct.pack("<QQ", 100, len(record)) + record
    (tmp_path / "pages").write_bytes(page.ljust(4096, b"\0"))
    reader = _native.FtraceReader((event,), 4096, 1)
    written = WrittenPackets()

    def drain(names: Any) -> None:
        with (tmp_path / "pages").open() as file:
            reader.drain(written.writer, ((0, file.fileno()),), 1, b"", names)

    with pytest.raises(TypeError, match="names must return bytes"):
        drain(lambda _: 3)
    with pytest.raises(AttributeError, match="missing"):
        drain(lambda addresses: addresses.missing)
    drain(lambda _: b"\x40\x07")
    (packet,) = written.take()
    assert packet.timestamp == 7
    assert packet.ftrace_events is not None
    assert packet.ftrace_events.cpu == 0
