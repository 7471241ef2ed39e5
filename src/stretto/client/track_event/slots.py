"""Slots: which sessions record track events now, and which categories they want.

The native side keeps up to eight, one bit of every category each. A category made while
sessions run gets its bits at once. Who needs to know when a category goes on or off
(function tracing is switched by its category) says so with `observe`.

Sessions of several services come and go on threads of their own: each holds `lock` from taking
a slot until it is enabled, and while it frees it.
"""

from __future__ import annotations

from _thread import RLock

from stretto import _native
from stretto.client.track_event.category_config import is_category_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.protos.config import TrackEventConfig

lock = RLock()

_configs: dict[int, TrackEventConfig | None] = {}
_observers: dict[_native.Category, list[Callable[[bool], object]]] = {}


def take_slot() -> int | None:
    """A free slot; None if eight sessions record already."""
    free = (slot for slot in range(_native.MAX_INSTANCES) if slot not in _configs)
    return next(free, None)


def enable(slot: int, config: TrackEventConfig | None) -> None:
    """Switch on, for the slot, what `config` wants."""
    _configs[slot] = config
    for category in _native.categories():
        _set(category, slot, is_category_enabled(config, category.name, category.tags))


def disable(slot: int) -> None:
    """Switch everything off for the slot, and free it."""
    _configs.pop(slot, None)
    for category in _native.categories():
        _set(category, slot, False)


def disable_all() -> None:
    """Forget all sessions (after a fork: nobody else is there who could hold the lock)."""
    global lock
    lock = RLock()
    enabled = [category for category in _observers if category.enabled]
    _configs.clear()
    _native.disable_all_categories()
    for category in enabled:
        _notify(category)


def observe(category: _native.Category, on_change: Callable[[bool], object]) -> None:
    """Call `on_change(enabled)` now if it is on, and whenever the category goes on or off.

    Calls come from whichever thread starts or stops a session.
    """
    _observers.setdefault(category, []).append(on_change)
    if category.enabled:
        on_change(True)


def _set(category: _native.Category, slot: int, on: bool) -> None:
    before = category.enabled
    category.set_slot(slot, on)
    if category.enabled != before:
        _notify(category)


def _notify(category: _native.Category) -> None:
    from stretto.client.safe_call import call_safely

    for on_change in _observers.get(category, ()):
        call_safely(on_change, category.enabled)


def _on_new_category(category: _native.Category) -> None:
    with lock:
        for slot, config in _configs.items():
            _set(category, slot, is_category_enabled(config, category.name, category.tags))


def install(announce_categories: Callable[[], object]) -> None:
    """Enable categories that are made from now on in the running sessions.

    Args:
        announce_categories: Called after each new category.
    """

    def on_new_category(category: _native.Category) -> None:
        _on_new_category(category)
        announce_categories()

    _native.set_new_category_hook(on_new_category)
