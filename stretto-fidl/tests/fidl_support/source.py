"""Helpers for the tests of the compiler: FIDL texts and their IR."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import CompileError

HEAD = "library test.example;\n"


def compiled(text: str, **dependencies: str) -> dict[str, Any]:
    """Return the IR of a library of one file.

    Args:
        text: A whole file, or declarations to append to the line `library test.example;`.
        dependencies: Texts of the files of other libraries.
    """
    return compile_sources({"example.fidl": whole(text)}, dependencies=dependencies)


def whole(text: str) -> str:
    """Return the text of a whole file. A text without a library gets `library test.example;`."""
    return text if re.search(r"^(@.*)?library( [\w.]+)?;?", text, re.MULTILINE) else HEAD + text


def error_of(text: str, **dependencies: str) -> CompileError:
    """Compile an invalid definition with `compiled`; return the error that it raises."""
    with pytest.raises(CompileError) as caught:
        compiled(text, **dependencies)
    return caught.value


def named(ir: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a declaration of `test.example` by its name."""
    found = [
        declaration
        for key, declarations in ir.items()
        if key.endswith("_declarations") and key != "external_struct_declarations"
        for declaration in declarations
        if declaration["name"] == f"{ir['name']}/{name}"
    ]
    (declaration,) = found
    return dict(declaration)


def member_type(ir: dict[str, Any], owner: str, name: str) -> dict[str, Any]:
    """Return the IR of the type of a member."""
    (member,) = [m for m in named(ir, owner)["members"] if m["name"] == name]
    return dict(member["type"])


def shape(ir: dict[str, Any], name: str) -> tuple[int, ...]:
    """Return the seven numbers of a type's shape, in the order in which the IR has them."""
    return tuple(named(ir, name)["type_shape_v2"].values())
