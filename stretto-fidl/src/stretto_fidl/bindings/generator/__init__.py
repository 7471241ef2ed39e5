"""Modules with a library's classes, written beforehand: the same as `bindings.load` makes.

    for path, text in generate(ir).items():
        (folder / path).write_text(text)

A library a.b becomes the module `a_b.py` and its stub `a_b.pyi`. With
`trace="strip"` attributes `@trace` leave no mark: the text is that of a
definition without them, byte by byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stretto_fidl.bindings.generator.modules import module_text
from stretto_fidl.bindings.generator.names import Names
from stretto_fidl.bindings.generator.stubs import stub_text
from stretto_fidl.bindings.ir import LibraryReader, reading
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import module_name

if TYPE_CHECKING:
    from stretto_fidl.bindings.ir_checks import IR

KEEP: Final = "keep"
STRIP: Final = "strip"


def generate(ir: IR, *, prefix: str = "", trace: str = KEEP) -> dict[str, str]:
    """Write the modules of a library.

    Args:
        ir: Its JSON IR, parsed.
        prefix: The package that modules of libraries are in; "" for none.
        trace: `keep` or `strip`: what becomes of attributes `@trace`.

    Returns:
        Text by file name: a module and its stub.

    Raises:
        FidlError: the IR has something that isn't known, or is none, or there is no such
            `prefix` or `trace`.
    """
    if trace not in (KEEP, STRIP):
        raise FidlError(f"trace is {KEEP} or {STRIP}, not {trace}")
    with reading():
        reader = LibraryReader(ir)
        names = Names(reader, prefix)
        hidden = frozenset({"trace"} if trace == STRIP else ())
        stem = module_name(ir["name"])
        return {
            f"{stem}.py": module_text(reader, names, hidden),
            f"{stem}.pyi": stub_text(reader, names),
        }


__all__ = ["generate", "KEEP", "STRIP"]
