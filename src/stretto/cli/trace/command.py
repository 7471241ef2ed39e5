"""The verb `trace`."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, DecodeError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.socket_names import consumer_socket
from stretto.cli.background import FAILED, daemonize
from stretto.cli.trace import query, snapshot
from stretto.cli.trace.config import session_config
from stretto.cli.trace.consumer import TraceConsumer
from stretto.cli.trace.options import USAGE_EXIT_CODE, TraceOptions, make_parser, parse
from stretto.cli.trace.output import TraceOutput
from stretto.cli.trace.session import FLUSH_BY_COMMAND, TraceSession, start_delay_ms
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import CloneSessionRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

START_TIMEOUT_S = 30.0
"""How long --background-wait waits."""
NO_SUCH_SESSION = 2


def run(arguments: Sequence[str]) -> int:
    """`stretto trace`; returns the exit code.

    Raises:
        CommandError: there is no trace, and why.
    """
    if not arguments:
        make_parser().print_help(sys.stderr)
        return USAGE_EXIT_CODE
    options = _early(arguments)
    if options is None:
        return 0
    command = _Command(options)
    try:
        return command.run()
    finally:
        command.close()


def _early(arguments: Sequence[str]) -> TraceOptions | None:
    """The options, unless all is said with them."""
    if "--version" in arguments:
        from stretto import __version__

        print(f"stretto {__version__}")
        return None
    if "--reset-guardrails" in arguments:
        return None
    return parse(arguments)


class _Command:
    """One run of the command; `close` leaves nothing open."""

    def __init__(self, options: TraceOptions) -> None:
        self._options = options
        self._runner = SelectorTaskRunner()
        self._address = consumer_socket()
        self._consumer: TraceConsumer | None = None
        self._output: TraceOutput | None = None
        self._starts: list[Callable[[int], object]] = []

    def run(self) -> int:
        options = self._options
        if options.asks:
            return self._query()
        if options.is_detached is not None:
            return self._is_detached(options.is_detached)
        if options.attach is not None:
            return self._attach(options.attach)
        if options.clones:
            return self._clone()
        if options.saves_bugreport:
            return self._save_for_bugreport()
        return self._record(session_config(options))

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

    # --- a session

    def _record(self, config: TraceConfig) -> int:
        if config.activate_triggers:
            from stretto.cli.trigger import activate_triggers

            activate_triggers(config.activate_triggers)
            return 0
        self._open_output(config)
        self._leave_terminal()
        self._runner.run_until(lambda: False, start_delay_ms(config))
        try:
            consumer = self._connect()
        except CommandError:
            if self._output is not None:
                self._output.remove_if_empty()
            raise
        session = self._make_session(consumer, config)
        self._end_by_signal(session.stop)
        session.start()
        if self._options.detach is not None:
            consumer.detach(self._options.detach)
            return 0
        session.finish()
        return 0

    def _open_output(self, config: TraceConfig) -> None:
        out = self._options.out
        if out is not None and not config.output_path:
            path = out if out == "-" else os.path.abspath(out)
            self._output = TraceOutput(path, no_clobber=self._options.no_clobber)

    def _make_session(self, consumer: TraceConsumer, config: TraceConfig) -> TraceSession:
        return TraceSession(
            consumer,
            config,
            self._output,
            make_snapshot=self._make_snapshot,
            say=_say,
            on_started=lambda ok: self._started(0 if ok else FAILED),
        )

    def _leave_terminal(self) -> None:
        """Go into the background, if wanted; whoever waits for the start is told later."""
        options = self._options
        if options.notify_fd is not None:
            self._starts.append(lambda status: _notify(options.notify_fd or 0, status))
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

    # --- sessions that are left to themselves

    def _attach(self, key: str) -> int:
        consumer = self._connect()
        encoded = consumer.attach(key)
        if encoded is None:
            raise CommandError(f"trace: there is no detached session {key!r}.", NO_SUCH_SESSION)
        try:
            config = TraceConfig.decode(encoded)
        except DecodeError as error:
            raise CommandError(f"trace: the service sent no config: {error}.") from error
        if not config.write_into_file:
            self._open_output(config)
        session = self._make_session(consumer, config)
        self._end_by_signal(session.stop)
        if self._options.stop:
            endpoint = consumer.endpoint
            endpoint.flush(0, lambda _ok: endpoint.disable_tracing(), FLUSH_BY_COMMAND)
        session.finish()
        return 0

    def _is_detached(self, key: str) -> int:
        consumer = self._connect()
        if consumer.attach(key) is None:
            return NO_SUCH_SESSION
        consumer.detach(key)
        return 0

    # --- copies

    def _make_snapshot(self, request: CloneSessionRequest, path: str) -> snapshot.Snapshot:
        output = TraceOutput(path, no_clobber=self._options.no_clobber)
        try:
            return snapshot.Snapshot(self._runner, self._address, request, output)
        except CommandError:
            output.remove_if_empty()
            output.close()
            raise

    def _clone(self) -> int:
        options = self._options
        request = CloneSessionRequest(for_bugreport=options.clone_for_bugreport)
        if options.clone is not None:
            request.session_id = snapshot.session_number(options.clone)
        else:
            name = request.unique_session_name = options.clone_by_name or ""
            state = self._connect().service_state(sessions_only=True)
            request.session_id = snapshot.session_named(name, state)
        self._leave_terminal()
        return self._save_all([(request, options.out or "-")])

    def _save_for_bugreport(self) -> int:
        if self._options.save_for_bugreport:
            request = CloneSessionRequest(session_id=snapshot.BUGREPORT_SESSION_ID)
            path = os.path.join(snapshot.folder(), snapshot.BUGREPORT_FILE)
            return self._save_all([(request, path)])
        state = self._connect().service_state(sessions_only=True)
        return self._save_all(snapshot.bugreport_requests(state))

    def _save_all(self, wanted: Iterable[tuple[CloneSessionRequest, str]]) -> int:
        """Take all copies before any is read, so that they are of one moment."""
        snapshots: list[snapshot.Snapshot] = []
        try:
            for request, path in wanted:
                snapshots.append(self._make_snapshot(request, path))
            for each in snapshots:
                each.take()
            self._started(0)
            for each in snapshots:
                each.save()
                _say(f"Wrote {each.output.size} bytes into {each.output.path}")
        finally:
            for each in snapshots:
                each.close()
        return 0

    # --- questions

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
        _say(f"--notify-fd {fd}: {error.strerror}")


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody listens; the trace is what matters
