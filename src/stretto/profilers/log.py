"""`python.log`: log records from INFO up are instants.

What the program's own configuration lets through is recorded, where its handlers are about to
be called; levels, handlers, filters and what they print stay as they are. A record with an
exception (`log.exception`, `exc_info=`) carries its type, message and frames, one with
`stack_info=` the stack.
"""

from __future__ import annotations

import stretto
from stretto.client.track_event import slots
from stretto.profilers.exception_text import frames_of, message_of, type_name
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


def _exception(record: LogRecord) -> dict[str, object]:
    """Arguments for the record's exception.

    A record that came from another process has its text only.
    """
    given = record.exc_info
    if isinstance(given, tuple) and len(given) == 3:
        _kind, error, trace = given
        if isinstance(error, BaseException):
            return {
                "exception_type": type_name(type(error)),
                "exception_message": message_of(error),
                "traceback": frames_of(trace),
            }
    return {"traceback": record.exc_text} if record.exc_text else {}


def _on_record(_logger: Logger, record: LogRecord) -> None:
    if record.levelno < INFO or not category.enabled:
        return
    args: dict[str, object] = {
        "logger": record.name,
        "message": _message(record),
        "file": record.pathname,
        "line": record.lineno,
        **_exception(record),
    }
    if record.stack_info:
        args["stack"] = record.stack_info
    category.instant(record.levelname, args=args)


_patch: Patch | None = None


def install() -> None:
    """Record log records whenever a session records the category."""
    global _patch
    if _patch is None:
        _patch = Patch("logging", "Logger.callHandlers", _on_record)
        slots.observe(category, _patch.switch)
