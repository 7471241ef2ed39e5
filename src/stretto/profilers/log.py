"""`python.log`: log records from INFO up are instants, with a log message.

The name of the event is the first line of the message. Readers make a table of the log messages,
with priority, file and line; Perfetto's UI shows it as Android logs.

A record is recorded just before its handlers are called. So a record that the program's
configuration rejects isn't recorded. Levels, handlers, filters and output don't change. The event
of a record with an exception (`log.exception`, `exc_info=`) contains the exception's type, message
and frames. The event of a record with `stack_info=` contains the stack.
"""

from __future__ import annotations

import stretto
from stretto.client.track_event import slots
from stretto.profilers.exception_text import event_name, message_of, traceback_of, type_name
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger, LogRecord

category = stretto.Category("python.log", "log records from INFO up", ["slow"])

INFO, WARNING, ERROR, CRITICAL = 20, 30, 40, 50

_keeps_source = True
_own_attributes: frozenset[str] = frozenset()
"""The names of a log record's attributes without `extra`."""


def _message(record: LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  # the program's own formatting; its handlers will say so
        return str(record.msg)


def leave_out_source() -> None:
    """Record the stacks that `logging` has formatted without lines of source text."""
    global _keeps_source
    _keeps_source = False


def _stack(text: str) -> str:
    if _keeps_source:
        return text
    return "\n".join(line for line in text.splitlines() if not _is_source(line))


def _is_source(line: str) -> bool:
    """Whether a line of a traceback is indented deeper than those that begin with `File`."""
    text = line.lstrip(" ")
    if text.startswith("| "):  # An exception group has a bar in front of its lines.
        return text.startswith("|     ")
    return line.startswith("    ") and not text.startswith(("+-", "|"))


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
    return {"traceback": _stack(record.exc_text)} if record.exc_text else {}


def _priority(level: int) -> int:
    """Return the priority of Android's log for a level of `logging`."""
    return 4 + (level >= WARNING) + (level >= ERROR) + (level >= CRITICAL)


def _extra(record: LogRecord) -> dict[str, object]:
    """Return the attributes that `extra=` or a record factory of the program has added."""
    global _own_attributes
    if not _own_attributes:
        import logging  # already imported: a `logging` record exists

        empty = logging.LogRecord("", 0, "", 0, "", (), None)
        _own_attributes = frozenset([*vars(empty), "message", "asctime"])
    extra = {name: value for name, value in vars(record).items() if name not in _own_attributes}
    return {"extra": extra} if extra else {}


def _on_record(_logger: Logger, record: LogRecord) -> None:
    if record.levelno < INFO or not category.enabled:
        return
    message = _message(record)
    args: dict[str, object] = {
        "logger": record.name,
        "level": record.levelname,
        **_exception(record),
        **_extra(record),
    }
    if record.stack_info:
        args["stack"] = _stack(record.stack_info)
    category.log_message(
        event_name(message) or record.levelname,
        message,
        _priority(record.levelno),
        str(record.pathname),
        str(record.funcName or ""),
        record.lineno or 0,
        args=args,
    )


_patch: Patch | None = None


def install() -> None:
    """Record log records while a session records the category."""
    global _patch
    if _patch is None:
        _patch = Patch("logging", "Logger.callHandlers", _on_record)
        slots.observe(category, _patch.switch)
