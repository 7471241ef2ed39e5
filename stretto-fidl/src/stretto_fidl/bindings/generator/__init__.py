"""Generates Python modules with the classes that `bindings.load` makes at run time.

    for path, text in generate(ir).items():
        (folder / path).write_text(text)

A library a.b becomes the module `a_b.py` and its stub `a_b.pyi`. With
`trace="strip"` the text is the same, byte for byte, as without `@trace` in the definition.
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
        ir: The parsed JSON IR.
        prefix: The package of the modules; "" for none.
        trace: Whether to `keep` or to `strip` the attributes `@trace`.

    Returns:
        The texts of a module and its stub, by file name.

    Raises:
        FidlError: The IR is malformed or contains something unknown, or `prefix` or `trace` is
            invalid.
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
