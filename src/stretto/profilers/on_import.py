"""Calls functions after a module has been imported, without importing it.

While a callback is registered for any module, a finder of `on_import` is the first in
`sys.meta_path`. It delegates the search to the other finders, and wraps the loader that they find.
The wrapper calls the callbacks. The attributes of the imported module refer to the original loader.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Callback = Callable[[ModuleType], object]


class _Loader:
    """Wraps a loader until the module is executed."""

    def __init__(self, loader: Any, callback: Callback) -> None:
        self._loader = loader
        self._callback = callback

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._callback(module)


class _Finder:
    """Finds the modules for which callbacks are registered."""

    def __init__(self) -> None:
        self._awaited: dict[str, list[Callback]] = {}

    def wait_for(self, name: str, callback: Callback) -> None:
        self._awaited.setdefault(name, []).append(callback)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def forget(self, name: str, callback: Callback) -> None:
        callbacks = self._awaited.get(name, [])
        if callback in callbacks:
            callbacks.remove(callback)
        if not callbacks:
            self._awaited.pop(name, None)
        if not self._awaited and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._awaited:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    loader: Any = _Loader(spec.loader, self._arrived)
                    spec.loader = loader
                return spec
        return None

    def _arrived(self, module: ModuleType) -> None:
        callbacks = self._awaited.pop(module.__name__, [])
        if not self._awaited and self in sys.meta_path:
            sys.meta_path.remove(self)
        for callback in callbacks:
            callback(module)


_finder = _Finder()


def _is_imported(module: ModuleType | None) -> bool:
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def when_imported(name: str, callback: Callback) -> None:
    """Call `callback(module)` now if the module is imported, else after its import."""
    module = sys.modules.get(name)
    if module is not None and _is_imported(module):
        callback(module)
    else:
        _finder.wait_for(name, callback)


def stop_waiting(name: str, callback: Callback) -> None:
    """Undo `when_imported` if the module hasn't been imported since."""
    _finder.forget(name, callback)
