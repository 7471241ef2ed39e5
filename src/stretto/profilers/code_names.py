"""Names the slices of functions as a reader of the program knows them.

asyncio.run                 a function of asyncio.runners that the package asyncio exports
shop.views.Cart.total       a method
import pandas.core.frame    the body of a module
checkout                    a function of the script itself
shop.py                     the body of the script
"""

from __future__ import annotations

import os
import sys

from stretto.profilers.folded_code import MAIN_MODULES, is_body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any


def code_name(code: CodeType, module: str | None) -> str:
    """Return the name of a code object's slices.

    Args:
        code: the code of a function, of a class or of a module.
        module: the name of the module that the code runs in; None if it has no name.
    """
    is_main = module is None or module in MAIN_MODULES
    if is_body(code):
        return os.path.basename(code.co_filename) if is_main else f"import {module}"
    name = code.co_qualname
    if module is None or is_main:
        return name
    return f"{_exporter(module, name.partition('.')[0])}.{name}"


def _exporter(module: str, name: str) -> str:
    """Return the outermost package that exports an object of `module`; `module` if none does."""
    parts = module.split(".")
    found = _namespace(module).get(name) if len(parts) > 1 else None
    if found is None:
        return module
    packages = (".".join(parts[:count]) for count in range(1, len(parts)))
    return next((p for p in packages if _namespace(p).get(name) is found), module)


def _namespace(module: str) -> dict[str, Any]:
    """Return a module's attributes, without loading a module that loads itself on first use."""
    found = sys.modules.get(module)
    if not isinstance(found, type(sys)):
        return {}
    attributes: dict[str, Any] = object.__getattribute__(found, "__dict__")
    return attributes
