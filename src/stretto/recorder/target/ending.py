"""The end of a recorded process, which copies as few pages as possible in the child of a fork.

Each page that a child writes to is copied, which takes some microseconds. The interpreter's end
writes to each object that it frees, and to the references of these objects. So what the recording
has made is kept: the system frees it with the process.

A Python function that runs for the first time in a process writes to its code. So the functions
for the end of an unconnected child are few, and import nothing.
"""

from __future__ import annotations

import atexit
import sys
from _weakref import ref

from stretto import _native, _pyhooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SUPPORT = frozenset(("_functools", "_socket", "errno", "fcntl", "itertools", "mmap", "select"))
"""Modules of the standard library that a recorded process imports for the recording."""

SUPPORT_CLASSES = ("functools", "itertools", "mmap", "select", "socket")
"""What the classes of these modules have as `__module__`."""

PARENTS = (object, type, Exception, OSError, ValueError)
"""Built-in classes of which such modules and ours define subclasses."""

_kept = False


def install(disconnect: Callable[[], object]) -> None:
    """End the recording at exit, after the exit handlers that the program will register.

    Args:
        disconnect: ends the connection to the recorder. Not called in the child of a fork that has
            made no connection of its own; no later event makes one.
    """

    def end() -> None:
        disconnect()
        _native.hide_modules(SUPPORT)

    atexit.register(_native.end_process, _pyhooks.silence, SUPPORT, end)


def keep_references() -> None:
    """Before the first fork: make immortal what the end of a child would write to.

    These are what `hide_modules` keeps, and what the interpreter would free: the names of modules,
    of files that imports have listed, and the references that built-in classes have to our
    classes. They are on two hundred pages.
    """
    global _kept
    if _kept:
        return
    _kept = True
    for value in (*sys.modules, *sys.path_importer_cache.values()):
        _native.keep(value)
    for name, module in [*sys.modules.items()]:
        if name.startswith("stretto.") or name in SUPPORT:
            _native.keep(module)
    for parent in PARENTS:
        for child in type.__subclasses__(parent):
            if child.__module__.startswith("stretto.") or child.__module__ in SUPPORT_CLASSES:
                _native.keep(ref(child))  # The same object that `__subclasses__` has.
