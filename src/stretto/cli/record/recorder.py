"""The recorder: one recording of one program, from its start to the summary."""

from __future__ import annotations

import errno
import os
import resource
import sys
import time
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, StrettoError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.cli.record.progress import STDERR, Progress
from stretto.cli.record.summary import size_text, summary, whereabouts
from stretto.recorder.host import workspace_folder as folder
from stretto.recorder.host.config import make_config
from stretto.recorder.host.contents import Contents
from stretto.recorder.host.counters import Counters
from stretto.recorder.host.descendants import Descendants, anyone_lives
from stretto.recorder.host.private_recording import Recording
from stretto.recorder.host.program import Program
from stretto.recorder.host.python_starts import PythonStarts
from stretto.recorder.host.snapshots import Snapshots
from stretto.recorder.host.system_config import MARK, make_system_config
from stretto.service.output.output_file import OutputFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.protos.config import TraceConfig
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.host.system_recording import SystemRecording
    from stretto.recorder.workspace import Options, Workspace

LINGER_MS = 2000
"""How long processes that outlive the program are waited for."""

LOOK_MS = 50
"""Time between looks at them."""

SNAPSHOT_TIMEOUT_MS = 5000
TICK_MS = 1000

NOT_STARTED_EXIT_CODE = 125
"""As of `env` and `timeout`: it is we who failed."""


class Recorder:
    """Runs a program and records it.

    Args:
        options: the command line's.
        output: where the trace goes; stays the caller's to close.
    """

    def __init__(self, options: RecordingOptions, output: Output, *, quiet: bool) -> None:
        self._options = options
        self._output = output
        self._quiet = quiet
        self._runner = SelectorTaskRunner()
        self._descendants = Descendants()
        self._starts: PythonStarts | None = None
        self._name = f"{MARK}record-{os.getpid()}"
        self._recording = self._make_recording()
        self._counters = Counters(self._runner, self._recording.offer) if options.counters else None
        self._snapshots = Snapshots(self._recording, output, self._say)
        self._program = Program(self._runner, self._snapshots.take)
        self._progress = Progress(quiet=quiet)
        self._contents = Contents()
        self._expects_more = True
        self._started = time.monotonic()

    def run(self, path: str, arguments: Sequence[str]) -> int:
        """Record until both the program and the recording have ended.

        Args:
            path: of the executable.
            arguments: its argv.

        Returns:
            The program's exit status, or minus the signal that killed it.

        Raises:
            StrettoError: the program was not started.
        """
        try:
            workspace = folder.create(self._inside())
        except StrettoError as error:
            self._output.discard()
            raise not_started(error) from error
        try:
            self._start(workspace, path, arguments)
            self._record(workspace)
            self._finish(workspace)
            self._runner.run_until(lambda: self._program.ended)
        finally:
            self._program.close()
            if self._starts is not None:
                self._starts.close()
            folder.remove(workspace)
        return self._program.status

    # --- start

    def _make_recording(self) -> Recording | SystemRecording:
        if not self._options.system:
            return Recording(self._runner, self._on_process)
        from stretto.recorder.host.system_recording import SystemRecording

        try:
            return SystemRecording(self._runner, self._name, self._on_process)
        except StrettoError as error:
            raise not_started(error) from error

    def _make_config(self) -> TraceConfig:
        to_file = not self._output.direct
        if self._options.system:
            return make_system_config(self._options, self._name, to_file=to_file)
        return make_config(self._options, to_file=to_file)

    def _inside(self) -> Options:
        """What the recorded processes have to know."""
        if not isinstance(self._recording, Recording):
            service = {"service": [self._recording.producer_socket], "name": [self._name]}
            return {**self._options.target, **service}
        return self._options.target

    def _start(self, workspace: Workspace, path: str, arguments: Sequence[str]) -> None:
        output, options = self._output, self._options
        try:
            stream_fd = output.fd() if options.stream else -1
            self._recording.start(workspace, self._make_config(), stream_fd, output.ring_fd)
            environment = folder.environment(workspace)
            stdout = STDERR if output.to_stdout else -1
            self._starts = PythonStarts(self._runner, self._look)
            self._program.start(path, arguments, environment, stdout)
        except (StrettoError, OSError) as error:
            self._recording.close()
            output.discard()
            raise not_started(error) from error
        _allow_many_descriptors()
        self._tick()

    # --- meanwhile

    def _record(self, workspace: Workspace) -> None:
        program, recording = self._program, self._recording
        self._runner.run_until(lambda: program.ended or recording.ended)
        if program.ended and not recording.ended:
            self._look_who_lives(workspace)
            self._runner.run_until(
                lambda: not self._expects_more or recording.ended or program.interrupted,
                LINGER_MS,
            )

    def _look_who_lives(self, workspace: Workspace) -> None:
        """Some may not have connected yet: just started, or below one that is no Python."""
        self._expects_more = self._recording.expects_more or anyone_lives(workspace.folder)
        if self._expects_more and not self._recording.ended:
            self._runner.post_delayed(lambda: self._look_who_lives(workspace), LOOK_MS)

    def _on_process(self, pid: int) -> None:
        self._descendants.on_connected(pid)
        if self._counters is not None:
            self._counters.follow(pid)

    def _tick(self) -> None:
        if self._program.ended or self._recording.ended:
            return
        self._look()
        if self._counters is not None:
            self._counters.sample(self._recording.pids())
        if self._progress.on:
            collected = sum(b.bytes_written for b in self._recording.stats().buffer_stats)
            pids = self._recording.pids()
            self._progress.update(self._program.pid, pids, self._seconds(), collected)
        self._runner.post_delayed(self._tick, TICK_MS)

    def _look(self) -> None:
        self._descendants.look(self._program.pid, self._recording.connected)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    # --- the end

    def _finish(self, workspace: Workspace) -> None:
        if not self._program.ended:
            self._look()
        seconds = self._seconds()
        self._runner.run_until(lambda: not self._snapshots.busy, SNAPSHOT_TIMEOUT_MS)
        if self._counters is not None:
            self._counters.close()
        self._recording.stop()
        self._progress.clear()
        written = self._write()
        stats = self._recording.stats()
        self._recording.close()
        if self._recording.error:
            self._complain(f"the recording ended early: {self._recording.error}")
        path = "" if self._output.direct else self._output.path
        not_followed = self._not_followed(workspace)
        # What streamed into a pipe has passed us by.
        counted = None if self._options.stream and self._output.direct else self._contents
        text = summary(counted, stats, not_followed, streamed=self._options.stream)
        # Where else it may be was said when it couldn't be written there.
        where = "" if written is None else f"\n{whereabouts(path, written, seconds)}"
        self._say(f"{text}{where}")

    def _write(self) -> int | None:
        """Bring the trace to where it belongs; returns its bytes, None if that failed."""
        try:
            size = self._read_stream() if self._options.stream else self._write_ring()
            self._output.finish()
        except StrettoError as error:
            self._complain(str(error))
            self._output.discard_if_empty()
            return None
        return size

    def _read_stream(self) -> int:
        if not self._output.direct:
            self._contents.add_file(self._output.fd())
        return self._output.size()

    def _write_ring(self) -> int:
        try:
            file = OutputFile(os.dup(self._output.fd()))
        except StrettoError as error:
            raise self._ring_kept(error) from error
        errors: list[StrettoError] = []

        def write(data: bytes) -> None:
            if errors:
                return
            try:
                file.write(data)
                self._contents.add(data)
            except StrettoError as error:
                errors.append(error)

        try:
            self._recording.read(write)
        finally:
            file.close()
        if errors:
            raise self._ring_kept(errors[0])
        return file.bytes_written

    def _ring_kept(self, error: StrettoError) -> CommandError:
        self._output.keep_ring_only()
        return CommandError(f"{error}{self._output.recovery()}")

    def _not_followed(self, workspace: Workspace) -> list[str]:
        for pid in self._contents.processes:
            self._descendants.on_connected(pid)
        said = list(workspace.read_notes().items())
        # A sub-interpreter of a process that is recorded can't be, and says so.
        followed = self._descendants.followed
        said += [(p, why) for p, why in workspace.read_failures().items() if p not in followed]
        said += [(pid, [why]) for pid, why in self._recording.without_memory.items()]
        lines = [f"{pid}: {line}" for pid, text in said for line in text]
        lines += self._descendants.not_followed(said_why=workspace.read_failures())
        if not lines and not followed:
            lines.append("the program: it is no Python, and started none")
        return lines

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._progress.clear()
            _print(text)

    def _complain(self, text: str) -> None:
        self._progress.clear()
        _print(f"stretto: {text}")


def not_started(error: StrettoError | OSError) -> CommandError:
    """The same, with an exit status that says so."""
    if isinstance(error, CommandError) and error.exit_code != 1:
        return error
    if isinstance(error, OSError):
        text = f"record: {error.strerror or error}{_descriptors_hint(error)}"
        return CommandError(text, NOT_STARTED_EXIT_CODE)
    return CommandError(f"{error}{_limit_hint()}", NOT_STARTED_EXIT_CODE)


def _descriptors_hint(error: OSError) -> str:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if error.errno != errno.EMFILE:
        return "."
    return f": {limit} are allowed here, and a recorder needs some 20 (`ulimit -n`)."


def _limit_hint() -> str:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f" Files may have no more than {size_text(limit)} here (`ulimit -f`), the ring as well: "
        "choose a smaller --buffer, or --stream."
    )


def _print(text: str) -> None:
    if sys.stderr is None:
        return  # print would take standard output for it
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody listens; the trace is what matters


def _allow_many_descriptors() -> None:
    """A process that is recorded takes a descriptor of ours (the program has its own limit)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
