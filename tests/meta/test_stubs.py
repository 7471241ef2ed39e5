"""The stubs of the extensions name what the extensions have, and nothing else.

Names only: most native functions can't be asked for their signature.
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
    """The public names that a module's or a class's body defines.

    Names with an underscore are the stub's own: type variables, aliases.
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
    """Whether `sys.version_info >= …` is so here."""
    return bool(eval(ast.unparse(condition), {"sys": sys}))


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("_")}


def stub_of(extension: ModuleType) -> dict[str, ast.stmt]:
    path = PACKAGE / f"{extension.__name__.rpartition('.')[2]}.pyi"
    return stub_names(ast.parse(path.read_text()).body)


def test_the_module_has_the_names_of_its_stub(extension: ModuleType) -> None:
    assert set(stub_of(extension)) == public(extension)


def test_the_types_have_the_names_of_their_stubs(extension: ModuleType) -> None:
    for name, node in stub_of(extension).items():
        if isinstance(node, ast.ClassDef):
            assert set(stub_names(node.body)) == public(getattr(extension, name)), name


def test_native_types_say_where_they_live(extension: ModuleType) -> None:
    """Pickles and tracebacks name a place that can be imported."""
    for name in stub_of(extension):
        thing = getattr(extension, name)
        if isinstance(thing, type):
            assert thing.__module__ == extension.__name__, name
