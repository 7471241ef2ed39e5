"""The processes and threads that `linux.perf` samples: their scope, and their names in the trace.

A process is looked at when its first sample is handled, and again after exec. If it has ended by
then, its name is the one that exec gave it.
"""

from __future__ import annotations

from stretto.protos.trace import ProcessTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine
    from stretto.probes.perf_scope import Scope

IDLE, LAST_ID = 0, 2**31 - 1
"""The pid of the idle tasks, and the last pid: a task that has ended has none, but 2^32 - 1."""
MAX_NAMES = 1 << 16


class Processes:
    """Decides about processes, and describes those in the scope.

    Args:
        machine: Has the files of /proc.
        scope: Which processes are wanted.
        kernel_frames: Whether threads of the kernel have stacks.
    """

    def __init__(self, machine: Machine, scope: Scope, *, kernel_frames: bool) -> None:
        self._machine = machine
        self._scope = scope
        self._kernel_frames = kernel_frames
        self._names: dict[int, bytes] = {}
        """The names of threads that were named while the session runs."""
        self.forget_descriptions()

    def forget_descriptions(self) -> None:
        """Describe all processes and threads again."""
        self._in_scope: dict[int, bool] = {}
        self._described: set[int] = set()
        self._new = ProcessTree()

    def name(self, tid: int, name: bytes) -> None:
        """Note the name that a thread has got."""
        if len(self._names) >= MAX_NAMES:
            self._names.clear()
        self._names[tid] = name
        self._described.discard(tid)

    def run(self, pid: int) -> None:
        """Look at a process again: it has run another program."""
        self._in_scope.pop(pid, None)
        self._described.discard(pid)

    def end(self, pid: int, tid: int) -> None:
        """Forget a thread, and its process if it is the main thread."""
        self._names.pop(tid, None)
        self._described.discard(tid)
        if tid == pid:
            self._in_scope.pop(pid, None)

    def has(self, pid: int, tid: int, *, has_user_stack: bool) -> bool:
        """Return whether stacks of a process are wanted; describe the thread if they are.

        Args:
            pid: The process.
            tid: The thread that has a sample.
            has_user_stack: Whether the sample has a part for a program: not if it is the kernel's.
        """
        wanted = self._in_scope.get(pid)
        if wanted is None:
            wanted = self._in_scope[pid] = self._decide(pid, has_user_stack=has_user_stack)
        if wanted and tid not in self._described and pid > IDLE and tid <= LAST_ID:
            self._described.add(tid)
            self._describe_thread(pid, tid)
        return wanted

    def take(self) -> ProcessTree | None:
        """Return what was described since the last call; None if nothing was."""
        new, self._new = self._new, ProcessTree()
        return new if new.processes or new.threads else None

    def _decide(self, pid: int, *, has_user_stack: bool) -> bool:
        if not has_user_stack and not self._kernel_frames:
            return False
        cmdline = self._cmdline(pid) if has_user_stack else []
        if not self._scope.has(pid, cmdline[0] if cmdline else ""):
            return False
        if IDLE < pid <= LAST_ID:
            self._describe_process(pid, cmdline)
        return True

    def _cmdline(self, pid: int) -> list[str]:
        """Return the command line; if the process has ended, the name that it was given."""
        data = self._machine.read(f"proc/{pid}/cmdline") or self._names.get(pid, b"")
        return [word.decode(errors="replace") for word in data.split(b"\0") if word]

    def _describe_process(self, pid: int, cmdline: list[str]) -> None:
        stat = self._machine.read(f"proc/{pid}/stat").rpartition(b")")[2].split()
        process = ProcessTree.Process(pid=pid, cmdline=cmdline or [self._comm(pid, pid)])
        process.cmdline_is_comm = not cmdline
        if len(stat) > 1:
            process.ppid = int(stat[1])
        self._new.processes.append(process)

    def _describe_thread(self, pid: int, tid: int) -> None:
        thread = ProcessTree.Thread(tid=tid, tgid=pid, name=self._comm(pid, tid))
        self._new.threads.append(thread)

    def _comm(self, pid: int, tid: int) -> str:
        read = self._machine.read(f"proc/{pid}/task/{tid}/comm").removesuffix(b"\n")
        return (read or self._names.get(tid, b"")).decode(errors="replace")
