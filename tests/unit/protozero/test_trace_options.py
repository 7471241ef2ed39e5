"""Trace options in proto files are read; an error names file, line and column."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stretto.protozero.generator import proto_parser
from stretto.protozero.generator.schema import File, SchemaError
from stretto.protozero.generator.trace_options import own_option

PROTOC = shutil.which("protoc")
HEAD = 'import "stretto/trace_options.proto";\nmessage A {}\n'


def parsed(text: str, head: str = HEAD) -> File:
    (file,) = proto_parser.parse_texts([("x.proto", head + text)])
    return file


WRONG = [
    ('service S { option (stretto.trace_al) = "shop"; }', "3:20", "stretto.trace_al"),
    ('service S { option (.stretto.traced) = "shop"; }', "3:20", "stretto.traced"),
    ('service S { option (stretto.trace_all).x = "shop"; }', "3:20", "stretto.trace_all.x"),
    (
        'service S { rpc M(A) returns (A) {\n  option (stretto.tarce) = "shop"; } }',
        "4:10",
        "stretto.tarce",
    ),
    (
        'service S { rpc M(A) returns (A) { option (stretto.trace_all) = "x"; } }',
        "3:43",
        "stretto.trace_all",
    ),
    ('option (stretto.trace) = "shop";', "3:8", "stretto.trace"),
    ('message B { option (stretto.trace) = "shop"; }', "3:20", "stretto.trace"),
    ('enum E { option (stretto.trace) = "shop"; X = 0; }', "3:17", "stretto.trace"),
]


@pytest.mark.parametrize(("text", "place", "name"), WRONG)
def test_unknown_stretto_option_is_refused_with_line_and_column(
    text: str, place: str, name: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        parsed(text)
    assert str(caught.value).startswith(f"x.proto:{place}: there is no option `({name})` here")


@pytest.mark.skipif(PROTOC is None, reason="protoc isn't installed")
@pytest.mark.parametrize("text", [text for text, _, _ in WRONG])
def test_protoc_also_refuses_the_invalid_options(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.proto").write_text(f'syntax = "proto2";\n{HEAD}{text}')
    own = Path(proto_parser.__file__).parents[2] / "protos"
    command = [str(PROTOC), f"-I{tmp_path}", f"-I{own}", f"-o{tmp_path}/out", "x.proto"]
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0


SERVICE = 'message A {}\nservice S {\n  option (stretto.trace_all) = "shop";\n}\n'


def test_trace_option_without_the_import_of_its_file_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"^x\.proto:3:10: .*import \"stretto/trace_options"):
        parsed(SERVICE, head="")
    with pytest.raises(SchemaError, match=r"^x\.proto:3:10: "):
        proto_parser.parse_texts([("y.proto", HEAD), ("x.proto", 'import "y.proto";' + SERVICE)])


def test_trace_option_may_be_imported_by_a_public_import() -> None:
    public = 'import public "stretto/trace_options.proto";'
    sources = [("y.proto", public), ("z.proto", 'import public "y.proto";')]
    *_, file = proto_parser.parse_texts([*sources, ("x.proto", 'import "z.proto";' + SERVICE)])
    assert file.services[0].trace == "shop"


def test_options_may_be_used_before_the_import_of_their_file() -> None:
    file = parsed(f"{SERVICE}\n{HEAD.splitlines()[0]}", head="")
    assert file.services[0].trace == "shop"


def test_options_of_other_packages_are_ignored() -> None:
    text = (
        'option (other.trace) = "x"; message B { option (o).p = 5; }'
        'service S { option (my.stretto_trace) = "x"; option deprecated = true;'
        'rpc M(A) returns (A) { option (google.api.http) = { get: "/v1/{name}" }; } }'
    )
    file = parsed(text, head="message A {}")
    assert (file.services[0].trace, file.services[0].methods[0].trace) == ("", None)


@pytest.mark.parametrize(
    ("name", "package", "expected"),
    [
        ("deprecated", "", None),
        ("(stretto.trace)", "", "stretto.trace"),
        ("(.stretto.trace)", "my.stretto", "stretto.trace"),
        ("(stretto.trace)", "my.stretto", None),
        ("(trace)", "", None),
        ("(trace)", "stretto.demo", "stretto.trace"),
        ("(trace_all)", "stretto", "stretto.trace_all"),
        ("(tarce)", "stretto", None),
        ("(stretto.tarce)", "stretto.demo", "stretto.tarce"),
        ("(strettoo.trace)", "", None),
    ],
)
def test_option_names_are_resolved_like_in_protobuf(
    name: str, package: str, expected: str | None
) -> None:
    assert own_option(name, package) == expected
