"""Names the slices of functions as a reader of the program knows them.

asyncio.run                 a function of asyncio.runners that the package asyncio exports
shop.views.Cart.total       a method
import pandas.core.frame    the body of a module
checkout                    a function of the script itself
shop.py                     the body of the script
remote.py                   other code without a function, which `exec` runs from this file
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
    if is_body(code):
        file = code.co_filename
        return f"import {module}" if _is_file_of(module, file) else os.path.basename(file)
    name = code.co_qualname
    if module is None or module in MAIN_MODULES:
        return name
    return f"{_exporter(module, name.partition('.')[0])}.{name}"


def _is_file_of(module: str | None, file: str) -> bool:
    """Whether code from this file is the body of an imported module.

    Code that the program runs by `exec` may have any name in its `__name__`. A module without a
    source file (`shop.pyc`) has code with the name of the source file.
    """
    if module is None or module in MAIN_MODULES:
        return False
    if file.startswith("<frozen "):
        return True
    own = _namespace(module).get("__file__")
    return isinstance(own, str) and _stem(own) == _stem(file)


def _stem(file: str) -> str:
    return os.path.splitext(os.path.basename(file))[0]


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
