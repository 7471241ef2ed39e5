"""Which events of the kernel a FtraceConfig names, directly and by its other options."""

from __future__ import annotations

from stretto.probes.ftrace_categories import CATEGORIES
from stretto.probes.ftrace_events import FUNCTION_CALLS
from stretto.probes.ftrace_syscalls import EVENTS as SYSCALL_EVENTS
from stretto.probes.tracefs import TracefsError
from stretto.protos.trace import FtraceEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stretto.probes.tracefs import Folder
    from stretto.protos.config import FtraceConfig

PRINT = "ftrace/print"
ALWAYS_ON = "ftrace"
"""The group of events without a file `enable`."""
RSS_STAT = "kmem/rss_stat"
THROTTLED_RSS_STAT = "synthetic/rss_stat_throttled"


class Selection:
    """The events of a session.

    Args:
        instance: The folder with the events.
        options: The config.

    Raises:
        TracefsError: A pattern of the config has a wrong form.
    """

    def __init__(self, instance: Folder, options: FtraceConfig) -> None:
        self.unknown: list[str] = []
        """Patterns that no event matches."""
        found: dict[str, None] = {}
        for pattern in _checked(options.ftrace_events):
            matches = _found(instance, pattern)
            found.update(dict.fromkeys(matches))
            if not matches:
                self.unknown.append(pattern)
        for pattern in _implied(options):
            found.update(dict.fromkeys(_found(instance, pattern)))
        for category in () if options.atrace_userspace_only else options.atrace_categories:
            found.update(dict.fromkeys(_of_category(instance, category)))
        if options.throttle_rss_stat and instance.has(f"events/{THROTTLED_RSS_STAT}"):
            found = dict.fromkeys(THROTTLED_RSS_STAT if n == RSS_STAT else n for n in found)
        self.names = list(found)
        """The events, as `group/name`."""


def _implied(options: FtraceConfig) -> Iterator[str]:
    """Yield the patterns of events that are recorded because of other options."""
    if options.atrace_categories or options.atrace_apps:
        yield PRINT
    if options.syscall_events:
        yield from SYSCALL_EVENTS
    if options.enable_function_graph:
        yield from FUNCTION_CALLS


def _of_category(instance: Folder, category: str) -> Iterator[str]:
    for pattern in CATEGORIES.get(category, ()):
        for name in _found(instance, pattern):
            if not pattern.endswith("*") or FtraceEvent.LAYOUT.find(name.split("/")[1]):
                yield name


def _checked(events: Iterable[str]) -> Iterator[str]:
    """Yield the patterns of a config: `group/name`, `name`, or `group/*`.

    Raises:
        TracefsError: A pattern has another form.
    """
    for event in events:
        group, slash, name = event.partition("/")
        parts = (group, name) if slash else (group,)
        plain = all(part and part.isascii() and part.isprintable() for part in parts)
        if (
            not plain
            or "/" in name
            or "*" in group
            or ("*" in name and name != "*")
            or ".." in event
        ):
            raise TracefsError(f"ftrace_events: {event!r} is not `group/name`, `name` or `group/*`")
        yield event


def _found(instance: Folder, pattern: str) -> list[str]:
    """Return the events that match a pattern, as `group/name`."""
    group, slash, name = pattern.rpartition("/")
    if pattern in (PRINT, "print"):
        return [PRINT]
    if group == ALWAYS_ON:
        return [PRINT] if name == "*" else [pattern] if pattern in FUNCTION_CALLS else []
    if name == "*" and slash:
        return [f"{group}/{event}" for event in instance.names(f"events/{group}")]
    if slash or FtraceEvent.LAYOUT.find(name):
        groups = [group] if slash else instance.names("events")
        paths = [f"{each}/{name}" for each in groups]
        return [path for path in paths if instance.has(f"events/{path}/format")]
    return []
