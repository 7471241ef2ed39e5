"""Imports modules of this package that are needed together from one file: a bundle.

The import system takes about 50 us for each module, also for an empty one. A program that records
itself needs 90 modules, each recorded process 80, and a recorder 130. A bundle holds the compiled
code of such modules, in an order in which each comes after those that it imports.
`tools/bundles.py` writes the bundles when the package is built:

    bundles/NAME.cpython-312.bin    the interpreter's magic number, then a tuple by `marshal`:
        names of all other modules that these modules import
        a tuple for each module:
            name, file (relative to the package), whether it is a package, size of the source, code

A bundle only saves time. If it is missing or doesn't fit, the modules are imported in the usual
way when they are needed: without the native part, from a source folder, with the option `-O`, or
after a source has been edited. A source counts as edited if its size is another one, or if it was
written later than the bundle by more than `INSTALL_S`.
"""

import gc
import marshal
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib import _module_locks as busy  # type: ignore[attr-defined]
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader
from _imp import _fix_co_filename, acquire_lock, release_lock  # type: ignore[attr-defined]
from _thread import _count as count_threads
from posix import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    Stats = list[dict[str, int]]
    Exempt = Callable[[list[tuple[Stats, Stats]]], object]

INSTALL_S = 60
"""An installer writes all files within this time, in any order."""
OWN_FROZEN = 1000
"""More objects than the interpreter itself freezes: CPython 3.12 375, other versions none."""

ModuleType = type(sys)
Module = tuple[str, str, bool, int, "CodeType"]

_package = __file__.rpartition("/")[0]
_loaded: set[str] = set()
_made: "list[tuple[Stats, Stats]]" = []
"""Results of `gc.get_stats`: the objects of a bundle were created between the two of a pair."""


def _unmarshal(fd: int, _start: int) -> "Any":
    return marshal.loads(posix.read(fd, posix.fstat(fd).st_size))


def _are_current(folder: str, modules: "tuple[Module, ...]", latest: float) -> bool:
    for _, file, _, size, _ in modules:
        status = stat(f"{folder}/{file}")
        if status.st_size != size or status.st_mtime > latest:
            return False
    return True


# Those of `_native`, which are faster, take their place when the native part is loaded.
unmarshal: "Callable[[int, int], Any]" = _unmarshal
"""Returns the object in a file from an offset on, which is the file's position."""
are_current: "Callable[[str, tuple[Module, ...], float], bool]" = _are_current
"""Whether the sources in a folder are those of which a bundle was made.

They have the same sizes, and none was written later than a time in seconds since 1970."""


def load(name: str, *, freeze: bool = False, exempt: "Exempt | None" = None) -> None:
    """Import the modules of a bundle, except those that are imported already.

    Other threads that import a module of the bundle wait until all of them are complete.

    Args:
        name: The name of the bundle.
        freeze: Exclude all objects of the process from collections: not for programs of others.
        exempt: Called with pairs of results of `gc.get_stats`: the objects of this bundle, and of
            those that were loaded before, were created between the two of a pair. It may exclude
            them from collections and keep them until the process ends, whose last collections take
            most time. There is no pair for a bundle that was loaded while the process had several
            threads: their objects must not be excluded.

    Raises:
        ImportError: A module that the bundle needs can't be imported.
    """
    if name in _loaded or sys.flags.optimize:
        return
    _loaded.add(name)
    was_enabled = gc.isenabled()
    gc.disable()  # Collections would take a tenth of the time, and find nothing.
    first = gc.get_stats()
    try:
        others, modules = _read(f"{_package}/bundles/{name}.{sys.implementation.cache_tag}.bin")
        _import(others, modules)
    finally:
        if was_enabled:
            if not count_threads():
                _made.append((first, gc.get_stats()))
            if exempt:
                exempt(_made)
                _made.clear()
            _make_old(freeze)
            gc.enable()


def has_frozen() -> bool:
    """Whether the process has called `gc.freeze`."""
    return gc.get_freeze_count() > OWN_FROZEN


def _make_old(freeze: bool) -> None:
    """Make all objects old for the collector: collections of young ones don't visit the modules."""
    if freeze:
        gc.freeze()
    elif not has_frozen():
        gc.freeze()
        gc.unfreeze()


def _read(path: str) -> tuple[tuple[str, ...], tuple[Module, ...]]:
    """Return what a bundle contains: nothing if it is missing or doesn't fit."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            if posix.read(fd, len(MAGIC_NUMBER)) == MAGIC_NUMBER:
                others, modules = unmarshal(fd, len(MAGIC_NUMBER))
                if are_current(_package, modules, posix.fstat(fd).st_mtime + INSTALL_S):
                    return others, modules
        finally:
            posix.close(fd)
    except OSError:  # The bundle or a source is missing.
        pass
    return (), ()


def _import(others: tuple[str, ...], modules: tuple[Module, ...]) -> None:
    for other in others:  # Not with the lock: another thread may be importing one of them.
        __import__(other)
    acquire_lock()
    try:
        if any(module[0] in busy for module in modules):
            return  # Another thread is importing a part of them.
        for module in modules:
            if module[0] not in sys.modules:
                _execute(module)
        for module in modules:  # Now the packages are complete, too.
            _name_in_package(module[0])
    finally:
        release_lock()


def _execute(module: Module) -> None:
    """Execute a module, then publish it: other threads never see it incomplete."""
    name, file, is_package, _, code = module
    path = f"{_package}/{file}"
    _fix_co_filename(code, path)
    loader = SourceFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path, is_package=is_package)
    spec.has_location = True
    made = ModuleType(name)
    names = vars(made)
    names.update(__file__=path, __loader__=loader, __spec__=spec, __package__=spec.parent)
    if is_package:
        spec.submodule_search_locations = [path.rpartition("/")[0]]
        names.update(__path__=spec.submodule_search_locations)
    exec(code, names)
    sys.modules[name] = made
    _name_in_package(name)


def _name_in_package(name: str) -> None:
    """Make a module an attribute of its package, if the package is complete."""
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, sys.modules[name])
