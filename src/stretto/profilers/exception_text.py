"""Describes an exception as text of limited size: its type, its message and its frames.

The module `traceback` isn't used: its import would change the program's exit status on Ctrl-C. The
import executes code in strings; after that the interpreter doesn't end itself by SIGINT.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

OUTER_FRAMES, INNER_FRAMES = 4, 12
MAX_MEMBERS = 8
"""The largest number of exceptions of a group that are shown."""
MAX_CHAIN = 3
"""Maximum number of exceptions of a chain whose frames are shown: the last ones."""
LONGEST_PATH, LONGEST_NAME = 120, 90
LONGEST_EVENT_NAME = 120


def type_name(kind: type) -> str:
    """Return the type's qualified name, with its module unless that is `builtins`."""
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def message_of(error: BaseException | None) -> str:
    """Return the message of an exception."""
    try:
        return str(error)
    except Exception as another:  # noqa: BLE001  # the program's own method
        return f"<{type(another).__name__} in str>"


def event_name(text: str) -> str:
    """Return the first line of a text, shortened."""
    line = text.lstrip().partition("\n")[0].rstrip()
    return line if len(line) <= LONGEST_EVENT_NAME else line[: LONGEST_EVENT_NAME - 3] + "..."


def location_of(trace: TracebackType | None) -> tuple[str, str, int]:
    """Return file, function and line of the frame that raised the exception."""
    if trace is None:
        return "", "", 0
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename, code.co_qualname, trace.tb_lineno or 0


def _line(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code
    path, name = code.co_filename, code.co_qualname
    if len(path) > LONGEST_PATH:
        path = "..." + path[-LONGEST_PATH:]
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME] + "..."
    return f'  File "{path}", line {trace.tb_lineno}, in {name}'


def frames_of(trace: TracebackType | None) -> str:
    """Return the frames, outermost first; if there are many, the middle ones are omitted."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    left_out = len(frames) - OUTER_FRAMES - INNER_FRAMES
    lines = ["Traceback (most recent call last):"]
    if left_out > 0:
        lines += map(_line, frames[:OUTER_FRAMES])
        lines.append(f"  ... {left_out} more ...")
        frames = frames[-INNER_FRAMES:]
    lines += map(_line, frames)
    return "\n".join(lines)


def _members(error: BaseException | None) -> str:
    if not isinstance(error, BaseExceptionGroup):
        return ""
    lines = [f"\n  + {type_name(type(each))}: {message_of(each)}" for each in error.exceptions]
    left_out = len(lines) - MAX_MEMBERS
    more = f"\n  + {left_out} more" if left_out > 0 else ""
    return "".join(lines[:MAX_MEMBERS]) + more


def traceback_of(error: BaseException | None, trace: TracebackType | None) -> str:
    """Return the frames of an exception, preceded by those of its causes.

    The exceptions of a group follow, each in one line.
    """
    parts = [frames_of(trace) + _members(error)]
    while error is not None and len(parts) < MAX_CHAIN:
        cause = error.__cause__
        link = "The exception above was the direct cause of this one:"
        if cause is None:
            cause = None if error.__suppress_context__ else error.__context__
            link = "While the exception above was handled, this one was raised:"
        if cause is not None:
            said = f"{type_name(type(cause))}: {message_of(cause)}"
            parts.insert(0, f"{frames_of(cause.__traceback__)}\n{said}\n\n{link}\n")
        error = cause
    return "\n".join(parts)
