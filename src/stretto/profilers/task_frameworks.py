"""`python.asyncio` is loaded when the program imports a module that has tasks.

Most processes of a recorded program have no tasks: the modules for them would take a millisecond
of each process's start.
"""

from __future__ import annotations

from stretto._native import call_untraced
from stretto.base import bundle
from stretto.client.safe_call import call_safely
from stretto.profilers.on_import import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FRAMEWORKS = ("asyncio", "trio")
"""The modules with tasks. uvloop imports asyncio."""


def _load() -> None:
    bundle.load("tasks")
    from stretto.profilers import asyncio_tasks

    asyncio_tasks.install()


def _on_import(_: ModuleType) -> None:
    call_untraced(call_safely, _load)


def install() -> None:
    """Record tasks and their steps while a session records the category."""
    for name in FRAMEWORKS:
        when_imported(name, _on_import)
