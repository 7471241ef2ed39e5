"""`perfetto.metatrace`: the work of the other data sources, as slices of their thread."""

from __future__ import annotations

from _thread import get_native_id

from stretto.probes.probe import Probe
from stretto.protos.trace import PerfettoMetatrace, TracePacket


class Metatrace(Probe):
    """Writes how long each poll of a data source takes."""

    name = "perfetto.metatrace"

    def start(self) -> None:
        self.machine.observers.append(self._record)

    def stop(self) -> None:
        self.machine.observers.remove(self._record)

    def _record(self, name: str, start_ns: int, end_ns: int) -> None:
        work = PerfettoMetatrace(
            event_name=name, event_duration_ns=end_ns - start_ns, thread_id=get_native_id()
        )
        self.write(TracePacket(timestamp=start_ns, perfetto_metatrace=work))
