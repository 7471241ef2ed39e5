"""The code generator as a plugin of protoc, and as a command."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stretto.protozero.generator import __main__ as command
from stretto.protozero.generator import descriptor_set, plugin, proto_parser
from stretto.protozero.generator.compiler import Options, compile_files, parse_options
from stretto.protozero.generator.schema import SchemaError
from tests.support.generated import load_files
from tests.support.google_classes import descriptor_of

SAMPLES = Path(__file__).parent
NAMES = ["extended.proto", "extending.proto"]
PROTOC = shutil.which("protoc")
CC = shutil.which("cc")
NATIVE = SAMPLES.parents[2] / "native" / "core"


def expected(options: Options) -> dict[str, str]:
    files = proto_parser.parse_imported(["extending.proto"], [SAMPLES])
    return compile_files(files, NAMES, options)


def request(parameter: str = "", names: list[str] | None = None) -> bytes:
    """Return an encoded CodeGeneratorRequest like the one that protoc sends."""
    plugin_pb2: Any = pytest.importorskip("google.protobuf.compiler.plugin_pb2")
    made = plugin_pb2.CodeGeneratorRequest(
        file_to_generate=NAMES if names is None else names, parameter=parameter
    )
    for file in proto_parser.parse_imported(["extending.proto"], [SAMPLES]):
        made.proto_file.append(descriptor_of(file, file.name, file.imports))
    return bytes(made.SerializeToString())


def response(data: bytes) -> Any:
    plugin_pb2: Any = pytest.importorskip("google.protobuf.compiler.plugin_pb2")
    return plugin_pb2.CodeGeneratorResponse.FromString(data)


def without_services(texts: dict[str, str]) -> dict[str, str]:
    """Remove the constants of services, because `descriptor_of` omits services."""
    return {
        path: text.replace('OBSERVER_METHODS = {\n    "Watch": 1,\n}\n\n', "").replace(
            "OBSERVER_METHODS: _Final[dict[str, int]]\n", ""
        )
        for path, text in texts.items()
    }


class TestProtocPlugin:
    def test_plugin_responds_with_the_generated_files(self) -> None:
        answer = response(plugin.respond(request("prefix=my.protos,c")))
        assert not answer.error
        assert answer.supported_features == 1
        files = {file.name: file.content for file in answer.file}
        assert files == without_services(expected(Options("my.protos", c=True)))
        assert sorted(files) == [
            *("extended.pzc.h", "extended_pbzero.py", "extended_pbzero.pyi"),
            *("extending.pzc.h", "extending_pbzero.py", "extending_pbzero.pyi"),
        ]

    def test_plugin_generates_only_the_requested_files(self) -> None:
        answer = response(plugin.respond(request(names=["extending.proto"])))
        assert [file.name for file in answer.file] == [
            "extending_pbzero.py",
            "extending_pbzero.pyi",
        ]

    @pytest.mark.parametrize("parameter", ["fast", "prefix=", "prefix=a b", "c=1"])
    def test_unknown_option_is_reported_in_the_response(self, parameter: str) -> None:
        answer = response(plugin.respond(request(parameter)))
        assert answer.error == f"option {parameter!r}: there are c and prefix=PACKAGE"
        assert not answer.file

    def test_groups_and_editions_are_reported_in_the_response(self) -> None:
        plugin_pb2: Any = pytest.importorskip("google.protobuf.compiler.plugin_pb2")
        made = plugin_pb2.CodeGeneratorRequest(file_to_generate=["a.proto"])
        file = made.proto_file.add(name="a.proto")
        message = file.message_type.add(name="M")
        message.field.add(name="g", number=1, type=10, label=1)
        answer = response(plugin.respond(made.SerializeToString()))
        assert "groups are not supported" in answer.error
        message.ClearField("field")
        file.syntax = "editions"
        answer = response(plugin.respond(made.SerializeToString()))
        assert "'editions' is not supported" in answer.error

    @pytest.mark.parametrize("data", [b"", b"\x0a", b"\x78\x01", b"\x7a\x01\xff"])
    def test_malformed_request_is_reported_in_the_response(self, data: bytes) -> None:
        assert response(plugin.respond(data)).error

    @pytest.mark.skipif(PROTOC is None, reason="protoc is not installed")
    def test_plugin_runs_under_protoc(self, tmp_path: Path) -> None:
        script = tmp_path / "protoc-gen-stretto"
        script.write_text(
            f"#!{sys.executable}\nfrom stretto.protozero.generator.plugin import main\nmain()\n"
        )
        script.chmod(0o755)
        for name in NAMES:
            lines = (SAMPLES / name).read_text().splitlines()
            kept = [line for line in lines if "(some" not in line and "(custom)" not in line]
            numbers = "  repeated int32 numbers = 103 [packed = true];"
            text = "\n".join(kept).replace(
                "  repeated Detail details", f"{numbers}\n  repeated Detail details"
            )
            text = text.replace("= 110;\n  }", "= 110;\n  }\n  optional int32 x = 1;")
            (tmp_path / name).write_text(text)
        (tmp_path / "out").mkdir()
        subprocess.run(
            [
                *(str(PROTOC), f"-I{tmp_path}", f"--plugin={script}"),
                *(f"--stretto_out={tmp_path}/out", "--stretto_opt=c", *NAMES),
            ],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
        assert written == expected(Options(c=True))


def test_protoc_finds_the_plugin_by_its_name() -> None:
    project = tomllib.loads((SAMPLES.parents[2] / "pyproject.toml").read_text())
    module, _, function = project["project"]["scripts"]["protoc-gen-stretto"].partition(":")
    assert getattr(importlib.import_module(module), function) is plugin.main


class TestPluginOptions:
    def test_plugin_options_are_parsed(self) -> None:
        assert parse_options("") == Options()
        assert parse_options("c,prefix=a.b") == Options("a.b", c=True)


class TestGeneratorCommand:
    def test_command_generates_code_for_proto_files(self, tmp_path: Path) -> None:
        command.main(["--c", "--out", str(tmp_path), "-I", str(SAMPLES), *NAMES])
        assert {p.name: p.read_text() for p in tmp_path.iterdir()} == expected(Options(c=True))

    def test_command_generates_from_a_descriptor_set(self, tmp_path: Path) -> None:
        descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
        files = proto_parser.parse_imported(["extending.proto"], [SAMPLES])
        made = descriptor_pb2.FileDescriptorSet(
            file=[descriptor_of(file, file.name, file.imports) for file in files]
        )
        (tmp_path / "set").write_bytes(made.SerializeToString())
        out = tmp_path / "out"
        command.main(["--descriptor-set", str(tmp_path / "set"), "--out", str(out)])
        written = {path.name: path.read_text() for path in out.iterdir()}
        assert written == without_services(expected(Options()))

    def test_command_generates_code_for_an_installed_protobuf_module(self, tmp_path: Path) -> None:
        pytest.importorskip("google.protobuf.compiler.plugin_pb2")
        module = "google.protobuf.compiler.plugin_pb2"
        command.main(["--module", module, "--out", str(tmp_path), "--prefix", "made"])
        folder = tmp_path / "google" / "protobuf" / "compiler"
        text = (folder / "plugin_pbzero.py").read_text()
        shipped = "message:stretto.protozero.well_known.descriptor_pbzero/FileDescriptorProto"
        assert shipped in text
        assert {path.name for path in tmp_path.rglob("*.py*")} == {
            "plugin_pbzero.py", "plugin_pbzero.pyi",
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "name .proto files"),
            (["nothing.proto"], "command line: nothing.proto is not in"),
            (["--module", "no.such_pb2"], "no.such_pb2 is no module that protoc wrote"),
            (["--module", "sys"], "sys is no module that protoc wrote"),
            (["--descriptor-set", "/no/file"], "/no/file: No such file"),
            (["--descriptor-set", __file__], "this is no FileDescriptorSet"),
        ],
    )
    def test_invalid_arguments_end_the_command(self, arguments: list[str], complaint: str) -> None:
        with pytest.raises(SystemExit, match=complaint):
            command.main(arguments)

    def test_name_missing_in_the_descriptor_set_is_an_error(self) -> None:
        pytest.importorskip("google.protobuf.descriptor_pb2")
        with pytest.raises(SystemExit, match=r"there is no x\.proto; there are google/prot"):
            command.main(["--module", "google.protobuf.descriptor_pb2", "x.proto"])


class TestImportOrder:
    def test_imported_files_come_before_the_files_that_import_them(self) -> None:
        files = proto_parser.parse_imported(["extending.proto"], [SAMPLES])
        assert [file.name for file in files] == NAMES
        assert files[1].public == files[1].imports == ["extended.proto"]

    def test_import_cycle_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "a.proto").write_text('import "b.proto";')
        (tmp_path / "b.proto").write_text('import weak "a.proto";')
        with pytest.raises(SchemaError, match=r"b\.proto: a\.proto imports itself"):
            proto_parser.parse_imported(["a.proto"], [tmp_path])


class TestGeneratedCode:
    def test_generated_modules_import_only_protozero(self) -> None:
        for path, text in expected(Options()).items():
            if path.endswith(".py"):
                imports = [
                    node.module
                    for node in ast.walk(ast.parse(text))
                    if isinstance(node, ast.ImportFrom)
                ]
                assert imports == ["__future__", "stretto.protozero.table"]

    @pytest.mark.thorough
    @pytest.mark.once
    def test_generated_stubs_pass_mypy(self, tmp_path: Path) -> None:
        pytest.importorskip("mypy")
        for path, text in expected(Options()).items():
            (tmp_path / path).write_text(text)
        (tmp_path / "use.py").write_text(
            "from extending_pbzero import Detail, Event, detail, speed\n"
            "event = Event(id=1)\n"
            "event[speed] = 3\n"
            "number: int = event[speed]\n"
            "event[detail] = Detail(x=1)\n"
            "writer = Event.Writer()\n"
            "with detail.open(writer) as nested:\n"
            "    nested.set_x(1)\n"
            "decoder = Event.Decoder(writer.finish())\n"
            "view: memoryview = decoder.blob\n"
            "if decoder.c is not None:\n"
            "    number = decoder.c.level\n"
            "event[speed] = 'x'  # type: ignore[misc]\n"
        )
        line = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


C_PROGRAM = """
#include <stdio.h>

#include "extended.pzc.h"
#include "extending.pzc.h"

static void by_message(struct st_message* m) {
  struct st_message child;
  st_event_set_id(m, -1);
  st_event_set_blob(m, "abc", 3);
  st_event_set_a_fixed32(m, 7);
  st_event_set_a_sfixed64(m, -2);
  st_event_set_ratio(m, 0.5f);
  st_event_set_big(m, -0.25);
  st_event_set_deltas(m, "\\x01\\x02", 2);
  st_event_set_none(m, ST_ENUM_EVENT_FROM);
  st_event_begin_c(m, &child);
  st_event_class_set_level(&child, 2);
  st_event_add_tags(m, "t", 1);
  st_event_set_speed(m, 5);
}

static uint8_t* by_pointer(uint8_t* p) {
  uint8_t inner[16];
  size_t size = (size_t)(st_event_class_put_level(inner, 2) - inner);
  p = st_event_put_id(p, -1);
  p = st_event_put_blob(p, "abc", 3);
  p = st_event_put_a_fixed32(p, 7);
  p = st_event_put_a_sfixed64(p, -2);
  p = st_event_put_ratio(p, 0.5f);
  p = st_event_put_big(p, -0.25);
  p = st_event_put_deltas(p, "\\x01\\x02", 2);
  p = st_event_put_none(p, 1);
  p = st_event_put_c_size(p, size);
  memcpy(p, inner, size);
  p = st_event_put_tags(p + size, "t", 1);
  return st_event_put_speed(p, 5);
}

int main(void) {
  uint8_t one[256], two[256];
  struct st_stream_writer stream;
  struct st_message root;
  st_stream_init_fixed(&stream, one, sizeof one);
  st_message_init_root(&root, &stream);
  by_message(&root);
  st_message_finalize(&root);
  size_t size = (size_t)st_stream_written(&stream);
  if ((size_t)(by_pointer(two) - two) != size || memcmp(one, two, size))
    return 1;
  fwrite(one, 1, size, stdout);
  return 0;
}
"""


@pytest.mark.skipif(CC is None, reason="there is no C compiler")
def test_message_written_by_generated_c_setters_is_decoded(tmp_path: Path) -> None:
    for path, text in expected(Options(c=True)).items():
        (tmp_path / path).write_text(text)
    (tmp_path / "main.c").write_text(C_PROGRAM)
    subprocess.run(
        [
            *(str(CC), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"),
            *(f"-I{NATIVE}", f"-I{tmp_path}", "-o", str(tmp_path / "main")),
            *(str(tmp_path / "main.c"), str(NATIVE / "message.c")),
            str(NATIVE / "stream_writer.c"),
        ],
        check=True,
    )
    data = subprocess.run([tmp_path / "main"], check=True, capture_output=True).stdout
    extended, ext = load_files(SAMPLES, ["extending.proto"], "of_c")
    event = extended.Event(
        id=-1,
        blob=b"abc",
        a_fixed32=7,
        a_sfixed64=-2,
        ratio=0.5,
        big=-0.25,
        deltas=[-1, 1],
        none=1,
        c=extended.Event.class_(level=2),
    )
    event[ext.tags] = ["t"]
    event[ext.speed] = 5
    assert extended.Event.decode(data) == event


def test_schema_is_unchanged_by_conversion_to_a_descriptor_set() -> None:
    """A descriptor keeps extensions, JSON names, public imports and defaults of bytes fields."""
    files = proto_parser.parse_imported(["extending.proto"], [SAMPLES])
    descriptor_pb2: Any = pytest.importorskip("google.protobuf.descriptor_pb2")
    made = descriptor_pb2.FileDescriptorSet(
        file=[descriptor_of(file, file.name, file.imports) for file in files]
    )
    for file in files:
        file.services = []
    assert descriptor_set.read_descriptor_set(made.SerializeToString()) == files
