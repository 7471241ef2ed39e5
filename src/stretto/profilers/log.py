"""`python.log`: log records from INFO up are instants.

A record is recorded just before its handlers are called, so only if the program's configuration
accepts it. Levels, handlers, filters and output don't change. The event of a record with an
exception (`log.exception`, `exc_info=`) contains the exception's type, message and frames. The
event of a record with `stack_info=` contains the stack.
"""

from __future__ import annotations

import stretto
from stretto.client.track_event import slots
from stretto.profilers.exception_text import message_of, traceback_of, type_name
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
    """Return the event arguments for the record's exception.

    A record of another process contains only the text of the exception.
    """
    given = record.exc_info
    if isinstance(given, tuple) and len(given) == 3:
        _kind, error, trace = given
        if isinstance(error, BaseException):
            return {
                "exception_type": type_name(type(error)),
                "exception_message": message_of(error),
                "traceback": traceback_of(error, trace),
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
    """Record log records while a session records the category."""
    global _patch
    if _patch is None:
        _patch = Patch("logging", "Logger.callHandlers", _on_record)
        slots.observe(category, _patch.switch)
