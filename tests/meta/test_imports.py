"""Imports follow the layers of ARCHITECTURE.md: a module imports only lower layers.

The rule also holds for imports inside of functions and for imports for the type checker.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sources import (
    FIDL_PACKAGE,
    PACKAGE,
    ROOT,
    Import,
    imports,
    module_name,
    python_sources,
    report,
    where,
)

pytestmark = pytest.mark.once

FACADE = "the façade"
"""The layer of `stretto/__init__.py`, whose names users import."""

# Packages from the lowest rank to the highest; those of equal rank don't import each other.
RANKS = (
    ("_bundle",),
    ("base",),
    ("protozero",),
    ("protos",),
    ("ipc",),
    ("ports",),
    ("analysis", "client", "service", "recorder"),
    ("backends",),
    (FACADE,),
    ("flows", "probes", "profilers", "testing", "viewer"),
    ("recorder.target",),
    ("recorder.host",),
    ("cli",),
)
RANK = {package: rank for rank, packages in enumerate(RANKS) for package in packages}

EXTENSIONS = {
    "_native": RANK["protozero"],
    "_importer": RANK["analysis"],
    "_pyhooks": RANK["client"],
}
"""The lowest rank that may use an extension."""

CLIENT_ONLY = {"flows", "probes", "profilers"}
"""Packages that use only the public client API: neither service nor transport."""
HIDDEN = {"backends", "ipc", "ports", "service"}


FIDL_RANKS = (
    ("errors", "ordinals", "python_names"),
    ("codec", "compiler"),
    ("bindings",),
    ("transport",),
    ("cli",),
)
"""The layers of `stretto_fidl`, from the bottom."""
FIDL_RANK = {part: rank for rank, parts in enumerate(FIDL_RANKS) for part in parts}

FIDL_INTERFACE = (
    "stretto.base.errors",
    "stretto.base.excerpts",
    "stretto.base.rpc_hooks",
)
"""Modules of `stretto` that `stretto_fidl` may import."""
VERB_INTERFACE = (
    *FIDL_INTERFACE,
    "stretto.analysis.open_packets",
    "stretto.cli.output_file",
    "stretto.cli.verb_parser",
    "stretto.protozero",
)
"""Modules of `stretto` that the verb of `stretto_fidl` may import, like other verbs."""


def layer(module: str) -> str:
    """Return the layer of a module, such as `base` for the module `stretto.base.clock`.

    A folder with a rank of its own is a layer: `recorder.host` is above `recorder`.
    """
    parts = module.split(".")
    if parts[1:] == ["__main__"]:
        return "cli"
    if ".".join(parts[1:3]) in RANK:
        return ".".join(parts[1:3])
    known = len(parts) > 1 and (parts[1] in RANK or parts[1] in EXTENSIONS)
    return parts[1] if known else FACADE


def violation(importer: str, imported: Import) -> str | None:
    """Return why a module may not import another one, or None."""
    if importer.split(".")[0] == "stretto_fidl":
        return fidl_violation(importer, imported.module)
    if imported.module.split(".")[0] == "stretto_fidl":
        return f"stretto may not import stretto_fidl ({imported.module})"
    if imported.module.split(".")[0] != "stretto":
        return None
    mine, other = layer(importer), layer(imported.module)
    if mine == other or mine in EXTENSIONS:
        return None
    if other in EXTENSIONS:
        allowed = RANK[mine] >= EXTENSIONS[other] or imported.typing_only
    else:
        allowed = RANK[other] < RANK[mine] and not (mine in CLIENT_ONLY and other in HIDDEN)
    return None if allowed else f"{mine} may not import {other} ({imported.module})"


def fidl_violation(importer: str, imported: str) -> str | None:
    """Return why a module of `stretto_fidl` may not import another one, or None."""
    _, mine, *_ = [*importer.split("."), ""]
    package, other, *_ = [*imported.split("."), ""]
    if package == "stretto":
        interface = VERB_INTERFACE if mine == "cli" else FIDL_INTERFACE
        allowed = any(f"{imported}.".startswith(f"{module}.") for module in interface)
        return None if allowed else f"{imported} is no part of the interface for stretto_fidl"
    if package != "stretto_fidl" or mine == other or FIDL_RANK[other] < FIDL_RANK[mine]:
        return None
    return f"{mine} may not import {other} ({imported})"


def test_every_package_has_its_rank() -> None:
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(RANK), f"packages without a rank: {packages - set(RANK)}"
    parts = {path.stem for path in FIDL_PACKAGE.iterdir() if path.stem[0] not in "._"}
    assert parts - {"py"} == set(FIDL_RANK)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in python_sources(".py")}
    report([where(f, 1, "no __init__.py") for f in folders if not (f / "__init__.py").exists()])


def test_modules_import_only_lower_layers() -> None:
    report(
        [
            where(path, imported.line, complaint)
            for path in python_sources()
            for imported in imports(path)
            if (complaint := violation(module_name(path), imported))
        ]
    )


@pytest.mark.parametrize(
    ("importer", "module", "allowed"),
    [
        ("stretto.client.session", "stretto.base.errors", True),
        ("stretto.client.session", "stretto.service.tracing_service", False),
        ("stretto.client.session", "stretto.Category", False),
        ("stretto.client.session", "selectors", True),
        ("stretto.service.session.flush", "stretto.client.session", False),
        ("stretto.service.session.flush", "stretto._native.Readback", True),
        ("stretto.ipc.frames", "stretto.ports.peer", False),
        ("stretto.base.clock", "stretto._native", False),
        ("stretto.base.clock", "stretto.protozero.writer", False),
        ("stretto.backends.in_process", "stretto.service.tracing_service", True),
        ("stretto", "stretto.backends.in_process", True),
        ("stretto.probes.procfs", "stretto.DataSource", True),
        ("stretto.probes.procfs", "stretto.service.session.flush", False),
        ("stretto.recorder.target.bootstrap", "stretto.recorder.host.program", False),
        ("stretto.recorder.target.bootstrap", "stretto.recorder.workspace", True),
        ("stretto.recorder.workspace", "stretto.client.session", False),
        ("stretto.recorder.host.program", "stretto.cli.output_file", False),
        ("stretto.ipc.frames", "stretto_fidl.codec", False),
        ("stretto.cli.main", "stretto_fidl.cli", False),
        ("stretto_fidl.codec.types", "stretto.base.errors.StrettoError", True),
        ("stretto_fidl.codec.types", "stretto.base.errors_of_mine", False),
        ("stretto_fidl.codec.types", "stretto.base.ids", False),
        ("stretto_fidl.codec.types", "stretto.cli.verb_parser.VerbParser", False),
        ("stretto_fidl.codec.types", "stretto.Category", False),
        ("stretto_fidl.codec.types", "stretto_fidl.bindings.ir", False),
        ("stretto_fidl.bindings.ir", "stretto_fidl.codec.types", True),
        ("stretto_fidl.cli.compile", "stretto.cli.verb_parser.VerbParser", True),
        ("stretto_fidl.cli.compile", "stretto.cli.main", False),
    ],
)
def test_import_of_a_higher_layer_is_a_violation(
    importer: str, module: str, *, allowed: bool
) -> None:
    imported = Import(module, 1, at_top=True, typing_only=False)
    assert (violation(importer, imported) is None) is allowed


def test_imports_in_functions_and_for_type_checkers_are_found(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text(
        "import os\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import ast\nelse:\n    import re\n"
        "def f():\n    from json import loads\n"
    )
    found = {imported.module: imported for imported in imports(source)}
    assert list(found) == ["os", "typing.TYPE_CHECKING", "ast", "re", "json.loads"]
    assert [i.at_top for i in found.values()] == [True, True, False, True, False]
    assert [i.typing_only for i in found.values()] == [False, False, True, False, False]


def test_paths_are_converted_to_module_names() -> None:
    path = PACKAGE / "__init__.py"
    assert module_name(path) == "stretto"
    assert module_name(PACKAGE / "base" / "clock.py") == "stretto.base.clock"
    assert module_name(FIDL_PACKAGE / "codec" / "types.py") == "stretto_fidl.codec.types"


def test_rpc_packages_do_not_import_the_tracer_indirectly() -> None:
    """RPC packages call the tracer only through the hooks in `stretto.base`."""
    files = {module_name(path): path for path in python_sources(".py")}
    reached = {name for name in files if layer(name) == "ipc"}
    reached |= {name for name in files if name.startswith("stretto_fidl.transport")}
    assert {"stretto.ipc.client", "stretto_fidl.transport.client"} <= reached
    waiting = list(reached)
    while waiting:
        for imported in imports(files[waiting.pop()]):
            # `import a.b` names a module; `from a import b` may name an object in module `a`.
            for name in (imported.module, imported.module.rpartition(".")[0]):
                outermost = name in ("stretto", "stretto_fidl")
                if name in files and not outermost and name not in reached:
                    reached.add(name)
                    waiting.append(name)
    tracers = {"flows", "client", "backends", "service", "ports", "profilers"}
    assert "stretto.base.rpc_hooks" in reached
    assert not {name for name in reached if layer(name) in tracers}


def test_tests_and_examples_of_stretto_need_no_stretto_fidl() -> None:
    """Of this distribution's folders, only bench/ may import stretto-fidl."""
    files = [
        path for folder in ("tests", "examples", "tools") for path in (ROOT / folder).rglob("*.py")
    ]
    foreign = ("stretto_fidl", "fidl_support")
    report(
        [
            where(path, imported.line, f"{imported.module} is stretto-fidl's: move this there")
            for path in files
            for imported in imports(path)
            if imported.module.split(".")[0] in foreign
            or imported.module.startswith("stretto.fidl")
        ]
    )
