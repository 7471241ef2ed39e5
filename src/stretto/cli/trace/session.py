"""One session, from its start to its last byte.

    start -> wait (snapshots, Ctrl-C, watchdog) -> read back, unless the service writes the file

Rules (docs/formats/command_line.md, "While it runs")
- An error of the service ends the session and is printed; the command still succeeds.
- SIGINT and SIGTERM flush and stop the session; its data is saved.
- If a session lasts much longer than its config specifies, the command fails.
"""

from __future__ import annotations

import os
import random
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.cli.trace.snapshot import triggered_request
from stretto.cli.trace.source_reports import SourceReports
from stretto.ports.unmatched import TRACK_EVENT, Offers
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import ObservableEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stretto.cli.trace.consumer import TraceConsumer
    from stretto.cli.trace.output import TraceOutput
    from stretto.cli.trace.snapshot import Snapshot
    from stretto.protos.ipc import CloneSessionRequest
    from stretto.protos.trace import TracingServiceState

FLUSH_BY_COMMAND = 0x22
"""FlushFlags with initiator perfetto_cmd and reason trace stop."""
WATCHDOG_MARGIN_MS = 60_000
DEFAULT_FLUSH_TIMEOUT_MS = 5000
DEFAULT_STOP_TIMEOUT_MS = 5000
CHANCES = random.SystemRandom()

_Triggers = TraceConfig.TriggerConfig


class TraceSession:
    """Runs one session of the command.

    Args:
        consumer: a connected consumer.
        config: the config of the session.
        output: the output file; None if the service opens the file.
        make_snapshot: makes a copy of the session, from a request and a path.
        print_line: prints a line for the user.
        on_started: called when all data sources have started.
        added: data sources of the config that the user has not named.
    """

    def __init__(
        self,
        consumer: TraceConsumer,
        config: TraceConfig,
        output: TraceOutput | None,
        *,
        make_snapshot: Callable[[CloneSessionRequest, str], Snapshot],
        print_line: Callable[[str], object],
        on_started: Callable[[], object],
        added: Collection[str] = (),
    ) -> None:
        self._consumer = consumer
        self._config = config
        self._output = output
        self._make_snapshot = make_snapshot
        self._print_line = print_line
        self._on_started = on_started
        self._added = added
        self._offered: set[str] | None = None  # the data sources that processes had at the start
        self._hits: list[ObservableEvents.CloneTriggerHit] = []
        self._snapshots = 0
        self._reports = SourceReports(self._sources())
        self._stopping = False

    def start(self) -> None:
        """Start the session."""
        endpoint = self._consumer.endpoint
        endpoint.observe_events(self._observed(), self._on_events)
        writes = self._config.write_into_file and self._output is not None
        fd = self._output.fd if writes and self._output is not None else None
        endpoint.enable_tracing(self._config.encode(), fd)
        seconds = -(-(self._config.duration_ms or trigger_limit_ms(self._config)) // 1000)
        limit = f", TTL: {seconds}s" if seconds else ", starting tracing"
        self._print_line(f"Connected to the tracing service{limit}")
        endpoint.query_service_state(self._check_offered)

    def _check_offered(self, state: TracingServiceState) -> None:
        offers = Offers()
        offers.add_state(state)
        self._offered = offers.data_sources
        for line in offers.missing_in(self._config, self._added):
            self._print_line(f"Note: {line}")

    def stop(self) -> None:
        """Flush and end the session, as Ctrl-C does. Idempotent."""
        if not self._stopping:
            self._stopping = True
            self._print_line("Ending the session, and saving it")
            endpoint = self._consumer.endpoint
            endpoint.flush(0, lambda _ok: endpoint.disable_tracing(), FLUSH_BY_COMMAND)

    def finish(self) -> None:
        """Wait for the end, and save the trace.

        Raises:
            CommandError: the session did not end in time, or can't be saved.
        """
        self._wait()
        if self._consumer.error:
            self._print_line(f"Service error: {self._consumer.error}")
            if self._output is not None:
                self._output.remove_if_empty()
        elif self._config.write_into_file:
            self._print_line("Trace written into the output file")
            self._read_reports()
        elif self._output is not None:
            self._save(self._output)
        for line in self._reports.lines():
            self._print_line(f"Note: {line}")

    def _save(self, output: TraceOutput) -> None:
        unwritten = self._is_unwritten()
        output.watch = self._reports.add if self._sources() != {TRACK_EVENT} else None
        self._consumer.read_into(output)
        self._print_line(f"Wrote {output.size} bytes into {output.name}")
        if unwritten:
            self._print_line("Note: the trace has no events: no data source has written any")
        elif self._named() == {TRACK_EVENT} and not output.has_track_events():
            self._print_line("Note: the trace has no events, only names of processes and such")

    def _read_reports(self) -> None:
        """Read what data sources tell from the file that the service has written."""
        path = self._config.output_path if self._output is None else self._output.path
        if self._sources() == {TRACK_EVENT} or path == "-":
            return
        with suppress(OSError):  # The file may be another user's.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    self._reports.add_file(fd)
            finally:
                os.close(fd)

    def _sources(self) -> set[str]:
        """Return the data sources of the config."""
        sources = (each.config for each in self._config.data_sources)
        return {source.name for source in sources if source is not None}

    def _named(self) -> set[str]:
        """Return the data sources that the user has named."""
        return self._sources() - set(self._added)

    def _is_unwritten(self) -> bool:
        """Whether no process had the named data sources at first, and none has written since."""
        if self._offered is None or self._named() & self._offered:
            return False
        buffers = self._consumer.trace_stats().buffer_stats
        return bool(buffers) and not any(each.bytes_written for each in buffers)

    def _wait(self) -> None:
        limit = self._limit_ms()
        consumer = self._consumer
        while not consumer.ended:
            if not consumer.wait(lambda: consumer.ended or bool(self._hits), limit):
                raise CommandError("trace: the service has not ended the session in time.")
            while self._hits:
                self._take_snapshot(self._hits.pop(0))

    def _limit_ms(self) -> int | None:
        config = self._config
        expected = trigger_limit_ms(config) or config.duration_ms
        if not expected:
            return None
        flush_ms = config.flush_timeout_ms or DEFAULT_FLUSH_TIMEOUT_MS
        stop_ms = config.data_source_stop_timeout_ms or DEFAULT_STOP_TIMEOUT_MS
        return int(expected + WATCHDOG_MARGIN_MS + flush_ms + stop_ms)

    def _observed(self) -> int:
        clones = ObservableEvents.TYPE_CLONE_TRIGGER_HIT if is_cloned(self._config) else 0
        return ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED | clones

    def _on_events(self, events: ObservableEvents) -> None:
        if events.all_data_sources_started:
            self._on_started()
        if events.clone_trigger_hit is not None:
            self._hits.append(events.clone_trigger_hit)

    def _take_snapshot(self, hit: ObservableEvents.CloneTriggerHit) -> None:
        """Save a copy of the session in a file with the output's name and a number."""
        number, self._snapshots = self._snapshots, self._snapshots + 1
        path = f"{self._output.name if self._output else self._config.output_path}.{number}"
        try:
            snapshot = self._make_snapshot(triggered_request(hit), path)
        except CommandError as error:
            self._print_line(f"{error}")  # The snapshot has failed; the session continues.
            return
        try:
            snapshot.take()
            size, *notes = snapshot.save()
            for line in (f"{size} ({hit.trigger_name})", *notes):
                self._print_line(line)
        except CommandError as error:
            self._print_line(f"{error}")
        finally:
            snapshot.close()


def trigger_limit_ms(config: TraceConfig) -> int:
    """Return the longest time until a trigger ends the session; 0 without triggers."""
    triggers = config.trigger_config
    if triggers is None or not triggers.trigger_timeout_ms:
        return 0
    delays = (trigger.stop_delay_ms for trigger in triggers.triggers)
    return triggers.trigger_timeout_ms + max(delays, default=0)


def is_cloned(config: TraceConfig) -> bool:
    """Whether triggers clone the session."""
    triggers = config.trigger_config
    return triggers is not None and (
        triggers.trigger_mode == _Triggers.CLONE_SNAPSHOT
        or triggers.use_clone_snapshot_if_available
    )


def start_delay_ms(config: TraceConfig) -> int:
    """Return the delay before the session: a random number in the config's range."""
    delay = config.cmd_trace_start_delay
    return 0 if delay is None else CHANCES.randint(delay.min_delay_ms, delay.max_delay_ms)
