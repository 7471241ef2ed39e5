"""The names of a process's threads in Python, read from `threading._active`.

    sys.modules ──> threading ──> _active: {identity: Thread} ──> _name, _native_id

The process runs meanwhile, so a name may be missing until it is read again. The kernel has these
names only in CPython 3.14 and later, and cuts them to 15 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.profilers.sampling.objects import ObjectReader
    from stretto.profilers.sampling.process import PythonProcess


def read_thread_names(process: PythonProcess, reader: ObjectReader) -> dict[int, str]:
    """Return the names of threads by the kernel's thread ids; those that can be read."""
    names: dict[int, str] = {}
    try:
        for modules in process.modules():
            names.update(_names_in(modules, reader))
    except OSError:
        pass  # The process has ended.
    return names


def _names_in(modules: int, reader: ObjectReader) -> dict[int, str]:
    """Return the names of an interpreter's threads."""
    try:
        threading = reader.module(modules, "threading")
        threads = [value for _, value in reader.items(reader.item(threading, "_active"))]
    except (OSError, ValueError):
        return {}  # It hasn't imported the module.
    return dict(pair for thread in threads for pair in _name(thread, reader))


def _name(thread: int, reader: ObjectReader) -> list[tuple[int, str]]:
    """Return the kernel's id of a thread, and its name; empty if they can't be read."""
    try:
        found = reader.attributes(thread)
        return [(reader.integer(found["_native_id"]), reader.text(found["_name"]))]
    except (OSError, ValueError, KeyError):
        return []
