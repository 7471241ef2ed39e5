"""Module names of sampled code, by its file: a sample has no module.

/usr/lib/python3.12/asyncio/runners.py     asyncio.runners
<frozen importlib._bootstrap>              importlib._bootstrap
/home/me/shop/views.py                     shop.views, if shop/__init__.py exists; else views
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from stretto.profilers.folded_code import SPAWNERS, is_machinery

_FROZEN = "<frozen "
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(.*)")
"""The path of an installed file; the group is its place in its packages."""
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
"""Stretto's folder: function slices never show its code."""
UNKNOWN = "?"
"""The file of code whose memory can't be read."""
_WORKSPACE = "/stretto-record-"
"""A part of the path of the recorder's own `sitecustomize.py`."""


@lru_cache(maxsize=4096)
def module_of(filename: str) -> str:
    """Return the name of the module in a file, or "" if the code has no file."""
    if filename.startswith(_FROZEN):
        return filename[len(_FROZEN) :].rstrip(">")
    if not filename or filename.startswith("<") or filename == UNKNOWN:
        return ""
    installed = _INSTALLED.match(filename)
    path = installed[1] if installed else os.path.relpath(filename, _outside(filename))
    return os.path.splitext(path)[0].replace(os.sep, ".").removesuffix(".__init__")


def _outside(filename: str) -> str:
    """Return the folder of the outermost package that has the file."""
    folder = os.path.dirname(filename)
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder or os.curdir


def is_body(function: str, filename: str) -> bool:
    """Whether code is the body of a module from a file."""
    return function == "<module>" and filename != "<string>"


def is_spawner(filename: str) -> bool:
    """Whether a file has the code that the command of a child of `multiprocessing` calls."""
    return module_of(filename) in SPAWNERS


def runs_scripts(filename: str) -> bool:
    """Whether module bodies that code of this file calls are scripts, not imported modules."""
    return module_of(filename) == "runpy"


def body_name(filename: str, *, is_main: bool) -> str:
    """Return the name that the slices of a module's body have."""
    module = module_of(filename)
    is_script = is_main and not filename.startswith("<")
    if module and not is_script:
        return f"import {module}"
    return os.path.basename(filename) or UNKNOWN


def function_name(qualified_name: str, filename: str, *, is_main: bool) -> str:
    """Return the name of a function, with its module unless that is the script."""
    module = "" if is_main else module_of(filename)
    return f"{module}.{qualified_name}" if module else qualified_name


def is_folded(function: str, filename: str) -> bool:
    """Whether code is machinery of the interpreter, which function slices leave out, too."""
    own = filename.startswith(_OWN) or _WORKSPACE in filename
    return own or is_machinery(function, module_of(filename))
