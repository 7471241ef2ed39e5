"""Runs data sources of `stretto probes` on a machine of files, with a fake clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

from stretto import _native
from stretto.probes.machine import Machine
from stretto.probes.probe import Probe
from stretto.protos.config import DataSourceConfig
from stretto.protos.trace import Trace, TracePacket
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner

P = TypeVar("P", bound=Probe)

BUFFER, PRODUCER = 1, 7
BUFFER_BYTES = 16 << 20
TRUSTED = (
    "trusted_uid",
    "trusted_pid",
    "trusted_packet_sequence_id",
    "first_packet_on_sequence",
)
"""What the service and the trace writer add to packets."""


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write files by their paths below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


class WrittenPackets:
    """A trace writer, and the packets that it has written."""

    def __init__(self) -> None:
        self._table = _native.BufferTable()
        self._table.create(BUFFER, BUFFER_BYTES, _native.DISCARD)
        self._table.set_producer(BUFFER, PRODUCER, 0, 0)
        endpoint = _native.ProducerEndpointCore(self._table, PRODUCER)
        endpoint.allow_buffer(BUFFER, True)
        arbiter = _native.Arbiter.in_process(endpoint, 1 << 20, 1 << 15)
        self._readback = _native.Readback(self._table)
        self.writer = _native.TraceWriter(arbiter, BUFFER, _native.STALL)

    def take(self) -> list[TracePacket]:
        """Return the packets written since the last call, without what the service adds."""
        self.writer.flush()
        self._readback.begin(BUFFER)
        data, more = b"", True
        while more:
            part, more = self._readback.read(BUFFER, 1 << 20)
            data += part
        packets = Trace.decode(data).packet
        for packet in packets:
            for name in TRUSTED:
                packet.clear(name)
        return packets


class Probing(Generic[P]):
    """A data source that has started, and the packets that it has written.

    Args:
        source: The data source.
        root: The folder with `proc` and `sys`.
        machine: The machine of another data source; None for a new one.
        config: Fields of its DataSourceConfig.
    """

    def __init__(
        self, source: type[P], root: Path, machine: Machine | None = None, **config: Any
    ) -> None:
        self.runner = FakeTaskRunner(FakeClock())
        self._written = written = WrittenPackets()

        self.cpu_ns = 0
        """The CPU time that the probes have used."""
        own = Machine(
            self.runner, lambda f: f(), self.runner.clock, str(root), cpu_ns=lambda: self.cpu_ns
        )
        chosen = machine or own

        class Written(source):  # type: ignore[misc, valid-type]
            machine = chosen

            def write(self, packet: TracePacket | bytes) -> bool:
                return written.writer.write(
                    packet if isinstance(packet, bytes) else packet.encode()
                )

            def writer(self) -> _native.TraceWriter:
                return written.writer

        self.source: P = Written()
        self.source.config = DataSourceConfig(name=source.name, **config)
        self.source.on_start()

    def take(self) -> list[TracePacket]:
        """Return the packets written since the last call."""
        return self._written.take()

    def advance(self, milliseconds: float) -> list[TracePacket]:
        """Advance the time; return the packets written meanwhile."""
        self.runner.advance(milliseconds)
        return self.take()
