"""Generated modules have the same classes as the loader makes."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stretto
from fidl_support.ir import attribute, library, type_ir
from fidl_support.vectors.case import Case
from fidl_support.vectors.groups import GROUPS, TYPES, handles_of
from fidl_support.vectors.schema import LIBRARY
from stretto_fidl import codec
from stretto_fidl.bindings import load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.bindings.generator.modules import doc_literal
from stretto_fidl.errors import FidlError

Importer = Callable[[dict[str, str]], ModuleType]


@pytest.fixture
def importer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that writes generated files, and imports the first file."""

    def load_module(files: dict[str, str]) -> ModuleType:
        for name, text in files.items():
            (tmp_path / name).write_text(text, "utf-8")
        name = next(iter(files)).removesuffix(".py")
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load_module


def outcome(types: Any, case: Case) -> list[Any]:
    """Encode and decode a test vector; return bytes, values as text, or error messages."""
    found: list[Any] = []
    with handles_of(case) as handles:
        if case.value is not None:
            try:
                value = case.value(types, *handles)
                data, dispositions = codec.encode(value)
                found += [data, [each.handle is handles[i] for i, each in enumerate(dispositions)]]
            except codec.WireError as error:
                found.append(str(error))
        if case.data is not None:
            try:
                value = codec.decode(getattr(types, case.type), case.data, handles, wire=case.wire)
                found.append(repr(value).replace(repr(handles), ""))
            except codec.WireError as error:
                found.append(str(error))
    return found


def without_descriptors(found: list[Any]) -> list[Any]:
    return [str(each).split(" fd ", maxsplit=1)[0] for each in found]


def test_generated_and_loaded_classes_encode_and_decode_all_vectors_equally(
    importer: Importer,
) -> None:
    module = importer(generate(LIBRARY))
    for cases in GROUPS.values():
        for case in cases:
            generated = without_descriptors(outcome(module, case))
            assert generated == without_descriptors(outcome(TYPES, case)), case.name


METHODS = [
    {
        "kind": "method",
        "name": "Add",
        "ordinal": 0x1122334455667788,
        "strict": True,
        "has_request": True,
        "has_response": True,
        "maybe_request_payload": type_ir("Everything"),
        "maybe_response_payload": type_ir("Result"),
        "maybe_response_success_type": type_ir("Everything"),
        "maybe_response_err_type": type_ir("uint32"),
        "maybe_attributes": [attribute("trace", "maths"), attribute("transitional", "soon")],
    },
    {
        "kind": "method",
        "name": "OnTick",
        "ordinal": 7,
        "strict": False,
        "has_request": False,
        "has_response": True,
        "is_composed": True,
    },
]


def everything(trace: bool = True) -> dict[str, Any]:
    """Return a library with all kinds of definitions and types."""
    ir = library(
        structs={
            "Everything": (
                "class bool, n int8, f float32, text string:5?, v vector<string>:3, "
                "b vector<uint8>, "
                "a array<Point,2>, s string_array<4>, h handle:event,0xc003, c client:Calc?, "
                "p server:Calc, other base/Point, level Level, modes Modes, o Options, u Result, "
                "next Everything?, @secret string, levels vector<Level>, maybe Result?"
            ),
            "Point": "x int32, y int32",
            "Empty": "",
        },
        tables={"Options": "1: a uint8, 3: next Options", "None": ""},
        unions={"Result": "1: ok Everything, 2: err uint32, 3: framework framework_error"},
        enums={"Level": ("flexible", "int16", {"LOW": -1, "name": 1})},
        bits={"Modes": ("strict", "uint8", {"READ": 1, "WRITE": 2})},
        consts={"SIZE": ("uint32", 5), "NAME": ("string", 'a"b'), "BEST": ("Level", -1)},
        protocols={"Calc": METHODS},
    )
    ir["library_dependencies"] = [{"name": "base", "declarations": {"base/Point": "struct"}}]
    ir["struct_declarations"][1]["maybe_attributes"] = [
        attribute("doc", ' A "point".\n\n In \\ two.\n')
    ]
    ir["enum_declarations"][0]["maybe_attributes"] = [
        attribute("doc", ' It is "quoted"'),
        attribute("sensitive"),
    ]
    calc = ir["protocol_declarations"][0]
    calc["maybe_attributes"] = [attribute("discoverable"), attribute("trace", "all")]
    ir["service_declarations"] = [
        {"name": "test/Maths", "members": [{"name": "main", "type": type_ir("client:Calc")}]}
    ]
    if not trace:
        calc["maybe_attributes"].pop()
        calc["methods"] = [
            {**METHODS[0], "maybe_attributes": [attribute("transitional", "soon")]},
            METHODS[1],
        ]
    return ir


BASE = library("base", structs={"Point": "x uint8"})


def described(what: Any) -> Any:
    """Return a description of a type. Equal loaded and generated types have equal descriptions."""
    if isinstance(what, dict):
        return {key: described(value) for key, value in what.items()}
    if isinstance(what, (list, tuple)):
        return [described(each) for each in what]
    slots = {slot for cls in type(what).__mro__ for slot in getattr(cls, "__slots__", ())}
    if type(what).__module__ != "stretto_fidl.codec.types":
        return repr(what)
    hidden = {"plans", "cls", "library"}
    return type(what).__name__, {s: described(getattr(what, s)) for s in sorted(slots - hidden)}


def test_library_with_every_kind_of_declaration_is_generated(importer: Importer) -> None:
    base = importer(generate(BASE))
    module = importer(generate(everything()))
    namespace = load(everything(), [load(BASE)])
    assert module.Everything.TYPE.members[11].type.library.find("base/Point") is base.Point.TYPE
    names = {name for name in vars(namespace) if name != "FIDL_LIBRARY"}
    assert names <= set(vars(module))
    for name in names:
        generated, loaded = getattr(module, name), getattr(namespace, name)
        if not isinstance(loaded, type):
            assert repr(generated) == repr(loaded)
            continue
        assert generated.__doc__ == loaded.__doc__
        assert generated.__name__ == loaded.__name__
        assert [base.__name__ for base in generated.__mro__] == [
            base.__name__ for base in loaded.__mro__
        ]
        assert getattr(generated, "__slots__", None) == getattr(loaded, "__slots__", None)
        assert described(getattr(generated, "TYPE", None)) == described(
            getattr(loaded, "TYPE", None)
        )
    compare_protocols(module.Calc, namespace.Calc)
    assert module.Maths.MEMBERS == namespace.Maths.MEMBERS == {"main": "test/Calc"}


def compare_protocols(generated: Any, loaded: Any) -> None:
    for attribute_name in ("NAME", "OPENNESS", "TRANSPORT", "ATTRIBUTES"):
        assert getattr(generated, attribute_name) == getattr(loaded, attribute_name)
    assert len(generated.METHODS) == len(loaded.METHODS) == 2
    for one, other in zip(generated.METHODS, loaded.METHODS, strict=True):
        for each in ("name", "ordinal", "kind", "strict", "attributes", "composed"):
            assert getattr(one, each) == getattr(other, each)
        for each in ("request", "response", "success", "error"):
            names = [getattr(getattr(method, each), "__name__", None) for method in (one, other)]
            assert names[0] == names[1]


class TestTraceAnnotations:
    def test_trace_option_strip_removes_all_trace_annotations(
        self,
    ) -> None:
        assert generate(everything(), trace="strip") == generate(everything(trace=False))

    def test_trace_annotations_that_are_kept_become_attributes_in_the_generated_module(
        self, importer: Importer
    ) -> None:
        importer(generate(BASE))
        module = importer(generate(everything()))
        assert module.Calc.ATTRIBUTES["trace"] == "all"
        assert module.Calc.BY_NAME["Add"].attributes["trace"] == "maths"

    def test_invalid_value_of_the_trace_option_is_refused(self) -> None:
        with pytest.raises(FidlError, match="keep or strip, not drop"):
            generate(BASE, trace="drop")


def test_prefix_option_names_the_package_of_imported_libraries() -> None:
    text = generate(everything(), prefix="my.api")["test.py"]
    assert "\nfrom my.api import base as _lib_base\n" in text
    assert "(_lib_base.FIDL_LIBRARY,)" in text


@pytest.mark.parametrize("prefix", ["1 2", "a..b", "a.class", ".a", "a b", "a\nimport os"])
def test_invalid_prefix_option_is_refused(prefix: str) -> None:
    with pytest.raises(FidlError, match="isn't a Python package name"):
        generate(BASE, prefix=prefix)


@pytest.mark.parametrize("name", ["time", "random", "stretto"])
def test_library_named_like_another_module_is_refused_unless_a_prefix_is_given(name: str) -> None:
    alone, user = library(name), library("test", structs={"S": f"x {name}/T"})
    for ir in (alone, user):
        with pytest.raises(FidlError, match=f"library {name} would be the module {name}, .*prefix"):
            generate(ir)
        assert generate(ir, prefix="my.api")


@pytest.mark.parametrize("name", ["b", "t", "py", "overload", "lib"])
def test_library_may_have_the_name_of_a_module_that_generated_code_imports(
    importer: Importer, name: str
) -> None:
    importer(generate(library(name, structs={"Point": "x uint8"})))
    module = importer(generate(library(structs={"S": f"p {name}/Point, q vector<{name}/Point>"})))
    point = sys.modules[name].Point(x=3)
    value = module.S(p=point, q=[point])
    assert codec.decode(module.S, codec.encode(value)[0]) == value


def test_any_text_becomes_a_valid_docstring_literal() -> None:
    for length in range(7):
        for parts in itertools.product('"\\a\n', repeat=length):
            text = "".join(parts)
            assert ast.literal_eval(doc_literal(text)) == text


def test_generated_files_are_valid_python_and_the_module_precedes_its_stub() -> None:
    files = generate(library("a.b", structs={"S": "x uint8"}))
    assert list(files) == ["a_b.py", "a_b.pyi"]
    for text in files.values():
        compile(text, "generated", "exec")
        assert text.endswith("\n")


USE = """\
from stretto_fidl import codec
from test import BEST, NAME, SIZE, Calc, Everything, Level, Modes, Options, Point, Result

point = Point(x=1, y=2)
number: int = point.x
number = codec.decode(Point, b"").y
number = codec.decode(Point, b"").z  # type: ignore[attr-defined]
options = Options(a=1)
maybe: int | None = options.a
result = Result(err=5)
code: int | None = result.err
level: Level = Level.LOW
modes: Modes = Modes.READ | Modes.WRITE
name: str = NAME
size: int = SIZE
best: Level = BEST
ordinal: int = Calc.METHODS[0].ordinal


def look(value: Everything) -> None:
    text: str | None = value.text
    data: bytes = value.b
    points: list[Point] = value.a
    flag: bool = value.class_
    other: int = value.other.x
    if value.next is not None:
        value.next.level = Level.LOW


Point(x="1", y=2)  # type: ignore[arg-type]
Point(x=1)  # type: ignore[call-arg]
Result(ok=1)  # type: ignore[call-overload]
Options(b=1)  # type: ignore[call-arg]
point.z  # type: ignore[attr-defined]
"""


@pytest.mark.thorough
@pytest.mark.once
def test_generated_stubs_pass_mypy_strict(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for name, text in (generate(BASE) | generate(everything())).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "use.py").write_text(USE)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "use.py", "test.pyi"]
    package = Path(stretto.__file__).parent
    environment = dict(os.environ)
    # By default mypy finds installed packages only in site-packages.
    if package.parent.name != "site-packages":
        environment["MYPYPATH"] = str(package.parent)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
