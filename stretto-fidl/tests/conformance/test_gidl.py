"""Tests the runner of FIDL's conformance suite (GIDL) with files of this project."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fidl_support.gidl import main
from fidl_support.gidl_parser import (
    GidlError,
    HandleDefinition,
    HandleUse,
    RawFloat,
    Record,
    Unknown,
    parse,
)

SCHEMA = """\
library suite;
using zx;

type Number = struct { x uint16; };
type Real = struct { f float32; d float64; };
type Text = struct { s string:4; };
type Bytes = struct { v vector<uint8>; };
type Choice = flexible union { 1: small uint8; 2: large uint64; };
type StrictChoice = strict union { 1: small uint8; };
type Options = table { 1: a uint8; 3: name string; };
type Choices = struct { c Choice:optional; };
type Owner = resource struct { h zx.Handle:<EVENT, zx.Rights.TRANSFER | zx.Rights.WAIT>; };
type Owners = resource struct { v vector<zx.Handle:optional>; };
"""
CASES = r"""
// What is written and read.
success("Number") { value = Number{x: 0x0102}, bytes = { v1, v2 = [0x02, 0x01, padding:6] } }
success("Negative") { value = Real{f: -1.5, d: 2e3}, bytes = { v2 = [
    num(0xbfc00000):4, padding:4, num(0x409f400000000000):8 ] } }
success("Raw") { value = Real{f: raw_float(0b0_11111111_00000000000000000000000), d: 0},
    bytes = { v2 = [0, 0, 0x80, 0x7f, padding:4, repeat(0):8] } }
success("Signalling") { value = Real{f: raw_float(0x7fa00000), d: 0},
    bytes = { v2 = [0, 0, 0xa0, 0x7f, padding:4, repeat(0):8] } }
success("Text") { value = Text{s: "a\"\u{e9}"}, bytes = { v2 = [
    num(4):8, repeat(0xff):8, 'a', '"', 0xc3, 0xa9, padding:4] } }
success("Bytes") { value = Bytes{v: [1, 2]}, bytes = {
    v2 = [num(2):8, repeat(0xff):8, 1, 2, padding:6], }, }
success("Repeated") { value = Bytes{v: [repeat(1):3, 0o17]}, bytes = {
    v2 = [num(4):8, repeat(0xff):8, repeat(1):3, 15, padding:4], }, }
success("Options") { value = Options{a: 5},
    bytes = { v2 = [num(1):8, repeat(0xff):8, 5, padding:3, num(0):2, num(1):2] } }
success("OptionsOld") { value = Options{a: 5}, bytes = {
    v1 = [num(1):8, repeat(0xff):8, num(8):4, num(0):4, repeat(0xff):8, 5, padding:7] } }
success("Null") { value = Choices{c: null}, bytes = { v2 = [repeat(0):16] } }
decode_success("Unknown") { value = Choices{c: Choice{9: null}},
    bytes = { v2 = [num(9):8, num(8):4, num(0):4, repeat(0xab):8] } }
success("Stored") { bindings_allowlist = [go], value = Choices{c: Choice{9: {bytes = [1]}}},
    bytes = { v2 = [num(9):8, 1, padding:3, num(0):2, num(1):2] } }
decode_success("Elsewhere") { bindings_allowlist = [rust, go], value = Number{x: 2},
    bytes = { v2 = [num(1):8] } }
encode_failure("NotKept") { value = Choices{c: decode({ type = Choice, bytes = {
    v2 = [num(9):8, num(8):4, num(0):4, repeat(0xab):8] } })}, err = FLEXIBLE_UNION_UNKNOWN_FIELD }
success("Handles") { handle_defs = { #0 = event(), #1 = channel(rights: channel_default - read) },
    value = Owners{v: [#1, null, #0]}, bytes = { v2 = [num(3):8, repeat(0xff):8,
        repeat(0xff):4, num(0):4, repeat(0xff):4, padding:4] }, handles = { v2 = [#1, #0] } }
encode_success("Disposed") { handle_defs = { #0 = channel() }, value = Owner{h: #0},
    bytes = { v2 = [repeat(0xff):4, padding:4] },
    handle_dispositions = { v2 = [{#0, type: event, rights: transfer + wait}] } }
decode_success("Restricted") { handle_defs = { #0 = event(rights: event_default) },
    value = Owner{h: restrict(#0, type: event, rights: transfer + wait)},
    bytes = { v2 = [repeat(0xff):4, padding:4] }, handles = { v2 = [#0] } }
encode_failure("TooLong") { value = Text{s: "abcde"}, err = STRING_TOO_LONG }
encode_failure("NotSet") { value = Choice{}, err = UNION_FIELD_NOT_SET }
decode_failure("Padding") { type = Number, bytes = { v1, v2 = [num(1):2, 1, padding:5] },
    err = INVALID_PADDING_BYTE }
decode_failure("FewRights") { handle_defs = { #0 = event(rights: transfer) }, type = Owner,
    bytes = { v2 = [repeat(0xff):4, padding:4] }, handles = { v2 = [#0] },
    err = MISSING_REQUIRED_HANDLE_RIGHTS }
decode_failure("Strict") { type = StrictChoice, bytes = { v2 = [num(2):8, num(0):6, num(1):2] },
    err = STRICT_UNION_UNKNOWN_FIELD }
"""
WRONG = r"""
success("Other") { value = Number{x: 1}, bytes = { v2 = [2, padding:7] } }
decode_failure("OtherCode") { type = Number, bytes = { v2 = [1] }, err = TOO_MANY_HANDLES }
encode_failure("None") { value = Number{x: 1}, err = STRING_TOO_LONG }
decode_success("OtherRights") { handle_defs = { #0 = event() },
    value = Owner{h: restrict(#0, rights: transfer)},
    bytes = { v2 = [repeat(0xff):4, padding:4] }, handles = { v2 = [#0] } }
success("NoType") { value = Missing{}, bytes = { v2 = [] } }
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "suite.test.fidl").write_text(SCHEMA)
    return tmp_path


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not line.startswith("    ")]


def test_gidl_runner_reports_no_failure_for_a_valid_suite(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (suite / "cases.gidl").write_text(CASES)
    assert main([str(suite), "-v"]) == 0, capsys.readouterr().out
    found = lines(capsys.readouterr().out)
    nan = bytes.fromhex("0100807f")
    # CPython 3.14 and later keep the signalling bit of a NaN.
    keeps_it = struct.pack("<f", *struct.unpack("<f", nan)) == nan
    # The signalling NaN is one case for encoding and one for decoding.
    signalling = 2 if keeps_it else 0
    passed, unsupported = 30 + signalling, 5 - signalling
    assert found == [f"cases.gidl {passed} passed 0 failed {unsupported} unsupported".split()]


def test_gidl_runner_prints_results_that_differ_from_the_suite(
    suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (suite / "wrong.gidl").write_text(WRONG)
    assert main([str(suite / "wrong.gidl"), "-v"]) == 1
    out = capsys.readouterr().out
    assert lines(out) == ["wrong.gidl 0 passed 5 failed 2 unsupported".split()]
    for name in ("Other", "OtherCode", "None", "OtherRights", "NoType"):
        assert f" {name}: " in out


def test_gidl_runner_fails_for_a_folder_without_fidl_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.gidl").write_text(CASES)
    assert main([str(tmp_path)]) == 2
    assert "no .fidl files" in capsys.readouterr().err


def test_gidl_parser_reads_all_forms_of_values() -> None:
    text = (
        'success("x") { value = A{b: [1, -0x2, 1.5e3, "\\x41\\n", true, null, raw_float(0xff)], '
        "c: #3, 7: {bytes = [1, padding:2], handles = [#1]}, d: restrict(#2, rights: a - b)}, "
        "handle_defs = {#3 = event(rights: basic)} }"
    )
    (test,) = parse(text)
    assert test.attributes["value"] == Record(
        "A",
        {
            "b": [1, -2, 1500.0, b"A\n", True, None, RawFloat(255)],
            "c": HandleUse(3),
            7: Unknown(b"\1\0\0", [1]),
            "d": HandleUse(2, None, ["a", "-b"]),
        },
    )
    assert test.attributes["handle_defs"] == {3: HandleDefinition("event", ["basic"])}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('success("x") {\n  value = ;\n}', "line 2"),
        ('success("x") { bytes = { v2 = [wide(1):2] } }', "wide"),
        ('success "x" {}', r"'\(' is expected"),
        ('success("x") { value = A{b 1} }', "':' is expected, not '1'"),
    ],
)
def test_malformed_gidl_is_refused(text: str, message: str) -> None:
    with pytest.raises(GidlError, match=message):
        parse(text)
