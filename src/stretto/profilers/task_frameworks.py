"""`python.asyncio` is loaded when the program imports a module that has tasks.

Most processes of a recorded program have no tasks: the modules for them would take a millisecond
of each process's start.
"""

from __future__ import annotations

import stretto
from stretto import _bundle
from stretto._native import call_untraced
from stretto.client.safe_call import call_safely
from stretto.client.track_event import slots
from stretto.profilers.on_import import stop_waiting, when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FRAMEWORKS = ("asyncio", "trio")
"""The modules with tasks. uvloop imports asyncio."""


def _load() -> None:
    _bundle.load("tasks")
    from stretto.profilers import asyncio_tasks

    asyncio_tasks.install()


def _on_import(_: ModuleType) -> None:
    call_untraced(call_safely, _load)


def _switch(on: bool) -> None:
    for name in FRAMEWORKS:
        if on:
            when_imported(name, _on_import)
        else:
            stop_waiting(name, _on_import)


def install() -> None:
    """Record tasks and their steps while a session records the category."""
    slots.observe(stretto.Category("python.asyncio"), _switch)
