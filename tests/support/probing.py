"""Runs data sources of `stretto probes` on a machine of files, with a fake clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

from stretto.probes.machine import Machine
from stretto.probes.probe import Probe
from stretto.protos.config import DataSourceConfig
from stretto.protos.trace import TracePacket
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner

P = TypeVar("P", bound=Probe)


def write_files(root: Path, files: dict[str, str]) -> None:
    """Write files by their paths below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


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
        self._packets: list[TracePacket] = []
        written = self._packets

        own = Machine(self.runner, lambda f: f(), self.runner.clock, str(root))
        chosen = machine or own

        class Written(source):  # type: ignore[misc, valid-type]
            machine = chosen

            def write(self, packet: TracePacket | bytes) -> bool:
                data = packet if isinstance(packet, bytes) else packet.encode()
                written.append(TracePacket.decode(data))
                return True

        self.source: P = Written()
        self.source.config = DataSourceConfig(name=source.name, **config)
        self.source.on_start()

    def take(self) -> list[TracePacket]:
        """Return the packets written since the last call."""
        taken = self._packets[:]
        self._packets.clear()
        return taken

    def advance(self, milliseconds: float) -> list[TracePacket]:
        """Advance the time; return the packets written meanwhile."""
        self.runner.advance(milliseconds)
        return self.take()
