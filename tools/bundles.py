"""Write the bundles of modules: stretto/_bundle.py describes them.

    python tools/bundles.py src/stretto FOLDER

The bundles are for the CPython that runs this tool. It reads the sources only, so the package needs
no extensions. A bundle has the modules that the roots import when they are imported themselves.
Modules that functions import later are roots, too; tests/unit/test_bundle.py finds those that
are missing.
"""

from __future__ import annotations
import __future__

import ast
import importlib.util
import marshal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

FIRST = "stretto._bundle"
"""What `stretto/__init__.py` imports before the first bundle."""

BUNDLES = {
    "events": """
        stretto.base.errors
        stretto.base.version
        stretto._package_finder
        stretto.client.api
    """,
    "sessions": """
        stretto._wiring
        stretto.client.recording
    """,
    "in_process": """
        stretto.client.tracing_session
        stretto.protos.config
        stretto.backends.in_process
    """,
    "recorded": """
        stretto._wiring
        stretto.recorder.target.ending
        stretto.recorder.target.spawns
        stretto.profilers.log
        stretto.profilers.functions
        stretto.profilers.context_managers
        stretto.profilers.gc
        stretto.profilers.task_frameworks
        stretto.profilers.exceptions
        stretto.profilers.gil_waits
        stretto.profilers.io_waits
        stretto.profilers.lock_waits
        stretto.profilers.loop_watch
        stretto.recorder.fork_socket
        stretto.backends.system
    """,
    "tasks": """
        stretto.profilers.asyncio_tasks
    """,
    "record": """
        stretto.cli.record.command
    """,
    "recorder": """
        stretto.cli.record.terminal_reporter
        stretto.cli.record.exit_status
        stretto.recorder.host.recorder
        stretto.base.memory
        stretto.service.output.file_drain
    """,
}
"""The roots of each bundle."""
INTERNAL = (
    "stretto._wiring",
    "stretto._package_finder",
    *(
        f"stretto.{package}."
        for package in (
            "backends", "base", "client", "ipc", "ports", "profilers", "protozero", "recorder",
            "service",
        )
    ),
)  # fmt: skip
"""Modules and packages of which programs use no names: functions in them need no docstrings and
annotations."""
PUBLIC = (
    "stretto.base.errors",
    "stretto.client.api",
    "stretto.client.data_source",
    "stretto.client.recording",
    "stretto.client.tracing_session",
    "stretto.protozero.enums",
    "stretto.protozero.message",
)
"""Modules among them of which programs do use names."""
EXTENSIONS = ("stretto._native", "stretto._pyhooks")
LOADED_BEFORE = {
    "sessions": ["events"],
    "in_process": ["events", "sessions"],
    "recorded": ["events"],
    "tasks": ["events", "recorded"],
    "record": ["events"],
    "recorder": ["events", "record"],
}


class Imports:
    """Finds the modules that are executed when a module is imported.

    Args:
        package: The folder of the package.

    Attributes:
        modules: The names of modules of the package, each after those that it imports.
        others: The names of all other modules that they import.
    """

    def __init__(self, package: Path) -> None:
        self._package = package
        self._seen = {package.name}
        self.modules: list[str] = []
        self.others: list[str] = []

    def path(self, name: str) -> Path | None:
        """Return the path of a module of the package; None if there is no such module."""
        stem = self._package.parent / name.replace(".", "/")
        paths = (stem / "__init__.py", stem.with_suffix(".py"))
        return next((path for path in paths if path.exists()), None)

    def visit(self, name: str) -> None:
        """Add a module, after its package and all modules that it imports."""
        if name in self._seen:
            return
        parent = name.rpartition(".")[0]
        if parent:
            self.visit(parent)  # It may import this module.
        if name in self._seen:
            return
        self._seen.add(name)
        path = self.path(name)
        if path is None:
            self.others.append(name)
            return
        imported = list(_imports(ast.parse(path.read_text()).body))
        for module, names in imported:
            self._visit_imported(module, names)
        # A package that imports modules of its own needs to be in `sys.modules` before it is
        # complete. The import system does that.
        if not any(f"{module}.".startswith(f"{name}.") for module, _ in imported):
            self.modules.append(name)

    def _visit_imported(self, module: str, names: list[str]) -> None:
        self.visit(module)
        for name in names:
            full = f"{module}.{name}"
            if self.path(full) or full in EXTENSIONS:
                self.visit(full)


def _imports(body: list[ast.stmt]) -> Iterator[tuple[str, list[str]]]:
    """Yield (module, names) of each import that is executed with its module."""
    for node in body:
        match node:
            case ast.Import():
                yield from ((alias.name, []) for alias in node.names)
            case ast.ImportFrom(module=str(module), level=0) if module != "__future__":
                yield module, [alias.name for alias in node.names]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from _imports(node.orelse)
            case ast.If():
                yield from _imports([*node.body, *node.orelse])
            case ast.Try():  # Without the native part there are no bundles, and no ImportError.
                yield from _imports(node.body)


def make_bundle(package: Path, name: str) -> bytes:
    """Return the contents of a bundle."""
    imports = Imports(package)
    imports.visit(FIRST)
    for bundle in LOADED_BEFORE.get(name, []):
        _visit_roots(imports, bundle)
    first, known = len(imports.modules), len(imports.others)
    _visit_roots(imports, name)
    modules = tuple(_module(imports, module) for module in imports.modules[first:])
    content = (tuple(imports.others[known:]), modules)
    return importlib.util.MAGIC_NUMBER + marshal.dumps(content)


def _visit_roots(imports: Imports, bundle: str) -> None:
    for root in BUNDLES[bundle].split():
        imports.visit(root)


def _module(imports: Imports, name: str) -> tuple[str, str, bool, int, CodeType]:
    path = imports.path(name)
    assert path is not None, name
    source = path.read_bytes()
    file = "/".join(path.parts[len(path.parts) - name.count(".") - (path.stem == "__init__") :])
    code = compile_module(source, file, bare=name.startswith(INTERNAL) and name not in PUBLIC)
    return name, file, path.stem == "__init__", len(source), code


def compile_module(source: bytes, file: str, *, bare: bool = False) -> CodeType:
    """Compile a module without its `from __future__ import annotations`, but with its effect.

    Executed, the statement would import the module `__future__`: 0.2 ms.

    Args:
        source: The source.
        file: The path for tracebacks.
        bare: Whether to leave out docstrings and the annotations of functions, which take a
            twentieth of the time to load and execute the module.
    """
    tree = ast.parse(source)
    if bare:
        _strip(tree)
    rest = [node for node in tree.body if not _is_future(node)]
    flags = __future__.annotations.compiler_flag if len(rest) < len(tree.body) else 0
    tree.body = rest
    code: CodeType = compile(tree, file, "exec", flags, dont_inherit=True, optimize=0)
    return code


def _strip(tree: ast.Module) -> None:
    """Remove docstrings, and the annotations of functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Module(body=body) | ast.ClassDef(body=body) | ast.FunctionDef(body=body):
                if ast.get_docstring(node, clean=False) is not None:
                    body[0] = ast.copy_location(ast.Pass(), body[0])
        match node:
            case ast.FunctionDef():
                node.returns = None
            case ast.arg():
                node.annotation = None


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def main(package: Path, folder: Path) -> None:
    """Write all bundles into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in BUNDLES:
        path = folder / f"{name}.{sys.implementation.cache_tag}.bin"
        path.write_bytes(make_bundle(package, name))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
