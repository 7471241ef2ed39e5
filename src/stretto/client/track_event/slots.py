"""Slots: the sessions that record track events now, and the categories they enable.

The native part has eight slots. Each category has a bit for each slot. A category made while
sessions run gets its bits at once. `observe` registers a callback that is called when a category is
enabled or disabled. Such a callback switches function tracing on and off.

Sessions of several services start and stop on different threads. A thread holds `lock` from taking
a slot until the slot is enabled, and while it frees a slot.
"""

from __future__ import annotations

from _thread import RLock

from stretto import _native
from stretto.client import postponed
from stretto.client.track_event.category_config import is_category_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.protos.config import TrackEventConfig

lock = RLock()

_configs: dict[int, TrackEventConfig | None] = {}
before_disable: list[Callable[[], object]] = []
"""Called before the categories of a slot are disabled, while their events are still recorded."""
_observers: dict[_native.Category, list[Callable[[bool], object]]] = {}


def take_slot() -> int | None:
    """Return the first free slot; None if eight sessions record already."""
    free = (slot for slot in range(_native.MAX_INSTANCES) if slot not in _configs)
    return next(free, None)


def count() -> int:
    """Return the number of sessions that record now."""
    return len(_configs)


def enable(slot: int, config: TrackEventConfig | None) -> None:
    """Enable the categories of `config` for the slot."""
    _configs[slot] = config
    for category in _native.categories():
        _set(category, slot, is_category_enabled(config, category.name, category.tags))


def disable(slot: int) -> None:
    """Disable all categories for the slot, and free it."""
    from stretto.client.safe_call import call_safely

    for write in before_disable:
        call_safely(write)
    _configs.pop(slot, None)
    for category in _native.categories():
        _set(category, slot, False)


def forget_sessions() -> None:
    """Drop all sessions in the child of a fork.

    The lock is replaced, because another thread of the parent may have held it at the fork.
    """
    global lock
    lock = RLock()
    _configs.clear()


def disable_all(kept: int | None = None) -> None:
    """Disable all categories in the child of a fork.

    Args:
        kept: A slot whose categories stay enabled. They move to the first slot, which the next
            session takes.
    """
    for category in _native.disable_categories(kept):
        _notify(category)


def release_unused() -> None:
    """Disable the categories that stayed enabled in a child, unless a session uses the slot."""
    with lock:
        if not _configs:
            disable_all()


def observe(category: _native.Category, on_change: Callable[[bool], object]) -> None:
    """Call `on_change(enabled)` at each change of the category, and at once if it is enabled.

    `on_change` runs on the thread that starts or stops the session.
    """
    _observers.setdefault(category, []).append(on_change)
    if category.enabled:
        on_change(True)


def _set(category: _native.Category, slot: int, on: bool) -> None:
    before = category.enabled
    category._set_slot(slot, on)
    if category.enabled != before:
        _notify(category)


def _notify(category: _native.Category) -> None:
    from stretto.client.safe_call import call_safely

    # A copy: an observer that is added meanwhile is called when it is added.
    for on_change in tuple(_observers.get(category, ())):
        call_safely(on_change, category.enabled)


def _on_new_category(category: _native.Category) -> None:
    postponed.run()
    with lock:
        for slot, config in _configs.items():
            _set(category, slot, is_category_enabled(config, category.name, category.tags))


def install(announce_categories: Callable[[], object]) -> None:
    """Enable new categories in the running sessions from now on.

    Args:
        announce_categories: Called after each new category.
    """

    def on_new_category(category: _native.Category) -> None:
        _on_new_category(category)
        announce_categories()

    _native.set_new_category_hook(on_new_category)
