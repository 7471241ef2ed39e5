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


def _checked(events: Iterable[str]) -> list[str]:
    """Return the patterns of a config: `group/name`, `name`, or `group/*`.

    Raises:
        TracefsError: Some have a form that can't name an event. As with traced_probes, the session
            has no event of the kernel then. A name that is only unknown is no such error.
    """
    patterns = list(events)
    wrong = [repr(pattern) for pattern in dict.fromkeys(patterns) if not _is_valid(pattern)]
    if wrong:
        raise TracefsError(
            f"no event is recorded, because of ftrace_events: {', '.join(wrong)} "
            f"{'is' if len(wrong) == 1 else 'are'} not `group/name`, `name` or `group/*`"
        )
    return patterns


def _is_valid(pattern: str) -> bool:
    """Return whether traced_probes accepts a pattern; `..` is refused because it leaves events/."""
    slashes = pattern.count("/") <= 1 and pattern.strip("/") == pattern
    plain = pattern.isascii() and pattern.isprintable() and ".." not in pattern
    return slashes and plain and "*" not in pattern[:-1]


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
