"""The FIDL compiler: `.fidl` files to the JSON IR of the real compiler, `fidlc`.

    ir = compile_files(["greeter.fidl"])
    ir["protocol_declarations"][0]["methods"][0]["ordinal"]

Each step has a module:

    lexer               text to tokens
    parser              tokens to a syntax tree, in today's syntax or the one before RFC-0050
    consume             syntax tree to declarations
    scope               names to declarations
    requirements        compiles a declaration at its first use
    type_resolver       written types to types
    constants           constants to values
    layouts, protocols, resourceness    check the rules
    shapes              computes sizes
    dependencies        orders the declarations
    ir_writer           writes the IR

`workspace` assigns files to libraries. A `build` compiles one version of the libraries; `timeline`
checks the other versions, and `replacements` compares each version with the next.

A mistake raises `stretto_fidl.errors.CompileError`, with file, line and column.
Untrusted text is safe: nesting, sizes and chains are bounded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stretto_fidl.compiler.source import SourceFile
from stretto_fidl.compiler.workspace import Workspace
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["compile_files", "compile_sources"]


def compile_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    dependencies: Iterable[str | os.PathLike[str]] = (),
    versions: Mapping[str, str] | None = None,
    experiments: Sequence[str] = (),
) -> dict[str, Any]:
    """Compile the files of one library.

    Args:
        paths: All files of the library.
        dependencies: The files of the libraries that it uses, directly or not.
        versions: The version of each platform to compile; see `compile_sources`.
        experiments: Names of experiments, which are copied into the IR and have no other effect.

    Returns:
        The JSON IR, as `json.load` would give it.

    Raises:
        CompileError: A definition is wrong, or a file can't be read.
    """
    return compile_sources(
        {str(path): _read(path) for path in paths},
        dependencies={str(path): _read(path) for path in dependencies},
        versions=versions,
        experiments=experiments,
    )


def compile_sources(
    sources: Mapping[str, str],
    *,
    dependencies: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
    experiments: Sequence[str] = (),
) -> dict[str, Any]:
    """Compile texts, without files.

    Args:
        sources: The texts of one library by file name.
        dependencies: The texts of other libraries by file name.
        versions: The version to compile for each platform: a number, `NEXT` or `HEAD`. A platform
            that isn't listed has `HEAD`. Elements that `@available` excludes from the version are
            left out.
        experiments: Names of experiments, which are copied into the IR.

    Returns:
        The JSON IR.

    Raises:
        CompileError: A definition is wrong.
    """
    workspace = Workspace(versions or {})
    names = workspace.add(SourceFile(name, text) for name, text in sources.items())
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise CompileError(f"the files must be of one library, but there are: {found}")
    others = workspace.add(SourceFile(name, text) for name, text in (dependencies or {}).items())
    if names[0] in others:
        raise CompileError(f"files of library {names[0]!r} are among the dependencies, too")
    try:
        return workspace.ir(workspace.compile(names[0]), experiments)
    except RecursionError:
        raise CompileError("the definitions are nested too deeply: simplify them") from None


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CompileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CompileError(f"{str(path)!r} is no UTF-8 text") from None
