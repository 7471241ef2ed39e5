"""The data source `track_event`: the events of all categories.

The data source is a subclass of the public `DataSource`, like any other. The native part encodes
and writes the events; this module starts and stops the native part.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.base.errors import StrettoError
from stretto.client import postponed
from stretto.client.data_source import DataSource
from stretto.client.tracing import tracing
from stretto.client.track_event import process, slots
from stretto.client.track_event.process_name import call_when_named
from stretto.protozero import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    from stretto.protos.config import DataSourceConfig, DataSourceDescriptor, TrackEventConfig

_TIMESTAMP = 8  # The field number of TracePacket.timestamp.
_TRACK_DESCRIPTOR = 60  # The field number of TracePacket.track_descriptor.
_TRACK_EVENT_DESCRIPTOR = 6  # A field number of DataSourceDescriptor.
_AVAILABLE_CATEGORIES = 1  # The field number of TrackEventDescriptor.available_categories.
_POLICIES = {1: _native.DROP, 2: _native.STALL_THEN_DROP, 3: _native.STALL_THEN_DROP}
"""Native policies by DataSourceConfig.buffer_exhausted_policy. "Stall then abort" doesn't abort:
tracing never kills the traced program."""


def _encoded_category(category: _native.Category) -> bytes:
    """Return a category as an element of TrackEventDescriptor.available_categories."""
    texts = [(1, category.name), (2, category.description), *((3, tag) for tag in category.tags)]
    fields = [wire.bytes_field(number, text.encode("utf-8", "replace")) for number, text in texts]
    return wire.bytes_field(_AVAILABLE_CATEGORIES, b"".join(fields))


def _selection(config: TrackEventConfig) -> tuple[object, ...]:
    """Return the fields of a config that select the recorded events and arguments."""
    return (
        set(config.enabled_categories),
        set(config.disabled_categories),
        set(config.enabled_tags),
        set(config.disabled_tags),
        bool(config.filter_debug_annotations),
        bool(config.filter_dynamic_event_names),
    )


class TrackEventSource(DataSource):
    """Slices, instants and counters of this process."""

    name = "track_event"
    counts: ClassVar[list[int]] = [0, 0]
    """The numbers of events written and lost, in sessions that have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.slot: int | None = None
        self._parent_pid = 0

    @classmethod
    def descriptor(cls) -> DataSourceDescriptor:
        from stretto.protos.config import DataSourceDescriptor

        descriptor = DataSourceDescriptor(
            name=cls.name,
            id=1,
            will_notify_on_start=True,
            handles_incremental_state_clear=True,
            will_notify_on_stop=True,  # The notification is sent after all data.
            no_flush=True,  # The service scrapes the memory, which contains every finished event.
        )
        # Each process sends the descriptor when it starts. Message classes of the categories would
        # be made for it only, which takes half a millisecond.
        categories = b"".join(_encoded_category(category) for category in _native.categories())
        descriptor.unknown_fields = wire.bytes_field(_TRACK_EVENT_DESCRIPTOR, categories)
        return descriptor

    @classmethod
    def can_adopt_startup_session(
        cls, startup_config: DataSourceConfig, service_config: DataSourceConfig
    ) -> bool:
        """Whether both configs select the same categories, in any order, with the same filters.

        If both configs lack a track event config, the base class compares all their fields.
        """
        startup, service = startup_config.track_event_config, service_config.track_event_config
        if startup is None or service is None:
            return startup is service and super().can_adopt_startup_session(
                startup_config, service_config
            )
        return _selection(startup) == _selection(service)

    @classmethod
    def announce_categories(cls) -> None:
        """Send the descriptor of this data source, with its new categories, to all services."""
        tracing.update_data_source(cls)

    def on_start(self) -> None:
        with slots.lock:
            self._start()

    def _start(self) -> None:
        if self._ended:  # Another thread has ended this instance before it had a slot.
            return
        self.slot = slots.take_slot()
        if self.slot is None:
            raise StrettoError(
                f"{_native.MAX_INSTANCES} sessions record track events already: this one "
                "gets none. Stop one of them first."
            )
        process.announce_process()
        self._parent_pid = os.getppid()
        config = self.config.track_event_config
        policy = _POLICIES.get(self.config.buffer_exhausted_policy, _native.DROP)
        filter_annotations = bool(config and config.filter_debug_annotations)
        _native.start_instance(
            self.slot, self.arbiter, self.target_buffer, policy, filter_annotations
        )
        slots.enable(self.slot, config)
        self.name_process()
        call_when_named(name_worker)

    def on_stop(self) -> None:
        with slots.lock:
            if self.slot is None:
                return
            slot, self.slot = self.slot, None
            slots.disable(slot)
            _native.stop_instance(slot)
            self.name_process()  # Meanwhile `linux.process_stats` may have renamed it.
            self._name_threads(slot)
            written, lost = _native.instance_counts(slot)
        self.counts[0] += written
        self.counts[1] += lost

    def name_process(self) -> None:
        """Write this process's name, command line and parent, unless it runs the service itself."""
        if tracing.is_in_process(self.arbiter):
            return
        time = wire.varint_field(_TIMESTAMP, _native.boottime_ns())
        self.write(time + process.process_tree(self._parent_pid))

    def _name_threads(self, slot: int) -> None:
        """Write the last names of threads that were renamed after their first event."""
        time = wire.varint_field(_TIMESTAMP, _native.boottime_ns())
        for descriptor in _native.renamed_threads(slot):
            self.write(time + wire.bytes_field(_TRACK_DESCRIPTOR, descriptor))

    def on_flush(self) -> None:
        if self.slot is not None:
            _native.flush_instance(self.slot)

    def on_clear_incremental_state(self) -> None:
        if self.slot is not None:
            _native.clear_instance(self.slot)


def name_worker(_: object = None) -> None:
    """Write the new name of this process, which multiprocessing has made a worker."""
    postponed.run()
    process.announce_process()
    for source in TrackEventSource.instances():
        source.name_process()
