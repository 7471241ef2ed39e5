"""Loaded and generated classes and stubs work with any name that FIDL allows."""

from __future__ import annotations

import ast
import builtins
import keyword
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stretto
from stretto_fidl import bindings, codec
from stretto_fidl.bindings import load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.compiler import compile_sources
from stretto_fidl.compiler.names import canonical
from stretto_fidl.python_names import LIBRARY, NAME, module_name
from tests.support.examples import examples

OURS = (
    "TYPE FIDL_LIBRARY NAME METHODS MEMBERS b t py lib cls overload Sequence Final ClassVar "
    "TypeAlias annotations self payload make check new value ordinal which bindings codec types "
    "A Num Flag Rec Tab Uni Prot lib_b cls_Num"
).split()
CLASSES = (bindings.Struct, bindings.Table, bindings.Union, bindings.Enum, bindings.Bits)
POOL = sorted(
    name
    for name in {
        *(keyword.kwlist + keyword.softkwlist + dir(builtins) + OURS),
        *(name for cls in (*CLASSES, bindings.Protocol, bindings.Service) for name in dir(cls)),
    }
    if NAME.fullmatch(name)
)
LIBRARIES = [name for name in POOL if LIBRARY.fullmatch(name)]
PACKAGE = "the_package"

name = st.sampled_from(POOL)
names = st.lists(name, min_size=1, max_size=4, unique_by=canonical)
kinds = ("enum", "bits", "struct", "table", "union")


@st.composite
def libraries(draw: st.DrawFn) -> tuple[str, str]:
    """Generate the texts of two libraries, the second of which uses the first."""
    base, user = draw(st.lists(st.sampled_from(LIBRARIES), min_size=2, max_size=2, unique=True))
    used = draw(name)
    first = f"library {base}; type {used} = enum : uint8 {{ {draw(name)} = 1; }};"
    free = name.filter(lambda each: canonical(each) not in (base, user))
    defined = draw(st.lists(free, min_size=7, max_size=7, unique_by=canonical))
    values = draw(names)
    enum, bits, struct, table, union, protocol, const = defined
    mentions = [f"{base}.{used}", f"{user}.{enum}", f"{user}.{bits}", "int32"]
    parts = [
        f"type UseOfBase = struct {{ used {base}.{used}; }};",
        f"type {enum} = enum : int8 {{ {_values(values)} }};",
        f"type {bits} = bits : uint8 {{ {_values(draw(names))} }};",
        f"type {struct} = struct {{ {_members(draw, mentions, False)} }};",
        f"type {table} = table {{ {_members(draw, mentions, True)} }};",
        f"type {union} = flexible union {{ {_members(draw, mentions, True)} }};",
        f"open protocol {protocol} {{ {' '.join(f'{each}();' for each in draw(names))} }};",
        f"const {const} {user}.{enum} = {user}.{enum}.{values[0]};",
    ]
    return first, f"library {user}; using {base}; {' '.join(parts)}"


def _values(found: list[str]) -> str:
    return " ".join(f"{each} = {1 << index};" for index, each in enumerate(found))


def _members(draw: st.DrawFn, mentions: list[str], ordinals: bool) -> str:
    return " ".join(
        (f"{index}: " if ordinals else "") + f"{each} {draw(st.sampled_from(mentions))};"
        for index, each in enumerate(draw(names), 1)
    )


@contextmanager
def imported(*files: dict[str, str]) -> Iterator[list[types.ModuleType]]:
    """Write and import generated modules; each module can import the earlier modules."""
    package = types.ModuleType(PACKAGE)
    sys.modules[PACKAGE] = package
    try:
        found = []
        for each in files:
            stem = next(iter(each)).removesuffix(".py")
            module = types.ModuleType(f"{PACKAGE}.{stem}")
            exec(compile(each[f"{stem}.py"], stem, "exec"), module.__dict__)
            setattr(package, stem, module)
            found.append(module)
        yield found
    finally:
        del sys.modules[PACKAGE]


def check_record(loaded: Any, generated: Any) -> None:
    """Check that a loaded and a generated class have equal members and encode equally."""
    attributes = [member.python_name for member in loaded.TYPE.members]
    assert attributes == [member.python_name for member in generated.TYPE.members]
    each_alone = issubclass(loaded, bindings.Union)
    for chosen in [[each] for each in attributes] if each_alone else [attributes]:
        values = [cls(**dict.fromkeys(chosen, 1)) for cls in (loaded, generated)]
        for cls, value in zip((loaded, generated), values, strict=True):
            data, _ = codec.encode(value)
            assert codec.decode(cls, data) == value
            assert repr(value).startswith(f"{cls.TYPE.short_name}(")
            assert [getattr(value, each) for each in attributes] == [
                1 if each in chosen else None for each in attributes
            ]
            if each_alone:
                assert (value.which, value.value, value.is_unknown) == (chosen[0], 1, False)
                assert value.ordinal == attributes.index(chosen[0]) + 1
        assert codec.encode(values[0])[0] == codec.encode(values[1])[0]


def check_numbers(loaded: Any, generated: Any) -> None:
    """Check that a loaded and a generated enum have all members as attributes."""
    for cls in (loaded, generated):
        for fidl_name, value in cls.TYPE.values.items():
            member = getattr(cls, bindings.numbers.number_name(fidl_name))
            assert type(member) is cls
            assert (int(member), member.name, member.is_unknown) == (value, fidl_name, False)


def check_stub(text: str, namespace: Any) -> None:
    """Check that a stub file has all classes with all their members."""
    classes = {
        node.name: _defined(node) for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    }
    for cls in filter(lambda each: isinstance(each, type), vars(namespace).values()):
        type_ = getattr(cls, "TYPE", None)
        if isinstance(type_, codec.types.Enum):
            wanted = set(map(bindings.numbers.number_name, type_.values))
        else:
            wanted = {member.python_name for member in getattr(type_, "members", ())}
        assert wanted <= classes[cls.__name__]


def _defined(node: ast.ClassDef) -> set[str]:
    found = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return found | {target.id for target in targets if isinstance(target, ast.Name)}


@given(libraries())
@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_classes_with_any_names_work(texts: tuple[str, str]) -> None:
    first, second = texts
    irs = [
        compile_sources({"base.fidl": first}),
        compile_sources({"use.fidl": second}, dependencies={"base.fidl": first}),
    ]
    base = load(irs[0])
    files = [generate(ir, prefix=PACKAGE) for ir in irs]
    with imported(*files) as modules:
        for namespace, module, ir in zip((base, load(irs[1], [base])), modules, irs, strict=True):
            for attribute, value in vars(namespace).items():
                twin = getattr(module, attribute)
                if isinstance(value, type) and issubclass(value, bindings.Enum):
                    check_numbers(value, twin)
                elif isinstance(value, type) and hasattr(value, "TYPE"):
                    check_record(value, twin)
                elif isinstance(value, type):
                    assert list(value.BY_NAME) == list(twin.BY_NAME)
                elif attribute != "FIDL_LIBRARY":
                    assert (int(value), repr(value)) == (int(twin), repr(twin))
            stub = generate(ir, prefix=PACKAGE)[f"{module_name(ir['name'])}.pyi"]
            check_stub(stub, namespace)


SAMPLE_BASE = "library b; type overload = enum { overload = 1; };"
SAMPLE = """\
library class;
using b;
type Sequence = struct { Sequence vector<b.overload>; Color Color; next box<Sequence>; };
type Color = enum { Color = 1; TYPE = 2; name = 3; real = 4; };
type py = flexible union { 1: py Color; 2: ordinal Sequence; 3: value int32; 4: int string; };
type int = table { 1: int int32; 2: None Color; 3: property py; 4: from vector<Sequence>; };
type annotations = bits { Final = 1; };
const Final string = "x";
"""
USE = """\
from the_package import b, class_ as a

color: a.Color = a.Color.Color
numbers: list[a.Color] = [a.Color.TYPE_, a.Color.name_, a.Color.real_]
inner = a.Sequence(Sequence=[b.overload.overload], Color=color, next=None)
words: list[b.overload] = inner.Sequence
color = inner.Color
maybe: a.Color | None = a.py(py=color).py
held: a.Sequence | None = a.py(ordinal_=inner).ordinal_
number: int | None = a.py(value_=3).value_
text: str | None = a.py(int="x").int
table = a.int(int=3, None_=color, property=a.py(value_=1), from_=[])
tables: list[a.Sequence] | None = table.from_
flags: a.annotations = a.annotations.Final | a.annotations.Final
name: str = a.Final
a.py(value=3)  # type: ignore[call-overload]
assert (color.name, maybe, held, number, text) == ("Color", color, inner, 3, "x")
"""


@pytest.mark.thorough
@pytest.mark.once
def test_stubs_with_reserved_names_pass_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    package = tmp_path / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    irs = [
        compile_sources({"b.fidl": SAMPLE_BASE}),
        compile_sources({"a.fidl": SAMPLE}, dependencies={"b.fidl": SAMPLE_BASE}),
    ]
    for ir in irs:
        for file, text in generate(ir, prefix=PACKAGE).items():
            (package / file).write_text(text)
    (tmp_path / "use.py").write_text(USE)
    root = Path(stretto.__file__).parent.parent
    known = {} if root.name == "site-packages" else {"MYPYPATH": str(root)}
    for environment, arguments in (
        (known, ["-m", "mypy", "--strict", "--no-incremental", "use.py", str(package)]),
        ({"PYTHONPATH": str(root)}, ["-c", USE.replace("a.py(value=3)", "")]),
    ):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=dict(os.environ) | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
