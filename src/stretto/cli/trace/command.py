"""The verb `trace`."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, DecodeError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.socket_names import consumer_socket
from stretto.cli.background import FAILED, daemonize
from stretto.cli.trace import query, snapshot
from stretto.cli.trace.config import read_config, session_config
from stretto.cli.trace.consumer import TraceConsumer
from stretto.cli.trace.light_mode import ADDED
from stretto.cli.trace.options import USAGE_EXIT_CODE, TraceOptions, make_parser, parse
from stretto.cli.trace.output import TraceOutput
from stretto.cli.trace.session import FLUSH_BY_COMMAND, TraceSession, start_delay_ms
from stretto.ports.session_lookup import session_named
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import CloneSessionRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

START_TIMEOUT_S = 30.0
"""How long --background-wait waits for the data sources."""
NO_SUCH_SESSION = 2


def run(arguments: Sequence[str]) -> int:
    """Run `stretto trace`; return the exit code.

    Raises:
        CommandError: there is no trace; the message says why.
    """
    if not arguments:
        make_parser().print_help(sys.stderr)
        return USAGE_EXIT_CODE
    options = parse(arguments)
    if options.version:
        from stretto import __version__

        print(f"stretto {__version__}")
        return 0
    if options.reset_guardrails:
        return 0
    command = _Command(options)
    try:
        return command.run()
    finally:
        command.close()


class _Command:
    """One run of the command; `close` releases everything."""

    def __init__(self, options: TraceOptions) -> None:
        self._options = options
        self._runner = SelectorTaskRunner()
        self._address = consumer_socket()
        self._consumer: TraceConsumer | None = None
        self._output: TraceOutput | None = None
        self._starts: list[Callable[[int], object]] = []
        if (fd := options.notify_fd) is not None:
            self._starts.append(lambda status: _notify(fd, status))

    def run(self) -> int:
        try:
            status = self._run(read_config(self._options))
        except CommandError:
            if self._output is not None:
                self._output.remove_if_empty()
            raise
        self._started(FAILED if status else 0)
        return status

    def _run(self, config: bytes) -> int:
        options = self._options
        if options.is_query:
            return self._query()
        if options.is_detached is not None:
            return self._is_detached(options.is_detached)
        if options.attach is not None:
            return self._attach(options.attach)
        if options.saves_bugreport:
            return self._save_for_bugreport()
        if options.clones:
            return self._clone()
        return self._record(session_config(options, config))

    def close(self) -> None:
        self._started(FAILED)
        if self._consumer is not None:
            self._consumer.close()
        if self._output is not None:
            self._output.close()
        self._runner.close()

    def _connect(self) -> TraceConsumer:
        self._consumer = TraceConsumer(self._runner, self._address)
        return self._consumer

    def _record(self, config: TraceConfig) -> int:
        if config.activate_triggers:
            return self._activate(config.activate_triggers)
        if self._options.out is not None:
            self._output = self._open(self._options.out)
        self._leave_terminal()
        self._runner.run_until(lambda: False, start_delay_ms(config))
        consumer = self._connect()
        session = self._make_session(consumer, config)
        self._end_by_signal(session.stop)
        session.start()
        if self._options.detach is not None:
            consumer.detach(self._options.detach)
            return 0
        session.finish()
        return 0

    def _activate(self, triggers: Sequence[str]) -> int:
        from stretto.cli.trigger import activate_triggers

        self._leave_terminal()
        activate_triggers(triggers)
        return 0

    def _open(self, path: str) -> TraceOutput:
        return TraceOutput(path, no_clobber=self._options.no_clobber)

    def _make_session(self, consumer: TraceConsumer, config: TraceConfig) -> TraceSession:
        return TraceSession(
            consumer,
            config,
            self._output,
            make_snapshot=self._make_snapshot,
            print_line=_print_line,
            on_started=lambda: self._started(0),
            added=ADDED if self._options.light else (),
        )

    def _leave_terminal(self) -> None:
        """Continue in the background, if requested. The waiting parent is notified later."""
        options = self._options
        if options.background_wait:
            self._starts.append(daemonize(START_TIMEOUT_S))
        elif options.background:
            daemonize()(0)

    def _started(self, status: int) -> None:
        starts, self._starts = self._starts, []
        for start in starts:
            start(status)

    def _end_by_signal(self, stop: Callable[[], object]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._runner.post(stop))

    def _attach(self, key: str) -> int:
        self._leave_terminal()
        consumer = self._connect()
        encoded = consumer.attach(key)
        if encoded is None:
            raise CommandError(f"trace: there is no detached session {key!r}.", NO_SUCH_SESSION)
        try:
            config = TraceConfig.decode(encoded)
        except DecodeError as error:
            raise CommandError(f"trace: the service sent no config: {error}.") from error
        session = self._make_session(consumer, config)
        self._end_by_signal(session.stop)
        if self._options.stop:
            endpoint = consumer.endpoint
            endpoint.flush(0, lambda _ok: endpoint.disable_tracing(), FLUSH_BY_COMMAND)
        session.finish()
        return 0

    def _is_detached(self, key: str) -> int:
        self._leave_terminal()
        consumer = self._connect()
        if consumer.attach(key) is None:
            return NO_SUCH_SESSION
        consumer.detach(key)
        return 0

    def _make_snapshot(self, request: CloneSessionRequest, path: str) -> snapshot.Snapshot:
        return self._snapshot_into(self._open(path), request)

    def _snapshot_into(
        self, output: TraceOutput, request: CloneSessionRequest
    ) -> snapshot.Snapshot:
        try:
            consumer = TraceConsumer(self._runner, self._address)
        except CommandError:
            output.remove_if_empty()
            output.close()
            raise
        return snapshot.Snapshot(consumer, request, output)

    def _clone(self) -> int:
        output = self._output = self._open(self._options.out or "-")
        self._leave_terminal()
        request = self._clone_request()
        self._output = None
        return self._save_all([self._snapshot_into(output, request)])

    def _clone_request(self) -> CloneSessionRequest:
        options = self._options
        bugreport = options.clone_for_bugreport
        request = CloneSessionRequest(skip_trace_filter=bugreport, for_bugreport=bugreport)
        if options.clone is not None:
            request.session_id = snapshot.session_number(options.clone)
        else:
            name = request.unique_session_name = options.clone_by_name or ""
            state = self._connect().service_state(sessions_only=True)
            if (known := session_named(name, state)) != 0:
                request.session_id = known  # Setting the id clears the name: both are in one oneof.
        return request

    def _save_for_bugreport(self) -> int:
        if self._options.save_for_bugreport:
            output = self._open_for_bugreport(snapshot.bugreport_path())
            self._leave_terminal()
            return self._save_all([self._snapshot_into(output, snapshot.bugreport_request())])
        self._leave_terminal()
        state = self._connect().service_state(sessions_only=True)
        wanted = snapshot.bugreport_requests(state)
        if not wanted:
            _print_line("No tracing sessions eligible for bugreport were found.")
        return self._save_all(
            self._snapshot_into(self._open_for_bugreport(path), request) for request, path in wanted
        )

    def _open_for_bugreport(self, path: str) -> TraceOutput:
        """Create a new file. In a shared folder, an existing file may be another user's link."""
        if not self._options.no_clobber:
            with suppress(OSError):
                os.unlink(path)
        return TraceOutput(path, no_clobber=True)

    def _save_all(self, made: Iterable[snapshot.Snapshot]) -> int:
        """Clone all sessions before reading the first clone, so that all files show one moment."""
        snapshots: list[snapshot.Snapshot] = []
        try:
            # If a connection fails, the earlier snapshots are in the list, and are closed below.
            snapshots.extend(made)
            for each in snapshots:
                each.take()
            self._started(0)
            for each in snapshots:
                for line in each.save():
                    _print_line(line)
        finally:
            for each in snapshots:
                each.close()
        return 0

    def _query(self) -> int:
        state = self._connect().service_state()
        if self._options.query_raw:
            sys.stdout.buffer.write(state.encode())
        else:
            print(query.describe(state, all_categories=self._options.long), end="")
        sys.stdout.flush()
        return 0


def _notify(fd: int, status: int) -> None:
    try:
        os.write(fd, bytes([status]))
        os.close(fd)
    except OSError as error:
        _print_line(f"--notify-fd {fd}: {error.strerror}")


def _print_line(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # Standard error is closed; the trace is still written.
