"""Wraps a function of the program with observers while a session needs the observers."""

from __future__ import annotations

from stretto._pyhooks import Around
from stretto.profilers.on_import import stop_waiting, when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class Patch:
    """Observers around a function in a module that may not be imported yet.

    When the observers are removed, the original function is restored, unless the program has
    wrapped it since. In that case the observers remain, and must check whether their category is
    enabled. If the module lacks the function, as another version may, nothing is observed.

    Args:
        module: name of the module; it is never imported here.
        path: path of the function in the module, such as `Logger.callHandlers`.
        before: called with the function's arguments; its result is the token.
        after: called with the token (unless it is None) and the function's result. If `before` is
            None, `after` is called after each long step of a task, with the time at which the step
            began and the event loop's handle.
    """

    def __init__(
        self,
        module: str,
        path: str,
        before: Callable[..., Any] | None,
        after: Callable[[Any, Any], object] | None = None,
    ) -> None:
        self._module = module
        self._path = path
        self._observers = (before, after)
        self._around: Any = None
        self._inherited = False
        self._wanted = self._awaited = False

    def switch(self, on: bool) -> None:
        """Install or remove the observers."""
        self._wanted = on
        if on and not self._awaited:
            self._awaited = True
            when_imported(self._module, self._on_imported)
        elif not on:
            if self._awaited:
                self._awaited = False
                stop_waiting(self._module, self._on_imported)
            self._remove()

    @property
    def replaced(self) -> bool:
        """Whether the program has replaced the observed function by another one."""
        import sys

        module = sys.modules.get(self._module)
        if self._around is None or module is None:
            return False
        owner, name = self._place(module)
        return vars(owner).get(name) is not self._around

    def _on_imported(self, module: ModuleType) -> None:
        self._awaited = False
        if self._wanted:
            self._apply(module)

    def _place(self, module: ModuleType) -> tuple[Any, str]:
        *owners, name = self._path.split(".")
        owner: Any = module
        for part in owners:
            owner = getattr(owner, part)
        return owner, name

    def wrap(self, function: Any) -> Any:
        """Return what replaces the function; its attribute `__wrapped__` is the function."""
        return Around(function, *self._observers)

    def _apply(self, module: ModuleType) -> None:
        if self._around is not None:
            return
        try:
            owner, name = self._place(module)
            function = getattr(owner, name)
        except AttributeError:
            return
        self._inherited = name not in vars(owner)
        self._around = self.wrap(function)
        setattr(owner, name, self._around)
        _replace_default(owner, name, function, self._around)

    def _remove(self) -> None:
        import sys

        module = sys.modules.get(self._module)
        if self._around is None or module is None:
            return
        owner, name = self._place(module)
        if vars(owner).get(name) is not self._around:
            return
        if self._inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, self._around.__wrapped__)
        _replace_default(owner, name, self._around, self._around.__wrapped__)
        self._around = None


def _replace_default(owner: Any, name: str, old: Any, new: Any) -> None:
    """Replace a default hook: programs test whether `sys.excepthook is sys.__excepthook__`."""
    default = f"__{name}__"
    if vars(owner).get(default) is old:
        setattr(owner, default, new)
