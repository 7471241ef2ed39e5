from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from difflib import ndiff
from pathlib import Path
from typing import Any

import pytest

from stretto.protozero.generator import (
    c_emitter,
    descriptor_set,
    proto_parser,
    python_emitter,
    stub_emitter,
)
from stretto.protozero.generator.modules import split
from stretto.protozero.generator.schema import File, Method, Schema, SchemaError, Service
from tests.support.generated import load, module_of
from tests.support.google_classes import descriptor_of

SAMPLES = Path(__file__).parent
PROTOC = shutil.which("protoc")


TRACED = """\
import "stretto/trace_options.proto";
message A {}
service Greeter {
  option deprecated = true;
  option (stretto.trace_all) = "greeter";
  rpc Hello(A) returns (A);
  rpc Shout(A) returns (stream A) { option deprecated = true; option (stretto.trace) = "loud"; };
  rpc Hush(A) returns (A) {
    option (stretto.trace) = "";
  }
}
service Plain { rpc Ask(A) returns (A); }
"""


def parse(tmp_path: Path, text: str) -> File:
    path = tmp_path / "x.proto"
    path.write_text(text)
    (file,) = proto_parser.parse([path])
    return file


class TestProtoParser:
    @pytest.mark.parametrize("name", ["sample", "sample3"])
    def test_parsed_proto_file_survives_a_round_trip_through_its_descriptor(
        self, name: str
    ) -> None:
        """Encode the parsed schema as a descriptor and read it back."""
        (file,) = proto_parser.parse([SAMPLES / f"{name}.proto"])
        data = descriptor_of(file, file.name, []).SerializeToString()
        (again,) = descriptor_set.read_descriptor_set(b"\x0a" + varint(len(data)) + data)
        again.services = file.services
        assert again == file

    @pytest.mark.skipif(PROTOC is None, reason="protoc is not installed")
    @pytest.mark.parametrize("name", ["sample", "sample3"])
    def test_parsed_schema_equals_the_schema_parsed_by_protoc(
        self, name: str, tmp_path: Path
    ) -> None:
        source = (SAMPLES / f"{name}.proto").read_text()
        source = source.replace('  option (custom).option = "ignored";\n', "")
        (tmp_path / "x.proto").write_text(source)
        command = [str(PROTOC), f"-I{tmp_path}", f"-o{tmp_path}/out", "x.proto"]
        if name == "sample":
            # protoc accepts two enum values of the same number only with the option `allow_alias`.
            source = source.replace("enum Color {", "enum Color {\n  option allow_alias = true;")
            (tmp_path / "x.proto").write_text(source)
        subprocess.run(command, check=True)
        (theirs,) = descriptor_set.read_descriptor_set((tmp_path / "out").read_bytes())
        (ours,) = proto_parser.parse([tmp_path / "x.proto"])
        assert ours == theirs

    @pytest.mark.skipif(PROTOC is None, reason="protoc is not installed")
    def test_trace_options_equal_those_of_protoc(self, tmp_path: Path) -> None:
        (tmp_path / "x.proto").write_text(TRACED)
        own = Path(proto_parser.__file__).parents[2] / "protos"
        command = [str(PROTOC), f"-I{tmp_path}", f"-I{own}", f"-o{tmp_path}/out", "x.proto"]
        subprocess.run(command, check=True)
        (theirs,) = descriptor_set.read_descriptor_set((tmp_path / "out").read_bytes())
        *_, ours = proto_parser.parse_imported(["x.proto"], [tmp_path])
        assert ours == theirs

    @pytest.mark.parametrize("option", ["stretto.trace_all", "stretto.trace", ".stretto.trace_all"])
    def test_trace_options_of_services_and_methods_are_read(
        self, tmp_path: Path, option: str
    ) -> None:
        file = parse(tmp_path, TRACED.replace("stretto.trace_all", option))
        traced, plain = file.services
        assert traced.trace == "greeter"
        assert [method.trace for method in traced.methods] == [None, "loud", ""]
        assert plain == Service("Plain", [Method("Ask", "A", "A")])

    def test_traced_methods_are_listed_in_a_generated_constant(self, tmp_path: Path) -> None:
        schema = Schema([parse(tmp_path, TRACED)])
        (module,) = split(schema, [("made", "Doc.", ["A"])])
        namespace = load(module)
        assert namespace.GREETER_TRACE == {"Hello": "greeter", "Shout": "loud"}
        assert not hasattr(namespace, "PLAIN_TRACE")
        stub = stub_emitter.emit(module, "x")
        assert "GREETER_TRACE: _Final[dict[str, str]]" in stub
        assert "PLAIN_TRACE" not in stub

    @pytest.mark.parametrize("emitter", [python_emitter, stub_emitter])
    def test_schema_with_trace_options_adds_only_the_trace_constant(
        self, tmp_path: Path, emitter: Any
    ) -> None:
        """The trace options add one constant to the generated module and change nothing else."""
        bare = re.sub(r"option \(stretto\.trace\w*\) = \"\w*\";", "", TRACED)
        assert "(stretto" not in bare
        texts = []
        for source in (TRACED, bare):
            (module,) = split(Schema([parse(tmp_path, source)]), [("made", "Doc.", ["A"])])
            texts.append(emitter.emit(module, "x"))
        lines, unannotated = (text.splitlines() for text in texts)
        changed = [line for line in ndiff(unannotated, lines) if line[:2] in ("+ ", "- ")]
        is_stub = emitter is stub_emitter
        assert [line for line in changed if line != "+ "] == (
            ["+ GREETER_TRACE: _Final[dict[str, str]]"]
            if is_stub
            else [
                "+ GREETER_TRACE = {",
                '+     "Hello": "greeter",',
                '+     "Shout": "loud",',
                "+ }",
            ]
        )

    @pytest.mark.parametrize(
        "option", ["(stretto.trace) = x;", "(stretto.trace) = 5;", '(stretto.trace) "x";']
    )
    def test_trace_option_that_is_no_string_is_refused(self, tmp_path: Path, option: str) -> None:
        with pytest.raises(SchemaError, match="expected"):
            parse(tmp_path, f"message A {{}} service S {{ option {option} }}")

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("message A {\n  optional uint8 x = 1;\n}", "no message or enum is called 'uint8'"),
            ("message A {\n  optional int32 x;\n}", r"x\.proto:2:19: unexpected ';', expected '='"),
            (
                "message A {\n\n  optional int32 x = one;\n}",
                r"3:22: unexpected 'one', expected a number",
            ),
            ("message A {", "unexpected end of file"),
            ("message A {\n  optional int32 x = 1 $\n}", r"2:\d+: unexpected character '\$'"),
            ("message A { optional group B = 1 {} }", "groups are not supported, use a message"),
            ("message A { extend B { optional int32 x = 1; } }", "called 'B'"),
            ("edition = '2023';", "unexpected 'edition'"),
            ("service A { stream B(C) returns (D); }", "unexpected 'stream'"),
            ("service A { rpc B(C) returns (D); }", "called 'C'"),
            ("message A { optional int32 x = 1 [packed true]; }", "expected '='"),
            (r'message A { optional bytes x = 1 [default = "\q"]; }', r"1:\d+: \\q is no escape"),
            (r'message A { optional bytes x = 1 [default = "\x"]; }', r"\\x is no escape"),
            (r'message A { optional string x = 1 [default = "\ud800"]; }', "half a character"),
            (r'message A { optional string x = 1 [default = "\xff"]; }', "not UTF-8"),
            ("message A { optional int32 x = 08; }", "'08', expected a number"),
            ("message A { oneof o { group B = 1 {} } }", "groups are not supported"),
            ('syntax = "proto4";', "'proto4', expected proto2 or proto3"),
            ("message A {} message A {}", r"x\.proto: A is defined twice"),
            ("message A { enum B { X = 0; } message B {} }", r"A\.B is defined twice"),
            ("message A { optional int32 x = 1; optional int32 x = 2; }", "fields called x"),
            ("message A { optional int32 x = 1; optional int32 y = 1; }", "fields of number 1"),
            ("message A { optional int32 x = 0; }", r"A\.x has the number 0: use one from 1"),
            ("message A { optional int32 x = 536870912; }", "from 1 to 536870911"),
            ("message A {} extend A { optional int32 x = -1; }", "x has the number -1"),
            ("message A { map<double, bool> x = 1; }", "keys of type double"),
            (
                "message A { optional int32 x = 1 [default = 2147483648]; }",
                "of type int32: 2147483648 can't",
            ),
            ("message A { optional fixed32 x = 1 [default = -1]; }", "of type fixed32: -1 can't"),
            ("message A { optional int32 x = 1 [default = no]; }", "no can't be its default"),
            ("message A { optional bool x = 1 [default = 1]; }", "1 can't be its default"),
            ("message A { optional float x = 1 [default = no]; }", "no can't be its default"),
            (
                "enum E { X = 0; } message A { optional E x = 1 [default = Y]; }",
                "of type E: Y can't",
            ),
            ("import x;", "unexpected 'x', expected a string"),
            ("extend B { optional int32 x = 1; }", "no message or enum is called 'B'"),
            ("option x = { a: { b: 1 }", "unexpected end of file"),
        ],
    )
    def test_error_contains_file_and_line(self, tmp_path: Path, text: str, complaint: str) -> None:
        with pytest.raises(SchemaError, match=complaint):
            parse(tmp_path, text)

    def test_string_literals_are_unescaped_as_in_c(self, tmp_path: Path) -> None:
        literal = r"""'\x41\101\?\\\?\n"' "é" """
        text = f"message A {{ optional string x = 1 [default = {literal}]; }}"
        assert parse(tmp_path, text).messages[0].fields[0].default == 'AA?\\?\n"é'

    @pytest.mark.parametrize(
        ("text", "default"),
        [
            ("optional int32 x = 1 [default = 017];", "15"),
            ("optional int64 x = 1 [default = -0x10];", "-16"),
            ("optional sint32 x = 1 [default = - 5];", "-5"),
            ("optional uint64 x = 0x1 [default = 18446744073709551615];", "18446744073709551615"),
            ("optional sfixed64 x = 1 [default = -9223372036854775808];", "-9223372036854775808"),
            ("optional double x = 1 [default = - inf];", "-inf"),
            (r'optional string x = 1 [default = "\u00e9\U0001f600"];', "\u00e9\U0001f600"),
            (r'optional bytes x = 1 [default = "\x4\X41\777"];', "\x04A\xff"),
            ('optional bool x = 1 [(o).a.(p.q).b = { a: "]" }, default = true];', "true"),
        ],
    )
    def test_defaults_in_unusual_notation_are_read(
        self, tmp_path: Path, text: str, default: str
    ) -> None:
        (field,) = parse(tmp_path, f"message A {{ {text} }}").messages[0].fields
        assert (field.number, field.default) == (1, default)

    def test_keywords_are_accepted_as_names(self, tmp_path: Path) -> None:
        text = """\ufeffsyntax = "proto3";
            enum E { A = 0 [(o) = { a: [1, 2] }, deprecated = true]; B = - 1; C = 010; }
            message M { int32 group = 1; oneof o { string group_ = 2; bool message = 3; } }"""
        file = parse(tmp_path, text)
        assert file.enums[0].values == [("A", 0), ("B", -1), ("C", 8)]
        assert [field.name for field in file.messages[0].fields] == ["group", "group_", "message"]

    def test_type_names_are_resolved_from_the_innermost_scope(self, tmp_path: Path) -> None:
        file = parse(
            tmp_path,
            "package p; message B {} message A { message B {}"
            " optional B inner = 1; optional .p.B outer = 2; optional A.B path = 3; }",
        )
        assert [f.type_name for f in file.messages[1].fields] == ["p.A.B", "p.B", "p.A.B"]

    def test_types_without_a_package_are_resolved(self, tmp_path: Path) -> None:
        file = parse(tmp_path, "message B {} message A { optional B b = 1; }")
        assert file.messages[1].fields[0].type_name == "B"
        assert Schema([file]).split_package("A") == ("", "A")


class TestDescriptorSet:
    def test_descriptor_with_a_group_is_refused(self) -> None:
        field = b"\x0a\x01g\x18\x01\x28\x0a"
        message = b"\x0a\x01M\x12" + varint(len(field)) + field
        file = b"\x22" + varint(len(message)) + message
        with pytest.raises(SchemaError, match="groups are not supported"):
            descriptor_set.read_descriptor_set(b"\x0a" + varint(len(file)) + file)


class TestAttributeNames:
    def test_two_fields_with_the_same_attribute_name_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x.proto").write_text(
            "message A { optional int32 from = 1; optional int32 from_ = 2; }"
        )
        _, module = module_of(tmp_path / "x.proto", "x")
        with pytest.raises(SchemaError, match="A: two fields would have the attribute from_"):
            python_emitter.emit(module, "a test")


class TestGeneratedModules:
    def test_closure_contains_all_types_that_the_given_types_use(self) -> None:
        (file,) = proto_parser.parse([SAMPLES / "sample.proto"])
        schema = Schema([file])
        everything = {"stretto.test.Everything", "stretto.test.Color"}
        assert schema.closure(["stretto.test.Everything.Inner"]) == everything
        assert schema.closure(["stretto.test.Empty"]) == {"stretto.test.Empty"}
        with pytest.raises(SchemaError, match="Nothing"):
            schema.closure(["stretto.test.Nothing"])

    def test_each_type_is_in_one_module(self) -> None:
        (file,) = proto_parser.parse([SAMPLES / "sample.proto"])
        one, two = split(
            Schema([file]),
            [("one", "", ["stretto.test.Empty"]), ("two", "", file.type_names())],
        )
        assert [message.name for message in one.messages] == ["stretto.test.Empty"]
        assert [message.name for message in two.messages] == ["stretto.test.Everything"]
        assert two.reference("stretto.test.Empty") == "one/Empty"
        assert two.reference("stretto.test.Everything.Inner") == "Everything.Inner"


class TestGeneratedStubs:
    def test_generated_stub_declares_every_attribute_of_a_message(self) -> None:
        _, module = module_of(SAMPLES / "sample.proto", "stretto_sample")
        tree = ast.parse(stub_emitter.emit(module, "a test"))
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        assert sorted(classes) == ["Color", "Empty", "Everything"]
        attributes = {
            node.target.id: ast.unparse(node.annotation)
            for node in classes["Everything"].body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        assert attributes["inner"] == "Everything.Inner | None"
        assert attributes["packed_colors"] == "builtins.list[int]"
        assert attributes["a_bytes"] == "builtins.bytes"
        assert attributes["messages"] == "dict[int, Everything.Inner]"
        assert attributes["from_"] == "int"
        assert attributes["ROUND"] == "_Final"

    @pytest.mark.thorough
    @pytest.mark.once
    def test_generated_stubs_pass_mypy(self, tmp_path: Path) -> None:
        pytest.importorskip("mypy")
        for name in ("sample", "sample3"):
            module = module_of(SAMPLES / f"{name}.proto", name)[1]
            (tmp_path / f"{name}.pyi").write_text(stub_emitter.emit(module, "a test"))
        (tmp_path / "use.py").write_text(
            "from sample import Everything\n"
            "message = Everything(many=(1, 2), inner=Everything.Inner(value=1), from_=1)\n"
            "number: int = message.a_int32 + message.many[0]\n"
            "if message.inner is not None:\n"
            "    number = message.inner.value\n"
            "data: bytes = Everything.decode(message.encode()).a_bytes\n"
            "with Everything.Writer() as writer, writer.set_inner() as inner:\n"
            "    inner.set_value(1)\n"
            "    writer.add_numbers('a', 1)\n"
            "message.a_int32 = 'text'  # type: ignore[assignment]\n"
            "Everything(a_int32='text')  # type: ignore[arg-type]\n"
            "Everything(nothing=1)  # type: ignore[call-arg]\n"
            "writer.set_a_int32('text')  # type: ignore[arg-type]\n"
        )
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


class TestCHeader:
    def test_header_defines_field_numbers_and_enum_values(self) -> None:
        (file,) = proto_parser.parse([SAMPLES / "sample.proto"])
        names = ["stretto.test.Everything.Inner", "stretto.test.Color"]
        text = c_emitter.emit(Schema([file]), names, "GUARD_H_")
        assert "#ifndef GUARD_H_" in text
        assert "  ST_FIELD_EVERYTHING_INNER_VALUE = 1,\n" in text
        assert "  ST_ENUM_COLOR_NEGATIVE = -1,\n" in text

    def test_constant_names_of_different_fields_differ(self, tmp_path: Path) -> None:
        text = "message Ab { optional int32 cd_ef = 1; } message AbCd { optional int32 ef = 2; }"
        schema = Schema([parse(tmp_path, text)])
        header = c_emitter.emit(schema, ["Ab", "AbCd"], "G")
        assert "ST_FIELD_AB_CD_EF = 1," in header
        assert "ST_FIELD_ABCD_EF = 2," in header


def varint(value: int) -> bytes:
    from stretto.protozero import wire

    return wire.varint(value)
