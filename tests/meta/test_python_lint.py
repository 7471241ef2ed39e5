"""Rules of the Python sources that ruff and mypy don't check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.sources import (
    PACKAGE,
    ROOT,
    imports,
    is_generated,
    module_name,
    package_of,
    python_sources,
    report,
    where,
)

pytestmark = pytest.mark.once

MAX_LINES = 600
HEAVY = {
    "argparse",
    "asyncio",
    "concurrent",
    "dataclasses",
    "duckdb",
    "enum",
    "google",
    "inspect",
    "logging",
    "perfetto",
    "sqlite3",
    "threading",
    "typing_extensions",
}
"""Modules that `import stretto` may not load: each costs milliseconds or is a dependency."""
LIGHT = {"base", "client", "backends", "protozero", "recorder", "__init__"}
NOT_LIGHT = ("stretto.recorder.host.",)
"""Modules of a light package that run in a separate process."""
ON_THREADS = (
    "stretto.client.", "stretto.backends.", "stretto.flows.", "stretto.profilers.",
    "stretto.recorder.target.",
)  # fmt: skip
"""Packages whose modules a thread of Stretto may load while the program runs."""
NOT_ON_THREADS = (
    "stretto.flows.asyncio_streams",  # loads asyncio, which the program has loaded
    "stretto.flows.grpcio",  # loads grpc, which the program has loaded
    "stretto.profilers.heap.heap_file",
    "stretto.profilers.heap.native_stacks",
    "stretto.profilers.sampling.",  # but what `stretto.profilers.heap.dumps` loads of it
    "stretto.recorder.target.sitecustomize",  # runs where it is loaded
)
"""Modules of these packages that run in a separate process, or with the program's own imports."""


def top_level_package(path: Path) -> str:
    package = package_of(path)
    assert package is not None, path
    return path.relative_to(package).parts[0].removesuffix(".py").removesuffix(".pyi")


def _lines(path: Path) -> list[str]:
    """Return an empty text and the lines of a file, so that line 1 has index 1."""
    return ["", *path.read_text().splitlines()]


def test_tests_sleep_only_where_a_comment_says_why() -> None:
    """Calls of `sleep` in strings need a comment, too; `asyncio.sleep(0)` needs none."""
    sleeping = re.compile(r"\bsleep\((?!0\)|\))")
    report(
        [
            where(path, number, "poll with tests.support.polling, or say why: `# sleep: ...`")
            for folder in ("tests", "stretto-fidl/tests")
            for path in sorted((ROOT / folder).rglob("*.py"))
            for number, (above, line) in enumerate(
                pairwise(["", *path.read_text().splitlines()]), start=1
            )
            if sleeping.search(line) and path != Path(__file__) and "# sleep: " not in above + line
        ]
    )


def test_only_the_command_line_prints() -> None:
    report(
        [
            where(path, node.lineno, "only cli prints: return it, count it or raise it")
            for path in python_sources(".py")
            if top_level_package(path) != "cli"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ]
    )


def test_python_files_above_600_lines_state_a_reason() -> None:
    too_long = []
    for path in python_sources(".py"):
        lines = path.read_text().splitlines()
        reasoned = any("lines" in line for line in lines[:10])
        if len(lines) > MAX_LINES and not is_generated(path) and not reasoned:
            too_long.append(where(path, 1, f"{len(lines)} lines, and no reason at its head"))
    report(too_long)


def test_packages_loaded_into_programs_import_no_heavy_modules() -> None:
    """The rule excludes code generators, because traced programs don't load them."""
    report(
        [
            where(path, imported.line, f"{imported.module} is too heavy for a traced program")
            for path in python_sources(".py", packages=(PACKAGE,))
            if top_level_package(path) in LIGHT and ".generat" not in module_name(path)
            if not module_name(path).startswith(NOT_LIGHT)
            for imported in imports(path)
            if imported.at_top and imported.module.split(".")[0] in HEAVY
        ]
    )


def test_importing_stretto_loads_no_heavy_modules() -> None:
    """Compare `sys.modules` before and after the import in a new interpreter."""
    code = (
        "import sys; before = set(sys.modules); import stretto; print(*set(sys.modules) - before)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "stretto" in loaded
    heavy = HEAVY | {"typing"}  # importing typing takes 5 to 14 ms
    assert not heavy.intersection(name.split(".")[0] for name in loaded)


def test_modules_that_threads_of_a_traced_program_load_do_not_load_typing() -> None:
    """`dataclasses` takes `typing` from `sys.modules`, where it is while another thread loads it.

    So a dataclass of the program fails (`typing` has no `ClassVar`) if a thread of ours has
    begun to load `typing` at that moment. The modules are those that start data sources and flows.
    """
    modules = [
        module_name(path)
        for path in python_sources(".py", packages=(PACKAGE,))
        if module_name(path).startswith(ON_THREADS)
        if not module_name(path).startswith(NOT_ON_THREADS)
    ]
    code = (
        "import sys; from importlib import import_module\n"
        "for name in sys.argv[1:]: import_module(name); assert 'typing' not in sys.modules, name"
    )
    assert "stretto.profilers.heap.dumps" in modules
    subprocess.run([sys.executable, "-c", code, *modules], check=True)
