"""Finds and parses the sources of the checkout, for the lints in tests/meta."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "stretto"
FIDL_PACKAGE = ROOT / "stretto-fidl" / "src" / "stretto_fidl"
PACKAGES = (PACKAGE, FIDL_PACKAGE)
"""Of both distributions."""


class Import(NamedTuple):
    """A name that a file imports, with its line."""

    module: str
    """Absolute name; `from a import b` gives `a.b`, for `b` may be a module."""
    line: int
    at_top: bool
    """Runs when its module is imported: neither in a function nor for the type checker only."""
    typing_only: bool
    """Stands under `if TYPE_CHECKING`, or in a stub."""


def python_sources(*suffixes: str, packages: tuple[Path, ...] = PACKAGES) -> list[Path]:
    """Return the paths of all modules of the packages, sorted."""
    wanted = suffixes or (".py", ".pyi")
    files = (path for package in packages for path in package.rglob("*"))
    return sorted(path for path in files if path.suffix in wanted)


def package_of(path: Path) -> Path | None:
    """Return the folder of the package that contains a file, or None."""
    return next((package for package in PACKAGES if path.is_relative_to(package)), None)


def native_sources(folder: str = "") -> list[Path]:
    """Return the paths of all C sources and headers below native/."""
    files = (ROOT / "native" / folder).rglob("*")
    return sorted(path for path in files if path.suffix in (".c", ".h"))


def module_name(path: Path) -> str:
    """Return a module's name: `stretto.base.clock` for `src/stretto/base/clock.py`."""
    package = package_of(path)
    assert package is not None, path
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_name(path: Path) -> str:
    """Return the package from which a file's relative imports start; empty outside of packages."""
    if package_of(path) is None:
        return ""
    return module_name(path.parent / "__init__.py")


@functools.cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return the imports of a file, including those in functions."""
    tree = ast.parse(path.read_text(), str(path))
    return tuple(_imports(tree, package_name(path), False, path.suffix == ".pyi"))


def _imports(node: ast.AST, package: str, in_function: bool, typing_only: bool) -> Iterator[Import]:
    for name in _imported(node, package):
        line = getattr(node, "lineno", 0)
        yield Import(name, line, not in_function and not typing_only, typing_only)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        in_function = True
    guarded = node.body if isinstance(node, ast.If) and _is_type_checking(node.test) else ()
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):  # import statements are never inside of an expression
            yield from _imports(child, package, in_function, typing_only or child in guarded)


def _imported(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def where(path: Path, line: int, complaint: str) -> str:
    """Return a message with file and line, in the form that editors recognize."""
    return f"{path.relative_to(ROOT)}:{line}: {complaint}"


def report(violations: list[str]) -> None:
    """Fail if a lint found violations, and list them all."""
    assert not violations, "\n" + "\n".join(violations)


def is_generated(path: Path) -> bool:
    """Return whether the first lines mark the file as generated."""
    head = path.read_text().splitlines()[:5]
    return any("generated" in line.lower() for line in head)
