"""One definition for each error of Fuchsia's compiler that this one finds as well.

The numbers are those of its catalogue, `fi-NNNN`; the definitions are ours. The
table in docs/fidl.md says which numbers aren't here, and why.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stretto.fidl.compiler import compile_sources
from stretto.fidl.errors import CompileError
from tests.support.fidl_source import error_of

VERSIONED = "@available(added=1)\nlibrary test.example;\n"
OTHER = "library test.other;\ntype T = struct {};\nprotocol P {};\n"
USING = "using test.other;\n"
E_TEXT = "type E = enum { A = 1; };\n"
AGED = (
    '@available(platform="aged", added=1)\nlibrary test.aged;\n'
    "@available(deprecated=2) type T = struct {};\n"
)
FDF = """\
library fdf;
type Subtype = strict enum : uint32 { CHANNEL = 1; };
resource_definition handle : uint32 { properties { subtype Subtype; }; };
"""
HANDLES = "using zx;\n"

RETIRED = {
    *"5 21 47 76 78 79 85 86 87 89 90 95 96 98 99 100 105 106 108 109 119 134 136 137 138".split(),
    *"139 140 143 144 170 174 176 182 183 190 194 195 196 200 202 220".split(),
}
"""Numbers that the catalogue keeps for errors that there aren't any more."""

CASES: dict[str, str] = {
    "1": "type ~S = struct {};",
    "2": 'const A string = "a\nb";',
    "3": r'const A string = "\q";',
    "4": r'const A string = "\u{12x}";',
    "6": "interface P {};",
    "7": "type S = struct { a 5; };",
    "8": "type S = struct { a uint8, };",
    "9": "library test.example;\nusing test.other with x;",
    "10": "type a__b_ = struct {};",
    "11": "library test.under_score;",
    "12": "type S = class {};",
    "13": "type E = enum : vector<uint8> { A = 1; };",
    "14": "@discoverable() protocol P {};",
    "15": '@custom("a", "b") type S = struct {};',
    "16": "type T = table { a uint8; };",
    "17": "type T = table { 4294967296: a uint8; };",
    "18": "type T = table { 0: a uint8; };",
    "19": "type U = strict union {};",
    "20": "protocol P { 5; };",
    "22": "const A @doc uint8 = 1;",
    "23": "type S = @custom struct {};",
    "24": "protocol P { M(/// Why.\n struct { a uint8; }); };",
    "25": "type S = struct {};\nusing test.other;",
    "29": "resource_definition R : uint32 { properties { }; };",
    "30": "type S = strict struct {};",
    "31": "type S = struct : uint8 {};",
    "32": "type E = strict strict enum { A = 1; };",
    "33": "type E = strict flexible enum { A = 1; };",
    "34": "type S = struct {}; type S = table {};",
    "35": "type some_name = struct {}; type SomeName = table {};",
    "36": VERSIONED
    + "@available(removed=3) type S = struct {};\n@available(added=2) type S = table {};",
    "37": VERSIONED
    + "@available(removed=3) alias ss = bool;\n@available(added=2) alias SS = bool;",
    "38": "using test.other as S;\ntype S = struct { t S.T; };",
    "39": "using test.other as ss;\ntype SS = struct { t ss.T; };",
    "42": USING + USING + "alias A = test.other.T;",
    "43": "using test.other as zx;\nusing zx;\nalias A = zx.T;",
    "44": "using zx as o;\nusing test.other as o;\nalias A = o.T;",
    "45": "/// Why.\n" + USING + "alias A = test.other.T;",
    "46": "using test.nowhere;",
    "48": "type T = table { 1: a string:optional; };",
    "49": "type U = union { 1: a string:optional; };",
    "50": "type S = struct { a uint8 = 1; };",
    "51": "alias A = test.nowhere.T;",
    "52": "alias A = Nothing;",
    "53": "type S = struct { a bool; };\nconst A bool = S.a;",
    "54": E_TEXT + "const A E = E.B;",
    "55": VERSIONED + "@available(deprecated=2) alias A = bool;\nalias B = A;",
    "56": "@available(added=1)\nlibrary test.example;\nusing test.aged;\nalias A = test.aged.T;",
    "57": "type S = struct { s S; };",
    "58": "type S = struct { inner struct {}; };\nalias A = Inner;",
    "59": "const A vector<uint8> = 1;",
    "60": "const A uint8 = Nothing;",
    "61": 'const A string = "a" | "b";',
    "63": "type S = struct {};\nconst A uint8 = S;",
    "64": E_TEXT + "type F = enum { A = 1; };\nconst A E = F.A;",
    "65": 'const A uint8 = "text";',
    "66": "const A uint8 = 256;",
    "67": "type B = bits { A = 3; };",
    "68": "type E = flexible enum : uint8 { A = 255; };",
    "69": "type B = bits : int32 { A = 1; };",
    "70": "type E = enum : float32 { A = 1; };",
    "71": "type E = strict enum { @unknown A = 1; };",
    "72": "type E = enum { @unknown A = 1; @unknown B = 2; };",
    "73": "type S = struct {};\nprotocol P { compose S; };",
    "74": "protocol P { M(enum { A = 1; }); };",
    "75": "protocol P { M(uint8); };",
    "77": "protocol P { M(struct {}); };",
    "81": 'protocol P { @selector("M") N(); M(); };',
    "82": 'protocol P { @selector("not one") M(); };',
    "84": "protocol P { M(struct { @allow_deprecated_struct_defaults a uint8 = 1; }); };",
    "88": "protocol P {};\nservice V { p client_end:<P, optional>; };",
    "91": "type S = struct { @allow_deprecated_struct_defaults a vector<uint8> = 1; };",
    "92": "type T = table { 65: a uint8; };",
    "93": "type T = table { 64: a uint8; };",
    "94": "type T = table { 1: a uint8; 1: b uint8; };",
    "97": "type U = union { 1: a uint8; 1: b uint8; };",
    "101": "alias A = vector<uint8>:Nothing;",
    "102": "type E = enum { A = Nothing; };",
    "103": "type S = struct { @allow_deprecated_struct_defaults a uint8 = Nothing; };",
    "104": "@custom(Nothing) type S = struct {};",
    "107": "type E = enum { A = 1; B = 1; };",
    "110": HANDLES + "type S = struct { h zx.Handle; };",
    "111": "type S = struct { a array<uint64, 8192>; };",
    "112": "protocol P {};\nservice V { p server_end:P; };",
    "113": 'protocol P {};\n@transport("Driver") protocol D {};\n'
    "service V { p client_end:P; d client_end:D; };",
    "114": "closed protocol P { compose O; };\nopen protocol O {};",
    "115": "ajar protocol P { flexible M() -> (); };",
    "116": "closed protocol P { flexible M(); };",
    "117": "using fdf;\nprotocol P { M(resource struct { h fdf.handle; }); };",
    "118": '@transport("Driver") protocol D {};\n'
    "protocol P { M(resource struct { d client_end:D; }); };",
    "120": "@discoverable type S = struct {};",
    "122": "@custom @custom type S = struct {};",
    "123": '@custom_name @CustomName("x") type S = struct {};',
    "124": "@custom(5) type S = struct {};",
    "125": 'protocol P { @selector(value="N") M(); };',
    "126": "@available(1)\nlibrary test.example;",
    "128": "protocol P { @selector M(); };",
    "129": '@discoverable(nothing="x") protocol P {};',
    "130": '@custom(a="x", a="y") type S = struct {};',
    "131": '@custom(a_b="x", aB="y") type S = struct {};',
    "132": 'type E = enum { @unknown("x") A = 1; };',
    "133": 'const A string = "B";\ntype S = struct { a @generated_name(A) struct {}; };',
    "135": '@discoverable(name="no name") protocol P {};',
    "141": "protocol P { M() -> () error float32; };",
    "142": '@transport("Pigeon") protocol P {};',
    "146": 'type S = struct { a @generated_name("no name") struct {}; };',
    "147": "@available\nlibrary test.example;",
    "148": '@available(added=1, note="x")\nlibrary test.example;',
    "149": VERSIONED + '@available(platform="test", added=2) type S = struct {};',
    "150": "@available(removed=2)\nlibrary test.example;",
    "151": "@available(added=2) type S = struct {};",
    "152": '@available(platform="No", added=1)\nlibrary test.example;',
    "153": "@available(added=0)\nlibrary test.example;",
    "154": "@available(added=2, removed=2)\nlibrary test.example;",
    "155": VERSIONED.replace("1", "2") + "@available(added=1) type S = struct {};",
    "156": "alias A = uint8:optional;",
    "157": "type S = struct {};\nalias A = client_end:S;",
    "158": "alias A = string:5;\nalias B = A:6;",
    "159": "type S = struct {};\nalias A = S:optional;",
    "160": "alias A = string:<optional, optional>;",
    "161": "alias A = array<uint8, 0>;",
    "162": "alias A = array<uint8>;",
    "163": "alias A = vector<uint8>:<1, optional>:5;",
    "164": "alias A = string:<1, 2, optional>;",
    "165": "alias A = vector<5>;",
    "166": 'alias A = string:"x";',
    "167": HANDLES + "alias A = zx.Handle:VMO;\nalias B = A:EVENT;",
    "168": "alias A = client_end;",
    "169": "type S = struct {};\nalias A = box<S>:optional;",
    "171": "type U = union { 1: a uint8; };\nalias A = box<U>;",
    "172": "resource_definition R : uint8 { properties { subtype enum { A = 1; }; }; };",
    "173": "resource_definition R : uint32 { properties { rights uint32; }; };",
    "175": "resource_definition R : uint32 { properties { subtype uint32; }; };",
    "177": "resource_definition R : uint32 "
    "{ properties { subtype enum { A = 1; }; rights string; }; };",
    "178": USING,
    "179": "type N = vector<uint8>;\nalias A = N:5;",
    "181": "@custom(A)\nlibrary test.example;\nconst A string = 'x';".replace("'", '"'),
    "184": 'const A string = "a\x07";',
    "185": r'const A string = "\u61";',
    "186": r'const A string = "\u{61";',
    "187": r'const A string = "\u{}";',
    "188": r'const A string = "\u{0000061}";',
    "189": r'const A string = "\u{110000}";',
    "193": "alias A = box<uint8>;",
    "197": "type O = overlay { 1: a uint8; };",
    "198": "type O = strict resource overlay { 1: a uint8; };",
    "199": HANDLES + "type O = strict overlay { 1: h zx.Handle; };",
    "203": VERSIONED + "@available(removed=2, replaced=2) type S = struct {};",
    "204": "@available(added=1, replaced=2)\nlibrary test.example;",
    "205": VERSIONED
    + "@available(removed=2) type S = struct {};\n@available(added=2) type S = table {};",
    "206": VERSIONED + "@available(replaced=2) type S = struct {};",
    "207": "type S = struct { a array<array<array<uint64, 65536>, 65536>, 4294967295>; };",
    "208": '@available(platform="unversioned", added=1)\nlibrary test.example;',
    "210": '@discoverable(client="nowhere") protocol P {};',
    "211": VERSIONED + '@available(removed=2, renamed="T") type S = struct {};',
    "212": VERSIONED + 'type T = table { @available(added=2, renamed="b") 1: a bool; };',
    "213": VERSIONED + 'type T = table { @available(removed=2, renamed="a") 1: a bool; };',
    "214": VERSIONED
    + 'type T = table { @available(removed=2, renamed="b") 1: a bool; 2: b bool; };',
    "215": VERSIONED + 'type T = table { @available(replaced=2, renamed="b") 1: a bool; };',
    "216": VERSIONED
    + "type T = table { @available(removed=2) 1: a bool; @available(added=2) 1: b bool; };",
    "217": VERSIONED
    + "type T = table { @available(replaced=2) 1: a bool; @available(added=2) 2: a bool; };",
    "218": VERSIONED + "type E = strict(deprecated=2) enum { A = 1; };",
    "219": VERSIONED + "protocol P { strict(removed=2) flexible(added=2) M() -> (); };",
    "221": HANDLES + "@no_resource protocol P { M(resource struct { h zx.Handle; }); };",
    "223": "protocol B {};\n@no_resource protocol P { compose B; };",
}


WITHOUT_PLACE = {"40", "41"}
"""What is wrong with files rather than with what they say."""

DOCUMENT = Path(__file__).parents[4] / "docs" / "fidl.md"


@pytest.mark.parametrize("number", CASES)
def test_found(number: str) -> None:
    error = error_of(CASES[number], other=OTHER, aged=AGED, fdf=FDF)
    assert error.line > 0
    assert error.column > 0
    assert len(error.errors) == 1


def test_files_of_libraries() -> None:
    with pytest.raises(CompileError, match="must be of one library"):
        compile_sources({"a": "library a;", "b": "library b;"})
    with pytest.raises(CompileError, match="among the dependencies"):
        compile_sources({"a": "library a;"}, dependencies={"b": "library a;"})


def test_the_document_has_the_numbers_that_are_not_found() -> None:
    """Numbers to 223 that aren't retired are here or in the table."""
    rows = re.findall(r"^\| ([0-9, ]+) \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    told = {number for row in rows for number in row.split(", ")}
    found = CASES.keys() | WITHOUT_PLACE
    assert not told & found
    assert told | found == {str(number) for number in range(1, 224)} - RETIRED
