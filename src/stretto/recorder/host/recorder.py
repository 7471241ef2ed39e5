"""The recorder: runs a program and records it, from its start to the written trace."""

from __future__ import annotations

import resource
import time

from stretto import _native
from stretto.base.errors import StrettoError
from stretto.base.installed_code import NOT_OWN_CODE
from stretto.recorder.host import detail
from stretto.recorder.host.contents import Contents
from stretto.recorder.host.counters import Counters
from stretto.recorder.host.descendants import Descendants, has_living_processes
from stretto.recorder.host.early_end import early_end
from stretto.recorder.host.private_recording import PrivateRecording
from stretto.recorder.host.program import Program
from stretto.recorder.host.python_starts import PythonStarts
from stretto.recorder.host.result import RecordingResult
from stretto.recorder.host.saving import save_trace
from stretto.recorder.host.snapshots import Snapshots
from stretto.recorder.host.unmatched_patterns import unmatched_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.host.attached_program import AttachedProgram
    from stretto.recorder.host.io_waits import IoWaits
    from stretto.recorder.host.launch import Launch
    from stretto.recorder.host.native_heap import NativeHeaps
    from stretto.recorder.host.options import RecordingOptions
    from stretto.recorder.host.output import Output
    from stretto.recorder.host.recording import Recording
    from stretto.recorder.host.reporter import Reporter
    from stretto.recorder.host.samples import ProgramSamples
    from stretto.recorder.host.scheduling import Scheduling
    from stretto.recorder.workspace import Workspace

LINGER_MS = 2000
"""How long the recorder waits for processes that outlive the program."""

SCAN_PERIOD_MS = 50
"""Time between two scans for processes that outlive the program."""

SNAPSHOT_TIMEOUT_MS = 5000
TICK_MS = 1000
COUNT_PERIOD_MS = 200
"""Time between two counts of a streamed trace that has been counted to its end."""


class Recorder:
    """Runs one program and records it with its descendants.

    Args:
        options: the options of the recording.
        output: destination of the trace; the caller closes it, and discards it if `start` fails.
        reporter: informs the user.
        launch: the workspace and the program; the caller cancels it if `start` fails.

    Raises:
        StrettoError: the tracing service of a system recording can't be reached.
    """

    def __init__(
        self, options: RecordingOptions, output: Output, reporter: Reporter, launch: Launch
    ) -> None:
        self._options = options
        self._output = output
        self._reporter = reporter
        self._launch = launch
        self._workspace = launch.workspace
        self._runner = launch.runner
        self._descendants = Descendants()
        self._python_starts: PythonStarts | None = None
        self._recording = self._make_recording()
        self._counters: Counters | None = None
        if options.counters:
            self._counters = Counters(self._runner, self._recording.add_producer)
        self._scheduling = self._make_scheduling() if options.sched else None
        self._io_waits = self._make_io_waits() if options.io_waits else None
        self._samples = self._make_samples() if options.sample_ns else None
        self._native_heaps = self._make_native_heaps() if options.native_heap else None
        self._snapshots = Snapshots(self._runner, self._recording, output, reporter)
        launch.program.on_snapshot = self._snapshots.take
        self._program = self._attached_program() if options.attach else launch.program
        self._contents = Contents()
        self._detail: detail.Detail | None = None
        self._waits_for_descendants = True
        self._started = time.monotonic()

    def _make_recording(self) -> Recording:
        if not self._options.system:
            return PrivateRecording(self._runner, self._on_process)
        # The module is imported only for a system recording: a private service doesn't need it.
        from stretto.recorder.host.system_recording import SystemRecording

        return SystemRecording(self._runner, self._on_process)

    def _make_scheduling(self) -> Scheduling | None:
        # The modules are imported only for `--sched`.
        from stretto.base import pid_namespace
        from stretto.recorder.host.scheduling import Scheduling

        def tell(reason: str) -> None:
            self._reporter.error(f"no scheduling is recorded: {reason}")

        if not pid_namespace.is_initial():
            tell(pid_namespace.OTHER_IDS)
            self._options.sched = False
            return None
        return Scheduling(self._runner, self._recording.add_producer, tell)

    def _make_io_waits(self) -> IoWaits | None:
        # The module is imported only for `--io-waits`.
        from stretto.recorder.host.io_waits import CATEGORY, IoWaits, missing_right

        if reason := missing_right():
            self._reporter.error(f"only waits in Python's functions are recorded: {reason}")
            self._options.io_waits = False
            self._options.categories = [*self._options.categories, CATEGORY]
            return None
        return IoWaits(
            self._runner,
            self._recording.add_producer,
            lambda reason: self._reporter.error(f"no waits in system calls: {reason}"),
        )

    def _make_samples(self) -> ProgramSamples:
        # These modules are imported only for `--sample`.
        from stretto.profilers.sampling.process import PERF_SAMPLE, STACK_SAMPLE
        from stretto.recorder.host.samples import ProgramSamples

        options = self._options
        form = STACK_SAMPLE if options.stack_samples else PERF_SAMPLE
        return ProgramSamples(
            self._runner,
            self._recording.add_producer,
            options.sample_ns,
            form,
            native=options.native,
        )

    def _make_native_heaps(self) -> NativeHeaps:
        # The module is imported only for `--native-heap`.
        from stretto.recorder.host.native_heap import NativeHeaps

        return NativeHeaps(
            self._runner,
            self._recording.add_producer,
            self._workspace.native_heap,
            lambda pid: pid in self._descendants.followed,
            hides_arguments="no_args" in self._options.target,
        )

    def _attached_program(self) -> AttachedProgram:
        # The module is imported only to attach to a running program.
        from stretto.recorder.host.attached_program import AttachedProgram

        return AttachedProgram(self._runner, self._snapshots.take, self._options.attach)

    def start(self) -> None:
        """Start the recording, and then the program if it isn't started, or attach to it.

        Raises:
            StrettoError, OSError: nothing is recorded. The caller cancels the launch and
                discards the output.
        """
        try:
            if more := self._recording.target_options:
                self._workspace.write_options({**self._options.target, **more})
            if self._options.auto_size:
                self._detail = detail.Detail(self._workspace, self._options.auto_size)
            self._recording.start(self._launch, self._options, self._output)
            self._start_program()
        except (StrettoError, OSError):
            self._recording.close()
            self._close()
            raise
        _raise_descriptor_limit()
        self._tick()
        if self._samples is not None:
            self._samples.follow_tree(self._program.pid)
        if self._native_heaps is not None:
            self._native_heaps.scan()
        self._follow_size()
        if self._options.stream and not self._output.direct:
            self._count()

    def _start_program(self) -> None:
        program = self._program
        if isinstance(program, Program):
            self._python_starts = PythonStarts(self._runner, self._scan)
            if program.pid:  # The program waits for the service: serve it first.
                self._runner.post(self._python_starts.add_all)
            else:
                self._python_starts.add_all()
                self._launch.start_program()
            return
        program.start(self._workspace)
        if self._options.duration_ms:
            self._runner.post_delayed(program.end, self._options.duration_ms)

    def _close(self) -> None:
        self._program.close()
        if self._python_starts is not None:
            self._python_starts.close()

    def run(self) -> int:
        """Record until both the program and the recording have ended, and write the trace.

        Returns:
            The program's exit status, or minus the signal that killed it.
        """
        try:
            self._wait(self._workspace)
            self._finish(self._workspace)
            self._program.wait()
        finally:
            self._close()
            self._launch.close()
        return self._program.status

    def _wait(self, workspace: Workspace) -> None:
        """Run until the recording, or the program with all its descendants, has ended."""
        program, recording = self._program, self._recording
        self._runner.run_until(lambda: program.ended or recording.ended)
        if program.ended and not recording.ended:
            self._check_descendants(workspace)
            self._runner.run_until(
                lambda: not self._waits_for_descendants or recording.ended or program.interrupted,
                LINGER_MS,
            )

    def _check_descendants(self, workspace: Workspace) -> None:
        # Some descendants may not have connected yet: they have just started, or will be started
        # by a process that doesn't run Python. They are detected by their environment.
        lives = self._recording.has_descendants or has_living_processes(workspace.folder)
        self._waits_for_descendants = lives
        if lives and not self._recording.ended:
            self._runner.post_delayed(lambda: self._check_descendants(workspace), SCAN_PERIOD_MS)

    def _on_process(self, pid: int) -> None:
        self._descendants.on_connected(pid)
        # The process waits for a reply of the service: sample it afterwards.
        self._runner.post(lambda: self._follow(pid))

    def _follow(self, pid: int) -> None:
        if self._counters is not None:
            self._counters.follow(pid)
        if self._scheduling is not None:
            self._scheduling.follow(pid)
        if self._io_waits is not None:
            self._io_waits.follow(pid)
        if self._samples is not None:
            self._samples.follow(pid)

    def _tick(self) -> None:
        if self._program.ended or self._recording.ended:
            return
        self._scan()
        self._recording.refresh_pids()
        if self._counters is not None:
            self._counters.sample(self._recording.pids)
        if self._reporter.shows_progress:
            pids = self._recording.pids
            self._reporter.progress(self._program.pid, pids, self._seconds(), self._collected())
        self._runner.post_delayed(self._tick, TICK_MS)

    def _collected(self) -> int:
        """Return the bytes of trace data so far."""
        stats = self._recording.stats()
        return sum(buffer.bytes_written for buffer in stats.buffer_stats)

    def _follow_size(self) -> None:
        """Raise the threshold of auto detail as the trace grows, in periodic tasks."""
        if self._detail is None or self._program.ended or self._recording.ended:
            return
        self._detail.update(max(self._output.size(), self._collected()), self._seconds())
        self._runner.post_delayed(self._follow_size, detail.PERIOD_MS)

    def _count(self) -> None:
        """Count the streamed events in short tasks, so that few are left when the program ends."""
        if self._program.ended or self._recording.ended:
            return
        more = self._contents.add_next(self._output.fd())
        self._runner.post_delayed(self._count, 0 if more else COUNT_PERIOD_MS)

    def _scan(self) -> None:
        if self._options.attach:
            return  # The descendants of an attached program aren't recorded.
        self._descendants.scan(self._program.pid, self._recording.pids)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _finish(self, workspace: Workspace) -> None:
        if not self._program.ended:
            self._scan()
        ended_early = self._recording.ended and not self._program.ended
        seconds, end_ns = self._seconds(), _native.boottime_ns()
        if self._python_starts is not None:
            self._python_starts.close()
        self._runner.run_until(lambda: not self._snapshots.busy, SNAPSHOT_TIMEOUT_MS)
        if self._counters is not None:
            self._counters.close()
            self._counters = None
        if self._samples is not None:
            self._samples.stop()
        self._recording.stop()
        self._reporter.stopped()
        size = self._save()
        stats, notes = self._recording.stats(), list(self._recording.unmatched)
        self._recording.close()
        if self._recording.error:
            self._reporter.error(f"the recording ended early: {self._recording.error}")
        elif ended_early:
            notes.insert(0, early_end(self._options, seconds))
        # A trace that was streamed into a pipe can't be read again.
        counted = not (self._options.stream and self._output.direct)
        not_followed = self._not_followed(workspace)
        if self._descendants.followed:
            notes += unmatched_notes(self._options, self._recording.matched)
        self._reporter.finished(
            RecordingResult(
                contents=self._contents if counted else None,
                stats=stats,
                not_followed=not_followed,
                streamed=self._options.stream,
                path="" if self._output.direct else self._output.path,
                size=size,
                seconds=seconds,
                end_ns=end_ns,
                totals=self._recording.totals.finish(),
                rises=self._detail.rises if self._detail is not None else (),
                auto_detail=self._detail is not None,
                profiles=self._samples.profiles if self._samples is not None else (),
                notes=notes,
            )
        )

    def _save(self) -> int | None:
        """Save the trace; return its size in bytes, None if it is not complete."""
        try:
            size = save_trace(self._recording, self._output, self._contents)
        except StrettoError as error:
            self._reporter.error(str(error))
            self._output.discard_if_empty()
            return None
        cut_short = self._output.direct and self._recording.error
        return None if cut_short else size

    def _not_followed(self, workspace: Workspace) -> list[str]:
        for pid in self._contents.processes:
            self._descendants.on_connected(pid)
        followed = self._descendants.followed
        failures = workspace.read_failures()
        reasons = list(workspace.read_notes().items())
        # If a process is recorded, its failures concern only sub-interpreters: omit them.
        reasons += [(pid, lines) for pid, lines in failures.items() if pid not in followed]
        reasons += [(pid, [reason]) for pid, reason in self._recording.unrecorded.items()]
        alone = len(followed) == 1
        lines = [_of_process(pid, line, alone=alone) for pid, lines in reasons for line in lines]
        lines += self._descendants.not_followed(explained=failures)
        if not lines and not followed and self._native_heaps is None:
            lines.append("the program: it is no Python, and started none")
        if "my_code" in self._options.target:
            lines.append(f"left out: {NOT_OWN_CODE}")
        return lines


def _of_process(pid: int, line: str, *, alone: bool) -> str:
    """Name the process of a line; what a recording of one process leaves out needs no name."""
    return line if alone and line.startswith("left out: ") else f"{pid}: {line}"


def _raise_descriptor_limit() -> None:
    """Raise the limit of descriptors: the recorder needs several for each recorded process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
