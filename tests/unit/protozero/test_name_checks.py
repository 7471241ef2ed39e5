"""Names in hostile schemas can't inject code into generated modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from stretto.protozero.generator import proto_parser
from stretto.protozero.generator.__main__ import main
from stretto.protozero.generator.compiler import Options, compile_files, parse_options
from stretto.protozero.generator.descriptor_set import read_descriptor_set
from stretto.protozero.generator.schema import SchemaError

CODE = 'X = 1\nprint("injected")\nY'


def schema() -> FileDescriptorProto:
    file = FileDescriptorProto(name="x.proto", package="p")
    message = file.message_type.add(name="M")
    message.field.add(name="a", number=1, type=9, label=1)
    message.field.add(name="b", number=2, type=11, label=1, type_name=".p.M")
    message.enum_type.add(name="F").value.add(name="W", number=0)
    file.extension.add(name="c", number=9, type=9, label=1, extendee=".p.M")
    file.enum_type.add(name="E").value.add(name="V", number=0)
    method = file.service.add(name="S").method.add(name="Call")
    method.input_type = method.output_type = ".p.M"
    return file


PLACES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda file: file, "package"),
    (lambda file: file.message_type[0], "name"),
    (lambda file: file.message_type[0].field[0], "name"),
    (lambda file: file.message_type[0].field[1], "type_name"),
    (lambda file: file.message_type[0].enum_type[0], "name"),
    (lambda file: file.message_type[0].enum_type[0].value[0], "name"),
    (lambda file: file.extension[0], "name"),
    (lambda file: file.extension[0], "extendee"),
    (lambda file: file.enum_type[0], "name"),
    (lambda file: file.enum_type[0].value[0], "name"),
    (lambda file: file.service[0], "name"),
    (lambda file: file.service[0].method[0], "name"),
    (lambda file: file.service[0].method[0], "input_type"),
    (lambda file: file.service[0].method[0], "output_type"),
]


def read(file: FileDescriptorProto) -> dict[str, str]:
    files = read_descriptor_set(FileDescriptorSet(file=[file]).SerializeToString())
    return compile_files(files, [file.name], Options())


def test_unchanged_schema_compiles() -> None:
    for path, text in read(schema()).items():
        compile(text, path, "exec")


@pytest.mark.parametrize("name", [CODE, "a b", '"', "1a", "é"])
@pytest.mark.parametrize(("of", "attribute"), PLACES)
def test_invalid_name_in_a_descriptor_is_refused(
    of: Callable[[Any], Any], attribute: str, name: str
) -> None:
    file = schema()
    setattr(of(file), attribute, name)
    with pytest.raises(SchemaError, match="is no name"):
        read(file)


@pytest.mark.parametrize(
    "path", ["../../x.proto", "/tmp/x.proto", "a/../x.proto", "a//x.proto", "", 'x"\n.proto']
)
def test_proto_path_outside_of_the_output_folder_is_refused(path: str) -> None:
    for attribute in ("name", "dependency"):
        file = schema()
        setattr(file, attribute, path) if attribute == "name" else file.dependency.append(path)
        with pytest.raises(SchemaError, match="no name of a file"):
            read(file)


@pytest.mark.parametrize(
    "text", ["message -5 {}", "message 1a {}", "enum E { a.b = 0; }", "package a..b;"]
)
def test_invalid_name_in_a_proto_file_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"x\.proto: .* is no name"):
        proto_parser.parse_texts([("x.proto", text)])


@pytest.mark.parametrize("prefix", ["1 2", "a..b", "a.class", "a\nb"])
def test_invalid_package_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(SchemaError, match="there are c and prefix=PACKAGE"):
        parse_options(f"prefix={prefix}")
    with pytest.raises(SystemExit, match="no name of a package"):
        main(["--module", "google.protobuf.empty_pb2", "--prefix", prefix])
