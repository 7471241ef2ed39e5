"""The stubs of the extensions declare exactly the names of the extensions.

Only names are compared, because most native functions have no introspectable signature.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from types import ModuleType

import pytest

from tests.support.sources import PACKAGE


@pytest.fixture(params=["_native", "_pyhooks"])
def extension(request: pytest.FixtureRequest) -> ModuleType:
    name = f"stretto.{request.param}"
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} isn't built here")
    return importlib.import_module(name)


def stub_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the public names that the body of a module or class defines.

    Names with an underscore, such as type variables, exist only in the stub.
    """
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
        elif isinstance(node, ast.If):
            names.update(stub_names(node.body if holds(node.test) else node.orelse))
    return {name: node for name, node in names.items() if not name.startswith("_")}


def holds(condition: ast.expr) -> bool:
    """Return whether a condition `sys.version_info >= …` is true for this interpreter."""
    return bool(eval(ast.unparse(condition), {"sys": sys}))


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def stub_of(extension: ModuleType) -> dict[str, ast.stmt]:
    path = PACKAGE / f"{extension.__name__.rpartition('.')[2]}.pyi"
    return stub_names(ast.parse(path.read_text()).body)


def test_extension_has_exactly_the_names_of_its_stub(extension: ModuleType) -> None:
    assert set(stub_of(extension)) == public(extension)


def test_native_types_have_exactly_the_names_of_their_stubs(extension: ModuleType) -> None:
    for name, node in stub_of(extension).items():
        if isinstance(node, ast.ClassDef):
            assert set(stub_names(node.body)) == public(getattr(extension, name)), name


def test_native_types_have_the_name_of_their_module(extension: ModuleType) -> None:
    """Pickles and tracebacks require an importable module name."""
    for name in stub_of(extension):
        thing = getattr(extension, name)
        if isinstance(thing, type):
            assert thing.__module__ == extension.__name__, name
