"""`python.log`: log records from INFO up are instants.

What the program's own configuration lets through is recorded, where its handlers are about to
be called; levels, handlers, filters and what they print stay as they are.
"""

from __future__ import annotations

import stretto
from stretto.client.track_event import slots
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger, LogRecord

category = stretto.Category("python.log", "log records from INFO up", ["slow"])

INFO = 20


def _message(record: LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  # the program's own formatting; its handlers will say so
        return str(record.msg)


def _on_record(_logger: Logger, record: LogRecord) -> None:
    if record.levelno >= INFO and category.enabled:
        category.instant(
            record.levelname,
            args={
                "logger": record.name,
                "message": _message(record),
                "file": record.pathname,
                "line": record.lineno,
            },
        )


_patch: Patch | None = None


def install() -> None:
    """Record log records whenever a session records the category."""
    global _patch
    if _patch is None:
        _patch = Patch("logging", "Logger.callHandlers", _on_record)
        slots.observe(category, _patch.switch)
