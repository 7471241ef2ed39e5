"""Light mode: a TraceConfig from a duration, sizes, and names of events.

Source: docs/formats/command_line.md, "Light mode".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.protos.config import (
    DataSourceConfig,
    FtraceConfig,
    SysStatsConfig,
    TraceConfig,
    TrackEventConfig,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
KILOBYTES = {"kb": 1, "k": 1, "mb": 1 << 10, "m": 1 << 10, "gb": 1 << 20, "g": 1 << 20}
DEFAULT_TIME = "10s"
DEFAULT_BUFFER = "32mb"
FLUSH_PERIOD_MS = 30_000
DISKSTAT_PERIOD_MS = 1000
ADDED = ("linux.process_stats", "linux.system_info")
"""Data sources of each config of the light mode."""
_HYPERVISOR = ("hyp", "hypervisor")


def light_config(
    *,
    time: str | None,
    buffer: str | None,
    size: str | None,
    apps: Sequence[str],
    names: Sequence[str],
    categories: Sequence[str] = (),
) -> TraceConfig:
    """Return the config for these options.

    Args:
        time: the duration with a unit: `10s`.
        buffer: the size of the buffer: `32mb`.
        size: the largest size of the file; if given, the file is written while recording.
        apps: apps for atrace.
        names: ftrace events, whose names have a slash, and atrace categories.
        categories: categories of track events; may have wildcards.

    Raises:
        CommandError: a number is malformed.
    """
    size_kb = _number(size or "0", KILOBYTES, "-s")
    buffer_kb = _number(DEFAULT_BUFFER if buffer is None else buffer, KILOBYTES, "-b")
    config = TraceConfig(
        duration_ms=_number(DEFAULT_TIME if time is None else time, MILLISECONDS, "-t"),
        flush_period_ms=FLUSH_PERIOD_MS,
        buffers=[TraceConfig.BufferConfig(size_kb=buffer_kb)],
    )
    if size_kb:
        config.max_file_size_bytes = size_kb << 10
        config.write_into_file = True
    for source in [*_track_events(categories), *_sources(apps, names)]:
        source.target_buffer = 0
        config.data_sources.append(TraceConfig.DataSource(config=source))
    return config


def _number(text: str, units: dict[str, int], option: str) -> int:
    if text in ("", "0"):
        return 0
    found = re.fullmatch(r"(\d+)([a-z]+)", text)
    if found is None or found[2] not in units:
        raise CommandError(f"trace: {option} {text}: give a number and one of {', '.join(units)}.")
    return int(found[1]) * units[found[2]]


def _track_events(categories: Sequence[str]) -> list[DataSourceConfig]:
    if not categories:
        return []
    events = TrackEventConfig(enabled_categories=list(categories), disabled_categories=["*"])
    return [DataSourceConfig(name="track_event", track_event_config=events)]


def _sources(apps: Sequence[str], names: Sequence[str]) -> list[DataSourceConfig]:
    events = [name for name in names if "/" in name]
    categories = [name for name in names if "/" not in name]
    sources = []
    if "gfx" in categories:
        sources.append(DataSourceConfig(name="android.surfaceflinger.frametimeline"))
    if "disk" in categories:
        stats = SysStatsConfig(diskstat_period_ms=DISKSTAT_PERIOD_MS)
        sources.append(DataSourceConfig(name="linux.sys_stats", sys_stats_config=stats))
    for category in categories:
        if category in _HYPERVISOR:
            instance = FtraceConfig(instance_name=category, ftrace_events=[f"{category}/*"])
            sources.append(DataSourceConfig(name="linux.ftrace", ftrace_config=instance))
    if events or categories or apps:
        ftrace = FtraceConfig(
            ftrace_events=events,
            atrace_categories=categories,
            atrace_apps=list(apps),
            symbolize_ksyms=True,
        )
        sources.append(DataSourceConfig(name="linux.ftrace", ftrace_config=ftrace))
    return [*sources, *(DataSourceConfig(name=name) for name in ADDED)]
