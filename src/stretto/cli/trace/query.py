"""Formats the service's state as text: `stretto trace --query`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.text_table import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.protos.config import DataSourceDescriptor
    from stretto.protos.trace import TracingServiceState

MAX_CATEGORIES = 40
"""The number of categories shown for a data source without --long."""


def describe(state: TracingServiceState, *, all_categories: bool = False) -> str:
    """Format the producers, the data sources and the sessions."""
    machines = any(each.machine_id for each in state.producers)
    return (
        f"Service: {state.tracing_service_version}\n"
        f"Tracing sessions: {state.num_sessions} (started: {state.num_sessions_started})\n"
        f"\nPRODUCER PROCESSES CONNECTED:\n\n{_producers(state, machines)}"
        f"\nDATA SOURCES REGISTERED:\n\n{_data_sources(state, machines, all_categories)}"
        f"\nTRACING SESSIONS:\n\n{_sessions(state)}"
    )


def _producers(state: TracingServiceState, machines: bool) -> str:
    rows = [_with_machine(("ID", "PID", "UID", "FLAGS"), "MACHINE", ("NAME", "SDK"), machines)]
    for each in state.producers:
        flags = "F" if each.frozen else "-"
        rows.append(
            _with_machine(
                (str(each.id), str(each.pid), str(each.uid), flags),
                _machine(each),
                (each.name, each.sdk_version),
                machines,
            )
        )
    return table(rows)


def _data_sources(state: TracingServiceState, machines: bool, all_categories: bool) -> str:
    producers = {each.id: each for each in state.producers}
    rows = [_with_machine(("NAME", "PRODUCER"), "MACHINE", ("DETAILS",), machines)]
    for each in state.data_sources:
        producer, descriptor = producers.get(each.producer_id), each.ds_descriptor
        if descriptor is None:
            continue
        name = f"{producer.name} ({each.producer_id})" if producer else f"({each.producer_id})"
        machine = _machine(producer) if producer else ""
        details = _details(descriptor, all_categories)
        rows.append(_with_machine((descriptor.name, name), machine, (details,), machines))
    return table(rows)


def _sessions(state: TracingServiceState) -> str:
    if not state.supports_tracing_sessions:
        return "This service is too old to list its sessions.\n"
    rows = [["ID", "UID", "STATE", "BUF (#) KB", "DUR (s)", "#DS", "STARTED", "NAME"]]
    for each in state.tracing_sessions:
        sizes = each.buffer_size_kb
        rows.append(
            [
                str(each.id),
                str(each.consumer_uid),
                each.state,
                f"({len(sizes)}) {sum(sizes)}",
                f"{each.duration_ms / 1000:g}",
                str(each.num_data_sources),
                _date(each.start_realtime_ns),
                each.unique_session_name,
            ]
        )
    return table(rows)


def _with_machine(
    left: tuple[str, ...], machine: str, right: tuple[str, ...], shown: bool
) -> list[str]:
    return [*left, *([machine] if shown else []), *right]


def _machine(producer: TracingServiceState.Producer) -> str:
    return producer.machine_name or str(producer.machine_id)


def _date(realtime_ns: int) -> str:
    from datetime import UTC, datetime

    if not realtime_ns:
        return "-"
    return datetime.fromtimestamp(realtime_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _details(descriptor: DataSourceDescriptor, all_categories: bool) -> str:
    names: list[str] = []
    if descriptor.track_event_descriptor is not None:
        for category in descriptor.track_event_descriptor.available_categories:
            tags = f"[{','.join(category.tags)}]" if category.tags else ""
            names.append(category.name + tags)
    if descriptor.ftrace_descriptor is not None:
        names += [each.name for each in descriptor.ftrace_descriptor.atrace_categories]
    return shortened(names, all_categories)


def shortened(names: Sequence[str], all_names: bool) -> str:
    """Join names with commas; at most `MAX_CATEGORIES` unless `all_names`."""
    if all_names or len(names) <= MAX_CATEGORIES:
        return ", ".join(names)
    more = len(names) - MAX_CATEGORIES
    return f"{', '.join(names[:MAX_CATEGORIES])}, … {more} more, see --long"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as lines with aligned columns."""
    # Peers choose these names: control characters must not reach the terminal.
    return aligned([[_printable(cell) for cell in row] for row in rows])


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
